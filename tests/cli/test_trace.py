"""`arag trace`: what a saved trace shows, and what is said of a file that is none."""

import json
from pathlib import Path

import pytest

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import Arag, run_arag

QUESTION = "When was the second pump replaced?"


def test_a_trace_of_naive_is_replayed_with_its_steps_sources_and_cost(
    ask_indexed: Arag, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    asked = ask_indexed("ask", QUESTION, "--model", "none", "--trace", file)

    ran = ask_indexed("trace", file)

    assert asked.code == ran.code == 0
    assert ran.out.startswith(f"Question: {QUESTION}\n")
    assert " s  search: " in ran.out
    assert "Pump station › History: " in ran.out
    assert asked.out.strip() in ran.out  # the answer and its sources, as they were
    assert "\nanswered; naive, none: " in ran.out


def test_a_trace_of_the_agent_shows_each_call_and_in_full_what_came_back(
    ask_indexed: Arag, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    with playing(AgentModel()) as model:
        asked = ask_indexed(
            "ask", QUESTION, "--trace", file, ARAG_BASE_URL=model.address, ARAG_MODEL="any"
        )
    assert asked.code == 0, asked.err
    returned = next(
        event
        for event in json.loads(file.read_text("utf-8"))["trace"]
        if event["type"] == "tool_returned"
    )

    short, full = ask_indexed("trace", file).out, ask_indexed("trace", file, "--full").out

    assert 'semantic_search query="second pump replaced"' in short
    assert "Answer 1: the second one was replaced in 2019 [1]." in short
    assert "cost unknown" in short
    for line in returned["text"].splitlines():
        assert line.rstrip() in full
    assert ask_indexed("trace", file, "--json").json["question"] == QUESTION


def test_a_question_that_failed_leaves_a_trace_that_says_why(
    ask_indexed: Arag, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    with playing(AgentModel(refuses_tools=True)) as model:
        asked = ask_indexed(
            "ask", QUESTION, "--trace", file, ARAG_BASE_URL=model.address, ARAG_MODEL="any"
        )

    ran = ask_indexed("trace", file)

    assert asked.code == 1
    assert "error: The model any cannot call tools" in ran.out
    ended = ran.out.splitlines()[-1]
    assert ended.startswith("failed: The model any cannot call tools, which the strategy")
    assert "; agent, openai:any: " in ended
    assert "asking the model, about " in ran.out  # the request that it failed in
    assert "stopped" not in ran.out
    assert json.loads(file.read_text("utf-8"))["status"] == "failed"


def test_what_ask_printed_as_json_can_be_piped_in(ask_indexed: Arag, indexed: Path) -> None:
    printed = ask_indexed("ask", QUESTION, "--model", "none", "--json").out

    ran = run_arag(indexed, "trace", "-", typed=printed)

    assert "Pump station › History: " in ran.out


@pytest.mark.parametrize("text", [None, "", "no JSON", "[1]", '{"question": "x"}', "\udc80"])
def test_a_file_that_is_no_trace_is_one_clear_sentence(
    ask_indexed: Arag, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "trace.json"
    if text is not None:
        file.write_text(text, "utf-8", "surrogateescape")

    ran = ask_indexed("trace", file)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert str(file) in ran.err
    assert ("--trace FILE" if text is not None else "check the path") in ran.err


def test_a_trace_that_cannot_be_written_is_told_before_the_question_is_asked(
    ask_indexed: Arag,
) -> None:
    with playing(AgentModel()) as model:
        ran = ask_indexed(
            "ask",
            QUESTION,
            "--trace",
            "nowhere/trace.json",
            ARAG_BASE_URL=model.address,
            ARAG_MODEL="any",
        )

    assert ran.code == 1
    assert "nowhere/trace.json" in ran.err
    assert model.requests == []


def test_a_question_with_bytes_that_are_no_text_is_asked_and_saved(
    ask_indexed: Arag, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"

    ran = ask_indexed("ask", "second pump \udcff", "--model", "none", "--trace", file)

    assert ran.code == 0, ran.err
    assert ask_indexed("trace", file).out.startswith("Question: second pump ?\n")


def test_a_question_that_is_not_taken_leaves_no_empty_trace(
    ask_indexed: Arag, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"

    ran = ask_indexed("ask", QUESTION, "--strategy", "magic", "--trace", file)

    assert ran.code == 1
    assert not file.exists()
