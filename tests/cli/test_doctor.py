"""`arag doctor`: which parts work, what is wrong with a knowledge base, and what to do about it."""

from pathlib import Path

import pytest

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import Arag, run_arag
from tests.doctor import damage
from tests.strategies import scripted_server


def test_a_sound_installation_has_five_parts_and_no_findings(ask_indexed: Arag) -> None:
    ran = ask_indexed("doctor", "--json", ARAG_MODEL="none")

    assert ran.code == 0, ran.out
    assert ran.json["findings"] == []
    parts = {part["name"]: part for part in ran.json["parts"]}
    assert list(parts) == ["settings", "knowledge base", "embedder", "chat model", "strategy"]
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
        ({"status": 401, "error": {"message": "bad key"}}, "refused the key (HTTP 401)", "Check"),
        ({"status": 404, "error": {"message": "no model"}}, "(HTTP 404)", "Check `model`"),
        (
            {"status": 400, "error": {"message": "model does not support tools"}},
            "cannot call tools",
            "naive",
        ),
        ({"hang": True}, "said nothing for 1 seconds", "model_timeout"),
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
            ARAG_MODEL_TIMEOUT="1",
        )

    assert ran.code == 3
    (finding,) = ran.json["findings"]
    assert finding["code"] == "chat_model"
    assert said in finding["message"]
    assert cure in finding["cure"]


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


def test_a_base_of_another_embedding_model_is_told(own: Path) -> None:
    damage.commit(own / ".arag", embedding_model="other")

    ran = run_arag(own, "doctor", "--no-calls", "--json", ARAG_MODEL="none")

    (finding,) = ran.json["findings"]
    assert finding["code"] == "embedder"
    assert "'other'" in finding["message"]
    assert "arag index PATH --kb NEW_DIRECTORY" in finding["cure"]
