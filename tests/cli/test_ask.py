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


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_question_without_quotes_is_shown_with_them(ask_indexed: Arag, command: str) -> None:
    ran = ask_indexed(command, "how", "long", "--model", "none", "is the fee due?")

    assert ran.code == 2
    told = " ".join(ran.err.replace("│", " ").split())
    assert "A question goes in quotes: arag ask 'how long is the fee due?'" in told


@pytest.mark.parametrize("command", [("ask", QUESTION), ("chat",), ("search", "pump")])
def test_an_empty_path_is_a_usage_error_that_names_the_option(
    ask_indexed: Arag, command: tuple[str, ...]
) -> None:
    ran = ask_indexed(*command, "--path", " ")

    assert (ran.code, ran.out) == (2, "")
    assert "--path: It is empty; give a glob" in ran.err


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


@pytest.mark.parametrize("command", ["ask", "chat"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--effort", "huge"), "'minimal', 'low'"),
        (("--effort", ""), "'minimal', 'low'"),
        (("--budget", "5"), "greater than or equal to 1000"),
        (("--budget", "0"), "1"),
        (("--cost", "0"), "greater than 0"),
        (("--cost", "nan"), "finite number"),
        (("--cost", "inf"), "finite number"),
        (("--max-steps", "0"), "1"),
    ],
)
def test_a_wrong_limit_is_a_usage_error_that_names_its_option(
    ask_indexed: Arag, command: str, words: tuple[str, str], said: str
) -> None:
    question = (QUESTION,) if command == "ask" else ()
    ran = ask_indexed(command, *question, *words, typed=f"{QUESTION}\n")

    assert ran.code == 2
    told = " ".join(ran.err.replace("│", " ").split())
    assert f"Invalid value for {words[0]}" in told.replace("'--", "--").replace("':", ":")
    assert said in told
    assert "agent" not in told  # the section of the settings that it ends in


def test_a_wrong_setting_beside_an_option_is_not_laid_to_the_option(own: Path) -> None:
    (own / "arag.toml").write_text("[agent]\nmax_steps = 0\n")
    ran = run_arag(own, "ask", QUESTION, "--effort", "low")

    assert ran.code == 1
    assert "'agent.max_steps'" in ran.err
    assert "arag.toml" in ran.err


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


def test_show_prompt_is_of_the_strategy_that_would_answer(ask_indexed: Arag) -> None:
    with serving(SlowModel(REPLY, 0.01)) as model:
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        words = ("ask", QUESTION, "--strategy", "naive")
        shown = ask_indexed(*words, "--show-prompt", **where)
        data = ask_indexed(*words, "--show-prompt", "--json", **where).json
        assert model.bodies == []
        ask_indexed(*words, **where)
        sent = [message["content"] for message in model.bodies[0]["messages"]]

    assert "replaced in 2019" in shown.out
    assert "keyword_search" not in shown.out
    assert [data["system"], data["user"]] == sent
    assert all(text in shown.out for text in sent)
    assert (data["strategy"], data["tools"]) == ("naive", [])


def test_show_prompt_as_json_holds_the_tools_as_they_are_sent(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        data = ask_indexed("ask", QUESTION, "--show-prompt", "--json", **where).json
        ask_indexed("ask", QUESTION, **where)
        sent = model.requests[0]

    assert data["strategy"] == "agent"
    assert [data["system"], data["user"]] == [m["content"] for m in sent["messages"][:2]]
    assert [tool["name"] for tool in data["tools"]] == [
        tool["function"]["name"] for tool in sent["tools"]
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "none"), "No model would be asked, because there is no model"),
        (("--model", "none", "--strategy", "naive", "--json"), "No model would be asked"),
        (("--model", "none", "--strategy", "agent"), "needs one that can call tools"),
        (("--strategy", "magic"), "There is no strategy 'magic'"),
    ],
)
def test_a_prompt_that_would_not_be_sent_is_refused_in_a_sentence(
    ask_indexed: Arag, words: tuple[str, ...], said: str
) -> None:
    ran = ask_indexed("ask", QUESTION, "--show-prompt", *words)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_show_prompt_saves_no_trace_and_says_so(ask_indexed: Arag, tmp_path: Path) -> None:
    ran = ask_indexed("ask", QUESTION, "--show-prompt", "--trace", tmp_path / "t.json")

    assert ran.code == 2
    assert "--show-prompt asks nothing" in ran.err
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_the_agent_without_a_model_is_one_error_and_nothing_else(
    ask_indexed: Arag, command: str
) -> None:
    question = (QUESTION,) if command == "ask" else ()
    words = ("--model", "none", "--strategy", "agent")
    ran = ask_indexed(command, *question, *words, typed=f"{QUESTION}\n")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: There is no model, and the strategy `agent` needs one")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("file", ["no/such/folder/t.json", ".", "pump.md/t.json"])
def test_a_trace_that_cannot_be_saved_is_told_before_anything_is_asked(
    own: Path, file: str
) -> None:
    with playing(AgentModel()) as model:
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        ran = run_arag(
            own / "notes", "ask", QUESTION, "--kb", own / ".arag", "--trace", file, **where
        )

    assert model.requests == []
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --trace cannot write {Path(file)} (")
    assert ran.err.count("\n") == 1


def test_a_trace_goes_to_a_file_and_not_to_standard_output(own: Path) -> None:
    ran = run_arag(own, "ask", QUESTION, "--model", "none", "--trace", "-")

    assert (ran.code, ran.out) == (1, "")
    assert "`--json` prints the same on standard output" in ran.err
    assert not (own / "-").exists()


def test_an_answer_is_shown_though_its_trace_cannot_be_saved(ask_indexed: Arag) -> None:
    ran = ask_indexed("ask", QUESTION, "--model", "none", "--trace", "/dev/full")

    assert ran.code == 3
    assert "replaced in 2019" in ran.out
    assert "--trace could not write /dev/full" in ran.err


def test_a_fault_of_our_own_is_told_as_one_after_what_was_found(
    ask_indexed: Arag, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("agentic_rag.strategies.answering.list_passages", broken)
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


def test_passages_that_stand_in_for_an_answer_end_in_code_3(ask_indexed: Arag) -> None:
    with playing(AgentModel()) as model:
        words = ("--model", "any", "--strategy", "agent", "--budget", "1000")
        ran = ask_indexed("ask", QUESTION, *words, ARAG_BASE_URL=model.address)

    assert (ran.code, model.requests) == (3, [])
    assert "too small to ask even once" in ran.err
