"""Settings: flags over the environment over arag.toml, and clear words for wrong ones."""

from pathlib import Path

import pytest

from agentic_rag.config import BadSettings, load_settings


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
