"""`arag doctor`: which parts work, what is wrong with a knowledge base, and what to do about it."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, Arag, run_arag, start_arag
from tests.doctor import damage
from tests.strategies import scripted_server


def test_a_sound_installation_has_six_parts_and_no_findings(ask_indexed: Arag) -> None:
    ran = ask_indexed("doctor", "--json", ARAG_MODEL="none")

    assert ran.code == 0, ran.out
    assert ran.json["findings"] == []
    parts = {part["name"]: part for part in ran.json["parts"]}
    assert list(parts) == [
        "settings", "knowledge base", "ocr", "embedder", "chat model", "strategy",
    ]  # fmt: skip
    assert parts["knowledge base"]["detail"] == "4 documents, 4 chunks"
    assert parts["embedder"]["detail"] == "384 dimensions"
    assert parts["chat model"]["value"] == "none"
    assert parts["strategy"]["value"] == "naive"
    assert "ARAG_MODEL" in parts["settings"]["why"]


def test_the_chat_model_gets_one_tiny_request_that_carries_a_tool(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        ran = ask_indexed("doctor", ARAG_BASE_URL=model.address, ARAG_MODEL="any")

    assert ran.code == 0, ran.out
    assert ran.out.endswith("\nNothing is wrong.\n")
    assert "ok     chat model" in ran.out
    assert f'The setting `model` is "any", at {model.address}.' in ran.out
    assert "agent" in ran.out
    (request,) = model.requests
    assert request.get("max_tokens", request.get("max_completion_tokens")) <= 32
    assert len(request["tools"]) == 1


def test_nothing_is_embedded_or_asked_without_calls(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        ran = ask_indexed("doctor", "--no-calls", ARAG_BASE_URL=model.address, ARAG_MODEL="any")

    assert ran.code == 0
    assert ran.out.count("not tried") == 2
    assert model.requests == []


@pytest.mark.parametrize(
    ("turn", "said", "cure"),
    [
        ({"status": 401, "error": {"message": "bad key"}}, "no key was sent", "`api_key_env`"),
        ({"status": 404, "error": {"message": "no model"}}, "(HTTP 404)", "Check `model`"),
        (
            {"status": 400, "error": {"message": "model does not support tools"}},
            "cannot call tools",
            "naive",
        ),
        ({"hang": True}, "said nothing for 1 seconds", "model_timeout"),
        (
            {"status": 500, "error": {"message": "out of memory; core dumped"}},
            "The model failed (HTTP 500): out of memory; core dumped",
            "look at the log of the server at `base_url` (http://127.0.0.1",
        ),
        (
            {"status": 400, "error": {"message": "bad field; see the docs"}},
            "The model failed (HTTP 400): bad field; see the docs",
            "It refused the request",
        ),
        ({"status": 404, "error": {"message": "no such page"}}, "(HTTP 404)", "/v1"),
    ],
)
def test_a_chat_model_that_fails_is_told_with_what_to_do(
    ask_indexed: Arag, turn: dict[str, object], said: str, cure: str
) -> None:
    with scripted_server.serving(scripted_server.Turn(**turn)) as script:  # type: ignore[arg-type]
        ran = ask_indexed(
            "doctor",
            "--json",
            ARAG_BASE_URL=script.address,
            ARAG_MODEL="any",
            ARAG_MODEL_TIMEOUT="1" if "hang" in turn else "20",
        )

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert finding["code"] == "chat_model"
    assert said in finding["message"]
    assert cure in finding["cure"]


@pytest.mark.parametrize("strategy", ["agent", "naive"])
@pytest.mark.parametrize("pieces", [(), (" \n",)])
def test_a_chat_model_whose_reply_is_empty_does_not_work(
    ask_indexed: Arag, pieces: tuple[str, ...], strategy: str
) -> None:
    with scripted_server.serving(scripted_server.Turn(pieces)) as script:
        ran = ask_indexed(
            "doctor", "--json", "--model", "any", "--strategy", strategy,
            ARAG_BASE_URL=script.address,
        )  # fmt: skip

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert (finding["code"], finding["message"]) == (
        "chat_model",
        "chat model: its reply was empty",
    )
    assert script.address in finding["cure"]


def test_a_chat_model_that_thinks_until_its_tokens_are_used_up_works(ask_indexed: Arag) -> None:
    with scripted_server.serving(scripted_server.Turn((), finish="length")) as script:
        ran = ask_indexed("doctor", "--json", "--model", "any", ARAG_BASE_URL=script.address)

    assert ran.code == 0, ran.out


@pytest.mark.parametrize(
    ("settings", "code", "cure"),
    [
        ({"ARAG_MODEL": "openai:gpt-6-luna"}, "chat_model", "OPENAI_API_KEY"),
        ({"ARAG_MODEL": "local:nowhere.gguf"}, "chat_model", "local:PATH"),
        ({"ARAG_EMBEDDING__MODEL": "huge", "ARAG_MODEL": "none"}, "embedder", "'local'"),
        ({"ARAG_STRATEGY": "magic", "ARAG_MODEL": "none"}, "strategy", "agent, naive"),
        ({"ARAG_STRATEGY": "agent", "ARAG_MODEL": "none"}, "strategy", "naive"),
        ({"ARAG_SEARCH__TOPK": "3"}, "settings", "docs/configuration.md"),
        ({"ARAG_KB": "elsewhere", "ARAG_MODEL": "none"}, "knowledge_base", "arag index PATH"),
    ],
)
def test_each_part_that_cannot_be_used_is_one_finding(
    ask_indexed: Arag, settings: dict[str, str], code: str, cure: str
) -> None:
    ran = ask_indexed("doctor", "--json", "--no-calls", **settings)

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert finding["code"] == code
    assert cure in finding["cure"]


def test_a_damaged_document_is_named_cured_and_found_again(own: Path) -> None:
    directory = own / ".arag"
    document = run_arag(own, "show", "pump.md", "--json").json["document"]
    damage.delete(directory, "sentences", f"document = {document['number']}")
    words = ("doctor", "--no-calls")

    told = run_arag(own, *words, ARAG_MODEL="none")
    assert told.code == 3
    assert "1. 1 document not whole" in told.out
    assert "notes/pump.md" in told.out
    assert "   → `arag doctor --fix`" in told.out

    fixed = run_arag(own, *words, "--fix", ARAG_MODEL="none")
    assert fixed.code == 0, fixed.out
    assert "indexed " in fixed.err
    assert run_arag(own, *words, ARAG_MODEL="none").code == 0
    found = run_arag(own, "search", "when was the pump replaced", "--mode", "semantic", "--json")
    assert found.json["hits"][0]["title"] == "Pump station"
    assert run_arag(own, "show", "pump.md", "--json").json["document"]["metadata"] == {
        **document["metadata"]
    }


@pytest.mark.parametrize(
    "harm",
    [
        lambda kb: shutil.rmtree(kb / "chunks.lance" / "_indices"),
        lambda kb: [path.write_bytes(b"") for path in (kb / "sentences.lance/data").iterdir()],
    ],
)
def test_a_knowledge_base_with_a_finding_is_not_called_ok(
    own: Path, harm: Callable[[Path], object]
) -> None:
    harm(own / ".arag")
    words = ("doctor", "--no-calls", "--model", "none")

    shown, told = run_arag(own, *words), run_arag(own, *words, "--json").json

    assert "FAILS  knowledge base  .arag: 4 documents, 4 chunks; 1 finding, told below" in shown.out
    assert {part["name"]: part["works"] for part in told["parts"]}["knowledge base"] is False
    assert len(told["findings"]) == 1
    assert shown.out.count("→") == 1


def test_a_knowledge_base_that_was_cured_is_ok(own: Path) -> None:
    shutil.rmtree(own / ".arag" / "chunks.lance" / "_indices")

    ran = run_arag(own, "doctor", "--no-calls", "--model", "none", "--fix")

    assert ran.code == 0
    assert "ok     knowledge base  .arag: 4 documents, 4 chunks" in ran.out
    assert ran.err == "made the word index anew\n"
    assert ran.out.endswith("\nNothing is wrong.\n")


def test_a_base_of_another_embedding_model_is_told(own: Path) -> None:
    damage.commit(own / ".arag", embedding_model="other")

    ran = run_arag(own, "doctor", "--no-calls", "--json", ARAG_MODEL="none")

    (finding,) = ran.json["findings"]
    assert finding["code"] == "embedder"
    assert "'other'" in finding["message"]
    assert "'arag reembed'" in finding["cure"]


@pytest.mark.parametrize("how", ["option", "setting"])
def test_under_naive_the_chat_model_is_not_asked_to_take_tools(ask_indexed: Arag, how: str) -> None:
    words = ("--strategy", "naive") if how == "option" else ()
    setting = {} if how == "option" else {"ARAG_STRATEGY": "naive"}
    with playing(AgentModel(refuses_tools=True)) as model:
        ran = ask_indexed(
            "doctor", "--model", "any", *words, "--json", ARAG_BASE_URL=model.address, **setting
        )

    assert ran.code == 0, ran.out
    assert ran.json["findings"] == []
    parts = {part["name"]: part for part in ran.json["parts"]}
    assert "asked without tools" in parts["chat model"]["detail"]
    assert (parts["strategy"]["value"], parts["strategy"]["works"]) == ("naive", None)
    assert all("tools" not in request for request in model.requests)


def test_a_model_that_refuses_tools_is_not_said_to_call_them(ask_indexed: Arag) -> None:
    with playing(AgentModel(refuses_tools=True)) as model:
        ran = ask_indexed("doctor", "--model", "any", ARAG_BASE_URL=model.address)

    assert ran.code == 3
    assert "cannot call tools" in ran.out
    assert "Use `--strategy naive`" in ran.out
    assert "The chat model was taken to be one that can call tools, and is not." in ran.out
    assert "The chat model can call tools" not in ran.out


def test_that_a_model_calls_tools_is_not_claimed_without_a_trial(ask_indexed: Arag) -> None:
    ran = ask_indexed(
        "doctor", "--no-calls", "--model", "any", ARAG_BASE_URL="http://127.0.0.1:9/v1"
    )

    assert ran.code == 0
    assert "The chat model is taken to be one that can call tools." in ran.out


def test_the_options_win_over_the_settings(ask_indexed: Arag) -> None:
    ran = ask_indexed(
        "doctor", "--model", "none", "--strategy", "agent", "--json", ARAG_MODEL="openai:x"
    )

    (finding,) = ran.json["findings"]
    assert finding["code"] == "strategy"
    assert "there is none" in finding["message"]


def test_the_limit_of_the_trial_is_not_taken_for_that_of_the_settings(
    ask_indexed: Arag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentic_rag.doctor.chat_model.LIMIT", 1.0)
    with scripted_server.serving(scripted_server.Turn(hang=True)) as script:
        ran = ask_indexed("doctor", "--model", "any", "--json", ARAG_BASE_URL=script.address)

    (finding,) = ran.json["findings"]
    assert "no whole reply in 1 seconds, and `arag doctor` waits no longer" in finding["message"]
    assert "model_timeout" not in finding["cure"]
    assert finding["cure"].startswith("Try again in a minute")
    assert script.address in finding["cure"]


def test_a_password_in_the_address_is_not_shown(ask_indexed: Arag) -> None:
    turn = scripted_server.Turn(status=500, error={"message": "no"})
    with scripted_server.serving(turn) as script:
        address = script.address.replace("http://", "http://me:secret@")
        ran = ask_indexed("doctor", "--model", "any", "--json", ARAG_BASE_URL=address)

    assert script.address in ran.json["findings"][0]["cure"]
    assert "secret" not in ran.out + ran.err


@pytest.mark.parametrize("words", [(), ("--fix",)])
@pytest.mark.parametrize(
    ("harm", "said", "cure"),
    [
        (lambda kb: (kb / "head.json").write_text(""), "it is empty", "backup"),
        (lambda kb: (kb / "head.json").write_text("[1]"), "no JSON object", "NEW_DIRECTORY"),
        (lambda kb: damage.commit(kb, dimensions="a"), "'dimensions' cannot be", "backup"),
        (lambda kb: (kb / "head.json").unlink(), "no head.json", "Restore that file"),
        (lambda kb: shutil.rmtree(kb / "documents.lance"), "Table 'documents'", "backup"),
        (lambda kb: shutil.rmtree(kb / "chunks.lance"), "Table 'chunks'", "backup"),
        (
            lambda kb: [shutil.rmtree(kb / f"{name}.lance") for name in damage.NAMES],
            "Table 'documents'",
            "backup",
        ),
    ],
)
def test_a_base_that_cannot_be_read_is_one_finding_with_one_cure(
    own: Path, harm: Callable[[Path], object], said: str, cure: str, words: tuple[str, ...]
) -> None:
    harm(own / ".arag")

    ran = run_arag(own, "doctor", "--no-calls", "--model", "none", "--json", *words)

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert finding["code"] == "unreadable"
    assert said in finding["message"]
    assert cure in finding["cure"]
    shown = run_arag(own, "doctor", "--no-calls", "--model", "none", *words)
    assert shown.code == 3
    assert shown.out.count("→") == 1
    assert not {"Head", "__init__", "Traceback", "None"} & set(shown.out.split())


def test_a_path_that_is_a_file_is_not_to_be_indexed_into(own: Path) -> None:
    ran = run_arag(
        own, "doctor", "--no-calls", "--fix", "--json", "--kb", "notes/fees.txt", ARAG_MODEL="none"
    )

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert "is a file" in finding["message"]
    assert "arag index" not in finding["cure"]


def test_a_folder_of_other_files_is_not_to_be_indexed_into(own: Path) -> None:
    ran = run_arag(own, "doctor", "--no-calls", "--json", "--kb", "notes", ARAG_MODEL="none")

    (finding,) = ran.json["findings"]
    assert "holds other files" in finding["message"]
    assert "arag index" not in finding["cure"]


def test_an_empty_folder_may_be_indexed_into(own: Path) -> None:
    (own / "new").mkdir()

    ran = run_arag(own, "doctor", "--no-calls", "--json", "--kb", "new", ARAG_MODEL="none")

    assert "`arag index PATH` makes it" in ran.json["findings"][0]["cure"]


def test_a_repair_that_fails_still_ends_in_the_report(own: Path) -> None:
    shutil.rmtree(own / ".arag" / "chunks.lance" / "_indices")
    words = ("doctor", "--no-calls", "--fix", "--json", "--model", "none")

    failed = run_arag(own, *words, ARAG_EMBEDDING__MODEL="huge")
    assert failed.code == 3
    assert {finding["code"] for finding in failed.json["findings"]} == {"embedder", "no_word_index"}
    assert "no embedder 'huge'" in failed.json["not_cured"][0]
    assert "not cured: " in failed.err

    cured = run_arag(own, *words)
    assert cured.code == 0
    assert cured.json["cured"] == ["made the word index anew"]
    assert cured.json["not_cured"] == []


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
@pytest.mark.parametrize("harm", ["gone", "empty"])
def test_a_search_without_its_word_index_names_the_repair_and_no_backup(
    own: Path, mode: str, harm: str
) -> None:
    indices = own / ".arag" / "chunks.lance" / "_indices"
    if harm == "gone":
        shutil.rmtree(indices)
    else:
        for path in indices.glob("*/*"):
            path.write_bytes(b"")

    ran = start_arag(own, "search", "pump", "--mode", mode)

    assert ran.code == 1
    assert ran.err.startswith("error: The word index of .arag/chunks.lance cannot be read (")
    assert ran.err.endswith("); run `arag doctor --fix`, which makes it anew.\n")
    assert ran.err.count("\n") == 1  # not a word of Lance's own
    assert run_arag(own, "doctor", "--fix", "--no-calls", "--model", "none").code == 0
    assert run_arag(own, "search", "pump", "--mode", mode, "--json").json["hits"]


def test_indexing_and_status_without_the_word_index_name_the_repair(own: Path) -> None:
    shutil.rmtree(own / ".arag" / "chunks.lance" / "_indices")
    (own / "notes" / "new.md").write_text("A third pump came in 2024.\n")

    for words in (("status",), ("index", "notes")):
        ran = run_arag(own, *words)
        assert ran.code == 1
        assert "run `arag doctor --fix`" in ran.err.splitlines()[-1]

    assert run_arag(own, "doctor", "--fix", "--no-calls", "--model", "none").code == 0
    assert run_arag(own, "index", "notes").code == 0
    assert "2024" in run_arag(own, "search", "third pump", "--mode", "bm25").out


def test_settings_that_cannot_be_read_are_reported_as_json_too(own: Path) -> None:
    (own / "arag.toml").write_text("model = [")

    ran = run_arag(own, "doctor", "--json")

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert finding["code"] == "settings"
    assert "arag.toml is not valid TOML" in finding["message"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder that is in use")
def test_a_current_folder_that_is_gone_is_reported(own: Path) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {shlex.join(ARAG)} doctor --json"
    ran = subprocess.run(
        command, shell=True, cwd=own, capture_output=True, text=True, check=False, timeout=60
    )

    assert ran.returncode == 3, ran.stderr
    (finding,) = json.loads(ran.stdout)["findings"]
    assert finding["message"] == "settings: No such file or directory"
    assert "this folder" in finding["cure"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are other ones there")
@pytest.mark.parametrize("name", [".", "head.json", "documents.lance/_versions"])
def test_what_may_not_be_read_is_no_case_for_a_backup(own: Path, name: str) -> None:
    place = own / ".arag" / name
    mode = place.stat().st_mode
    place.chmod(0)
    try:
        if os.access(place, os.R_OK):
            pytest.skip("this user may read everything")
        ran = run_arag(own, "doctor", "--no-calls", "--json", "--model", "none")
    finally:
        place.chmod(mode)

    (finding,) = ran.json["findings"]
    assert finding["code"] == "unreadable"
    assert finding["cure"] == "Check who may read and write there."
