"""Settings: flags over the environment over arag.toml, and clear words for wrong ones."""

from pathlib import Path

import pytest

from agentic_rag.config import BadOverride, BadSettings, load_settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_flags_win_over_the_environment_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "arag.toml").write_text('model = "file"\n[search]\ntop_k = 3\nrrf_k = 7\n')
    assert load_settings().model == "file"
    monkeypatch.setenv("ARAG_MODEL", "environment")
    monkeypatch.setenv("ARAG_SEARCH__TOP_K", "9")
    settings = load_settings()
    assert (settings.model, settings.search.top_k, settings.search.rrf_k) == ("environment", 9, 7)
    assert load_settings(model="flag", base_url=None).model == "flag"


def test_the_nearest_file_upwards_is_used_and_its_knowledge_base_lies_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "arag.toml").write_text('kb = "base"\n')
    (folder / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep/er")
    assert load_settings().kb == folder / "base"
    assert load_settings(kb=Path("mine")).kb == Path("mine")
    monkeypatch.setenv("ARAG_KB", "theirs")
    assert load_settings().kb == Path("theirs")


def test_a_named_file_takes_the_place_of_the_nearest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "arag.toml").write_text('model = "near"\n')
    (folder / "other.toml").write_text('model = "named"\n')
    monkeypatch.setenv("ARAG_CONFIG", str(folder / "other.toml"))
    assert load_settings().model == "named"
    monkeypatch.setenv("ARAG_CONFIG", str(folder / "none.toml"))
    with pytest.raises(BadSettings, match="ARAG_CONFIG"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[search]\ntopk = 3\n", r"no setting 'search\.topk'"),
        ("[search]\ntop_k = 0\n", r"'search\.top_k'.*greater than or equal to 1"),
        ('[search]\nfusion = "magic"\n', r"'search\.fusion'.*'scaled' or 'rrf'"),
        ("[rerank]\nexit_threshold = 3\n", r"'rerank\.exit_threshold'.*less than or equal to 1"),
        (
            '[rerank]\nexit = "entropy"\nearly_layer = 40\n',
            r"'rerank': early_layer \(40\) must be below layer \(28\), or exit must be \"off\"; "
            r"correct it in .*arag\.toml",
        ),
        ('api_key = "sk-secret"\n', r"no setting 'api_key'"),
        ("[search\n", "not valid TOML"),
    ],
)
def test_a_wrong_setting_is_one_clear_sentence(folder: Path, text: str, words: str) -> None:
    (folder / "arag.toml").write_text(text)
    with pytest.raises(BadSettings, match=words) as error:
        load_settings()
    assert "secret" not in str(error.value)


def test_an_unknown_environment_variable_of_ours_does_no_harm(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_DEBUG", "1")
    monkeypatch.setenv("ARAG_MODELS", "/somewhere")
    assert load_settings().model == ""


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ARAG_INDEX__EXCLUDE", "g.md", r"variable ARAG_INDEX__EXCLUDE is not valid JSON.*'\[\""),
        ("ARAG_INDEX__EXCLUDE", "3", r"'index\.exclude' must be a list .*ARAG_INDEX__EXCLUDE\."),
        ("ARAG_INDEX", "{", "variable ARAG_INDEX is not valid JSON"),
        ("ARAG_SEARCH", "5", r"'search' must be a section .* variable ARAG_SEARCH\."),
        ("ARAG_SEARCH__TOP_K", "x", "must be a whole number .* variable ARAG_SEARCH__TOP_K"),
        ("ARAG_SEARCH__TOPK", "3", r"no setting 'search\.topk' \(in .*ARAG_SEARCH__TOPK\)"),
        ("ARAG_TEMPERATURE", "3", "must be less than or equal to 2 .* ARAG_TEMPERATURE"),
        ("ARAG_TEMPERATURE", "-1", "must be greater than or equal to 0"),
        ("ARAG_CHUNKING__OVERLAP_TOKENS", "1000", "overlap_tokens must be less than size"),
    ],
)
def test_a_wrong_environment_variable_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    (folder / "arag.toml").write_text('model = "none"\n')
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadSettings, match=words) as error:
        load_settings()
    for internal in ("arag.toml", "Value error", "<class", "instance of", "Input should"):
        assert internal not in str(error.value)


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("ARAG_API_KEY_ENV", "api_key_env"),
        ("ARAG_EMBEDDING__API_KEY_ENV", "embedding.api_key_env"),
        ("ARAG_IMAGES__API_KEY_ENV", "images.api_key_env"),
        ("ARAG_RERANK__API_KEY_ENV", "rerank.api_key_env"),
        ("ARAG_WEB_SEARCH__API_KEY_ENV", "web_search.api_key_env"),
    ],
)
@pytest.mark.parametrize("key", ["sk-123 x", "sk-proj-abc", "Bearer abc", "密钥"])
def test_a_key_in_place_of_its_variables_name_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, setting: str, key: str
) -> None:
    monkeypatch.setenv(variable, key)
    with pytest.raises(BadSettings) as error:
        load_settings()
    assert f"'{setting}' must be the *name* of the variable" in str(error.value)
    assert variable in str(error.value)
    assert key not in str(error.value)
    monkeypatch.setenv(variable, "MY_KEY ")
    load_settings()


def test_lists_in_the_environment_are_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARAG_INDEX__EXCLUDE", '["g.md"]')
    assert load_settings().index.exclude == ("g.md",)


def test_an_empty_environment_variable_counts_as_not_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "arag.toml").write_text('kb = "base"\n')
    for name in ("ARAG_KB", "ARAG_SEARCH__TOP_K", "ARAG_INDEX__EXCLUDE", "ARAG_CONFIG"):
        monkeypatch.setenv(name, "")
    settings = load_settings()
    assert (settings.kb, settings.search.top_k) == (folder / "base", 5)


def test_a_wrong_setting_in_the_file_names_the_file(folder: Path) -> None:
    (folder / "arag.toml").write_text("[search]\nsemantic_weight = 0\nbm25_weight = 0\n")
    with pytest.raises(BadSettings, match=r"must not both be 0; correct it in .*arag\.toml"):
        load_settings()
    with pytest.raises(BadSettings, match="the argument or option kb"):
        load_settings(kb=3, search={"top_k": 1})


def test_a_wrong_value_of_the_caller_is_told_from_one_in_the_file(folder: Path) -> None:
    with pytest.raises(BadOverride, match=r"argument or option agent\.effort") as error:
        load_settings(agent={"effort": "huge"})
    assert error.value.setting == "agent.effort"
    (folder / "arag.toml").write_text("[agent]\nmax_steps = 0\n")
    with pytest.raises(BadSettings, match=r"'agent\.max_steps' .*correct it in .*arag\.toml"):
        load_settings(agent={"effort": "low"})
