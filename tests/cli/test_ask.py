"""`arag ask`: what goes where, on a terminal and into a pipe, and how it stops."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, Arag, run_arag, start_arag
from tests.cli.slow_model import SlowModel, serving

QUESTION = "When was the second pump replaced?"
REPLY = ["The second ", "pump was ", "replaced ", "in 2019."]


def test_without_a_model_the_best_passages_answer_with_numbered_sources(ask_indexed: Arag) -> None:
    ran = ask_indexed("ask", QUESTION, "--model", "none")

    assert ran.code == 0, ran.err
    answer, sources = ran.out.split("\nSources\n")
    assert "The second one was replaced in 2019." in answer
    assert "[1]" in answer
    assert sources.startswith("[1] Pump station › History")
    assert "notes/pump.md" in sources
    assert "naive, none: " in ran.err


def test_quiet_leaves_only_the_answer_and_its_sources(ask_indexed: Arag) -> None:
    ran = ask_indexed("ask", QUESTION, "--model", "none", "--quiet")

    assert ran.err == ""
    assert "\nSources\n" in ran.out


def test_json_is_the_whole_answer_on_standard_output_alone(ask_indexed: Arag) -> None:
    answer = ask_indexed("ask", QUESTION, "--model", "none", "--json").json

    assert answer["question"] == QUESTION
    assert answer["strategy"] == "naive"
    assert answer["model"] == "none"
    assert answer["trace"][0]["type"] == "run_started"
    first = answer["citations"][0]
    assert first["number"] == 1
    assert first["title"] == "Pump station"
    assert "replaced in 2019" in first["snippet"]


def test_a_chinese_question_is_answered_in_any_locale(indexed: Path) -> None:
    ran = start_arag(indexed, "ask", "第二台水泵什么时候更换？", "--model", "none", LC_ALL="C")

    assert "第二台水泵于2019年更换。" in ran.out


def test_an_answer_can_be_asked_of_some_documents_only(ask_indexed: Arag) -> None:
    answer = ask_indexed("ask", QUESTION, "--model", "none", "--path", "fees.txt", "--json").json

    assert {Path(one["uri"]).name for one in answer["citations"]} <= {"fees.txt"}


@pytest.mark.parametrize("words", [("--model", "gpt"), ("--strategy", "magic")])
def test_an_unknown_model_or_strategy_is_one_line(ask_indexed: Arag, words: list[str]) -> None:
    ran = ask_indexed("ask", QUESTION, *words)

    assert ran.code == 1
    assert words[1] in ran.err
    assert "Traceback" not in ran.err


def test_an_empty_question_is_a_usage_error(ask_indexed: Arag) -> None:
    assert ask_indexed("ask", " ").code == 2


def test_into_a_pipe_goes_only_the_finished_text(ask_indexed: Arag) -> None:
    with serving(SlowModel(REPLY, 0.01)) as model:
        words = ("--model", "openai:slow", "--strategy", "naive")
        ran = ask_indexed("ask", QUESTION, *words, ARAG_BASE_URL=model.address)

    assert ran.code == 0, ran.err
    assert ran.out.startswith("The second pump was replaced in 2019")
    assert "matched afterwards" in ran.out


def test_on_a_terminal_the_text_comes_while_it_is_written_and_once(indexed: Path) -> None:
    with serving(SlowModel(REPLY, 0.5)) as model:
        outer, inner = pty.openpty()
        environment = {**os.environ, "ARAG_BASE_URL": model.address, "TERM": "xterm"}
        running = subprocess.Popen(
            [*ARAG, "ask", QUESTION, "--model", "openai:slow", "--strategy", "naive"],
            cwd=indexed,
            env=environment,
            stdout=inner,
            stderr=subprocess.PIPE,
        )
        os.close(inner)
        early = b""
        while b"second" not in early:
            early += os.read(outer, 1000)
        still_running = running.poll() is None
        shown = early
        try:
            while piece := os.read(outer, 1000):
                shown += piece
        except OSError:  # the other end was closed
            pass
        running.wait(timeout=30)
        os.close(outer)

    assert still_running
    assert b"2019" not in early
    assert shown.count(b"The second pump") == 1
    assert b"Sources" in shown


def interrupted(folder: Path, *words: str) -> tuple[str, str]:
    """Ask, press Ctrl-C while the model speaks; what stood on both streams."""
    with serving(SlowModel(["word "] * 100, 0.3)) as model:
        running = subprocess.Popen(
            [*ARAG, "ask", QUESTION, "--model", "openai:slow", "--strategy", "naive", *words],
            cwd=folder,
            env={**os.environ, "ARAG_BASE_URL": model.address},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert model.requested.wait(30)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = running.communicate(timeout=30)
        took = time.monotonic() - began

        assert running.returncode == 130
        assert took < 2  # one second, and a busy machine
        assert err.endswith("Stopped.\n")
        assert "Traceback" not in err
        assert model.hung_up.wait(5)
    return out, err


def test_ctrl_c_hangs_up_within_a_second_and_prints_what_was_found(indexed: Path) -> None:
    out, _ = interrupted(indexed)

    written, found = out.split("\nFound until then\n")
    assert written.startswith("word ")
    assert found.startswith("- [")
    assert "Pump station › History" in found
    assert "The second one was replaced in 2019." in found


def test_a_stopped_question_leaves_a_trace_and_is_json_too(indexed: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"

    out, _ = interrupted(indexed, "--json", "--trace", str(file))

    stopped = json.loads(out)
    assert stopped["status"] == "stopped"
    assert stopped["trace"][0]["type"] == "run_started"
    assert json.loads(file.read_text("utf-8")) == stopped
    assert "stopped before an answer" in run_arag(indexed, "trace", file).out


def test_ctrl_c_while_the_agent_waits_for_its_model_prints_what_its_searches_found(
    indexed: Path,
) -> None:
    with playing(AgentModel(hang_in=1)) as model:
        running = subprocess.Popen(
            [*ARAG, "ask", QUESTION],
            cwd=indexed,
            env={**os.environ, "ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert model.hanging.wait(60)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = running.communicate(timeout=30)
        took = time.monotonic() - began

    assert running.returncode == 130
    assert took < 2
    assert out.startswith("Found until then\n- [")
    assert "The second one was replaced in 2019." in out
    assert err.endswith("Stopped.\n")


def test_each_step_of_the_agent_is_shown_as_it_happens(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        ran = ask_indexed("ask", QUESTION, ARAG_BASE_URL=model.address, ARAG_MODEL="any")

    assert ran.code == 0, ran.err
    call, came_back, hit = (
        ran.err.index('semantic_search query="second pump replaced"'),
        ran.err.index(" tokens of passages"),
        ran.err.index("] Pump station"),
    )
    assert call < came_back < hit
    assert ran.out.startswith("Answer 1: the second one was replaced in 2019 [1].\n")
    last = ran.err.rstrip().splitlines()[-1]
    assert last.startswith("agent, openai:any: 2 model requests, 200 tokens in, 40 out, ")
    assert ", cost unknown, " in last


def test_the_limits_of_the_command_line_reach_the_agent(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any", "ARAG_STRATEGY": "agent"}
        few = ask_indexed("ask", QUESTION, "--max-steps", "1", "--json", **where)
        told = ask_indexed("ask", QUESTION, "--max-steps", "1", **where)
        ask_indexed("ask", QUESTION, "--effort", "low", **where | {"ARAG_MODEL": "gpt-5-mini"})

    assert few.json["status"] == "forced_by_steps"
    assert "cut short at its last step (--max-steps)" in told.err
    assert model.requests[-1]["reasoning_effort"] == "low"
    for words in (("--max-steps", "0"), ("--budget", "0"), ("--cost", "-1")):
        assert ask_indexed("ask", QUESTION, *words).code == 2
    assert "agent.effort" in ask_indexed("ask", QUESTION, "--effort", "huge").err


def test_show_prompt_prints_what_is_sent_and_asks_nothing(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        shown = ask_indexed("ask", QUESTION, "--show-prompt", **where)
        assert model.requests == []
        ask_indexed("ask", QUESTION, **where)

    assert shown.code == 0, shown.err
    for name in ("keyword_search", "semantic_search", "read_chunk"):
        assert name in shown.out
    for message in model.requests[0]["messages"][:2]:
        assert message["content"] in shown.out


def test_a_fault_of_our_own_is_told_as_one_after_what_was_found(
    ask_indexed: Arag, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("agentic_rag.strategies.naive.list_passages", broken)
    ran = ask_indexed("ask", QUESTION, "--model", "none")

    assert ran.code == 70
    assert "ZeroDivisionError: oh" in ran.err
    assert ran.out.startswith("Found until then\n- [")


def test_a_model_without_tools_ends_in_an_error_that_names_what_works(ask_indexed: Arag) -> None:
    with playing(AgentModel(refuses_tools=True)) as model:
        ran = ask_indexed("ask", QUESTION, ARAG_BASE_URL=model.address, ARAG_MODEL="any")

    assert ran.code == 1
    assert "error: " in ran.err
    assert "naive" in ran.err.splitlines()[-1]
