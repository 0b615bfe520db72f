"""`arag chat`: turns, commands, and conversations that outlive the program."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, run_arag, start_arag
from tests.cli.slow_model import SlowModel, serving

QUESTIONS = [
    "When was the second pump replaced?",
    "And the first one?",
    "Why?",
    "第二台水泵呢？",
    "Who says so?",
]


def test_each_line_of_a_pipe_is_a_question_and_every_turn_is_saved(own: Path) -> None:
    typed = "When was the second pump replaced?\n\nHow much is the yearly fee?\n"
    ran = run_arag(own, "chat", "--model", "none", typed=typed)

    assert ran.code == 0, ran.err
    assert ran.out.count("\nSources\n") == 2
    assert ran.out.index("replaced in 2019") < ran.out.index("12 euros")
    (kept,) = run_arag(own, "chat", "--list", "--json").json["sessions"]
    assert kept["turns"] == 2
    assert kept["title"] == "When was the second pump replaced?"
    assert f"arag chat --resume {kept['id']}" in ran.err
    assert kept["id"] in run_arag(own, "chat", "--list").out


def test_five_turns_are_kept_when_it_is_killed_in_the_sixth_and_go_on_when_resumed(
    own: Path,
) -> None:
    with playing(AgentModel(hang_in=6)) as model:
        settings = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        running = subprocess.Popen(
            [*ARAG, "chat"],
            cwd=own,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert running.stdin
        running.stdin.write("\n".join([*QUESTIONS, "And then?", ""]).encode())
        running.stdin.flush()
        assert model.hanging.wait(120)
        running.send_signal(signal.SIGKILL)
        out, _ = running.communicate(timeout=30)
        assert running.returncode == -signal.SIGKILL
        for number in range(1, 6):
            assert f"Answer {number}: the second one was replaced in 2019 [1]." in out.decode()

        (kept,) = run_arag(own, "chat", "--list", "--json").json["sessions"]
        assert kept["turns"] == 5
        model.hang_in = 0
        before = len(model.requests)
        again = run_arag(own, "chat", "--resume", "last", "--json", typed="And then?\n", **settings)

        assert again.code == 0, again.err
        assert "5 turns; last: Who says so?" in again.err
        answer = json.loads(again.out)
        assert answer["status"] == "answered"
        assert answer["citations"][0]["title"] == "Pump station"
        asked = json.dumps(model.requests[before:], ensure_ascii=False)
        assert "And then?" in asked
        assert "Who says so?" in asked  # what was said before is known
    (kept,) = run_arag(own, "chat", "--list", "--json").json["sessions"]
    assert kept["turns"] == 6
    saved = json.loads((own / ".arag" / "sessions" / f"{kept['id']}.json").read_text("utf-8"))
    assert [turn["question"] for turn in saved["turns"]] == [*QUESTIONS, "And then?"]
    assert all(turn["evidence"] for turn in saved["turns"])


def test_commands_show_the_last_sources_help_and_the_way_out(own: Path) -> None:
    typed = "/sources\n/help\n/what now\nHow much is the yearly fee?\n/sources\n/quit\nNot asked.\n"
    ran = run_arag(own, "chat", "--model", "none", typed=typed)

    assert "There is no answer yet." in ran.err
    assert "/sources  the sources of the last answer" in ran.err
    assert "There is no command /what; /help lists them all." in ran.err
    assert ran.out.count("notes/fees.txt") == 2
    assert run_arag(own, "chat", "--list", "--json").json["sessions"][0]["turns"] == 1


def test_with_json_every_line_on_standard_output_is_an_object(own: Path) -> None:
    typed = "/sources\n/help\n/what now\nHow much is the yearly fee?\n/sources\n/quit\n"
    ran = run_arag(own, "chat", "--model", "none", "--json", typed=typed)

    before, answer, after = map(json.loads, ran.out.splitlines())
    assert before == {"command": "/sources", "citations": [], "unsupported": []}
    assert answer["status"] == "answered"
    assert after == {"command": "/sources", "citations": answer["citations"], "unsupported": []}
    assert after["citations"]
    assert "/sources  the sources of the last answer" in ran.err
    name = run_arag(own, "chat", "--list", "--json").json["sessions"][0]["id"]
    assert run_arag(own, "chat", "--delete", "last", "--json").json == {"deleted": name}


def test_with_json_a_question_that_fails_has_a_line_too(own: Path) -> None:
    with playing(AgentModel(refuses_tools=True)) as model:
        words = ("chat", "--strategy", "agent", "--json")
        where = {"ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"}
        ran = run_arag(own, *words, typed="Why?\nHow?\n", **where)

    assert ran.code == 3
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["question"], one["status"]) for one in lines] == [
        ("Why?", "failed"),
        ("How?", "failed"),
    ]
    assert "naive" in lines[0]["notices"][-1]["message"]


def test_the_last_conversation_is_the_newest_that_can_be_read(own: Path) -> None:
    for question in ("How much is the fee?", "When was the pump replaced?"):
        run_arag(own, "chat", "--model", "none", typed=f"{question}\n")
    names = [one["id"] for one in run_arag(own, "chat", "--list", "--json").json["sessions"]]
    spoilt, whole = names
    (own / ".arag" / "sessions" / f"{spoilt}.json").write_text("{")

    resumed = run_arag(own, "chat", "--model", "none", "--resume", "last", typed="Why?\n")
    assert resumed.code == 0, resumed.err
    assert f"warning: .arag/sessions/{spoilt}.json is not a conversation" in resumed.err
    assert f"conversation {whole}, 1 turn; last: How much is the fee?" in resumed.err

    (own / ".arag" / "sessions" / f"{spoilt}.json").write_text("{")  # the newest once more
    rows = [line.split("\t") for line in run_arag(own, "chat", "--list").out.splitlines()]
    assert [(row[0], row[2], row[3], row[4] != "") for row in rows] == [
        (spoilt, "", "", True),
        (whole, "2 turns", "How much is the fee?", False),
    ]
    listed = run_arag(own, "chat", "--list", "--json").json["sessions"]
    assert [one["problem"] for one in listed] == [rows[0][4], ""]
    assert "cannot be read" not in listed[0]["title"]

    deleted = run_arag(own, "chat", "--delete", "last")
    assert deleted.out == f"deleted {whole}\n"
    assert spoilt in deleted.err
    only_damaged = run_arag(own, "chat", "--resume", "last", typed="Why?\n")
    assert only_damaged.code == 1
    assert f"arag chat --delete {spoilt}" in only_damaged.err


def test_a_strategy_that_is_not_there_is_told_before_the_first_question(own: Path) -> None:
    ran = run_arag(own, "chat", "--strategy", "nave", typed="")

    assert ran.code == 1
    assert "There is no strategy 'nave'" in ran.err


def test_a_deleted_conversation_cannot_be_resumed(own: Path) -> None:
    run_arag(own, "chat", "--model", "none", typed="How much is the fee?\n")
    name = run_arag(own, "chat", "--list", "--json").json["sessions"][0]["id"]

    assert run_arag(own, "chat", "--delete", name).out == f"deleted {name}\n"
    ran = run_arag(own, "chat", "--resume", name, typed="Why?\n")
    assert ran.code == 1
    assert "arag chat --list" in ran.err
    assert run_arag(own, "chat", "--resume", "last", typed="Why?\n").code == 1
    assert run_arag(own, "chat", "--list").err == "No conversation has been saved here yet.\n"


def test_nothing_typed_leaves_no_conversation(own: Path) -> None:
    for typed in ("", "\n \n"):
        ran = run_arag(own, "chat", "--model", "none", typed=typed)
        assert ran.code == 1
        assert ran.err == "Nothing was asked: standard input holds no question.\n"
    assert run_arag(own, "chat", "--list", "--json").json["sessions"] == []


def test_list_and_delete_together_are_a_usage_error(own: Path) -> None:
    assert run_arag(own, "chat", "--list", "--delete", "last").code == 2


def test_a_model_that_fails_is_told_and_the_next_question_is_asked(own: Path) -> None:
    with playing(AgentModel(refuses_tools=True)) as model:
        ran = run_arag(
            own,
            "chat",
            "--strategy",
            "agent",
            typed="Why?\nHow?\n",
            ARAG_BASE_URL=model.address,
            ARAG_MODEL="any",
        )

    assert ran.code == 3
    assert ran.err.count("naive") >= 2  # names what works without tools
    assert "Traceback" not in ran.err


def test_broken_bytes_in_a_pipe_do_not_end_the_conversation(own: Path) -> None:
    ran = subprocess.run(
        [*ARAG, "chat", "--model", "none", "--json"],
        cwd=own,
        input=b"\xef\xbb\xbfHow much is \xff the yearly fee?\n",
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["question"].startswith("How much is ")


def test_ctrl_c_ends_a_piped_conversation_with_what_was_found(own: Path) -> None:
    with serving(SlowModel(["word "] * 100, 0.3)) as model:
        running = subprocess.Popen(
            [*ARAG, "chat", "--model", "openai:slow", "--strategy", "naive"],
            cwd=own,
            env={**os.environ, "ARAG_BASE_URL": model.address},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stdin
        running.stdin.write("When was the second pump replaced?\n")
        running.stdin.flush()
        assert model.requested.wait(30)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)

        assert running.returncode == 130
        assert "Found until then" in out
        assert "replaced in 2019" in out
        assert err.endswith("Stopped.\n")
        assert model.hung_up.wait(5)


def test_on_a_terminal_ctrl_c_ends_the_answer_and_not_the_conversation(own: Path) -> None:
    with serving(SlowModel(["word "] * 100, 0.3)) as model:
        outer, inner = pty.openpty()
        running = subprocess.Popen(
            [*ARAG, "chat", "--model", "openai:slow", "--strategy", "naive"],
            cwd=own,
            env={**os.environ, "ARAG_BASE_URL": model.address, "TERM": "xterm"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        shown = _until(outer, b"> ")
        os.write(outer, b"When was the second pump replaced?\n")
        assert model.requested.wait(30)
        shown += _until(outer, b"word")
        running.send_signal(signal.SIGINT)
        shown += _until(outer, b"Stopped.")
        assert model.hung_up.wait(5)
        os.write(outer, b"/help\n")
        shown += _until(outer, b"/quit     end")
        os.write(outer, b"/quit\n")
        assert running.wait(timeout=30) == 0
        os.close(outer)

    assert b"Found until then" in shown
    assert "search …\r\x1b[K".encode() in shown  # what is waited for, and then wiped away
    assert b"Traceback" not in shown


def _until(terminal: int, wanted: bytes, seconds: float = 60) -> bytes:
    shown, end = b"", time.monotonic() + seconds
    while wanted not in shown:
        assert time.monotonic() < end, shown
        shown += os.read(terminal, 4096)
    return shown


def test_a_list_comes_without_loading_a_model(own: Path) -> None:
    ran = start_arag(own, "chat", "--list", ARAG_MODEL="openai:needs-a-key")

    assert ran.code == 0, ran.err


def test_a_turn_that_failed_is_no_history_of_the_next(own: Path) -> None:
    words = ("--model", "any", "--strategy", "agent")
    nowhere = "http://127.0.0.1:9/v1"
    failed = run_arag(own, "chat", *words, typed="How long is it?\n", ARAG_BASE_URL=nowhere)
    with playing(AgentModel()) as model:
        address = {"ARAG_BASE_URL": model.address}
        resumed = ("chat", "--resume", "last", *words)
        ran = run_arag(own, *resumed, typed="When was the second pump replaced?\n", **address)

    assert (failed.code, ran.code) == (3, 0), ran.err
    assert model.requests[0]["tools"]  # and not the request that makes a follow-up self-contained
    assert "How long is it?" not in str(model.requests[0]["messages"])
