"""Ctrl-C at different moments of an answer: what came is shown, with its sources, once."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, run_arag

QUESTION = "When was the second pump replaced?"
SAYS = (
    "The second ",
    "pump was replaced in 2019 ",
    "[{id}",
    "]. It stands ",
    "in the Blue Bridge station [{id}]. ",
    "The first",
    " one is older.",
)


def stopped(
    folder: Path, model: AgentModel, *words: str, wait: float = 0.3
) -> tuple[str, str, float]:
    """Ask, press Ctrl-C `wait` seconds after the model fell silent; both streams, and how long
    after the press the program ended."""
    with playing(model):
        running = subprocess.Popen(
            [*ARAG, "ask", QUESTION, *words],
            cwd=folder,
            env={**os.environ, "ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert model.hanging.wait(60)
        time.sleep(wait)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = running.communicate(timeout=30)
        took = time.monotonic() - began
    assert running.returncode == 130, err
    assert err.endswith("Stopped.\n")
    assert "Traceback" not in err
    return out, err, took


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (1, "The second …"),
        (2, "The second pump was replaced in 2019 …"),
        (3, "The second pump was replaced in 2019 …"),  # half a mark says nothing
        (4, "The second pump was replaced in 2019 [1]. It stands …"),
        (
            6,
            "The second pump was replaced in 2019 [1]. It stands in the Blue Bridge station [1]. "
            "The first …",
        ),
    ],
)
def test_every_word_that_came_is_printed_with_the_sources_of_its_marks(
    indexed: Path, pieces: int, shown: str
) -> None:
    out, _, took = stopped(indexed, AgentModel(hang_in=1, hang_after=pieces, says=SAYS))

    assert took < 2
    assert out.splitlines()[0] == shown
    found = "\nAlso found until then\n- [" if "[1]" in shown else "\nFound until then\n- ["
    assert found in out
    assert ("\nSources\n[1] Pump station › History" in out) is ("[1]" in shown)
    assert "\n2. " not in out and "\n1. " not in out  # numbers are those of the marks alone
    if "[1]" in shown:
        sources, more = out.split("Also found until then")
        assert "replaced in 2019." in sources.split("Sources")[1]
        assert "Pump station › History" not in more


def test_words_on_a_terminal_are_written_once_and_end_in_their_sources(indexed: Path) -> None:
    with playing(AgentModel(hang_in=1, hang_after=1, says=SAYS)) as model:
        outer, inner = pty.openpty()
        running = subprocess.Popen(
            [*ARAG, "ask", QUESTION],
            cwd=indexed,
            env={**os.environ, "ARAG_BASE_URL": model.address, "ARAG_MODEL": "any"},
            stdout=inner,
            stderr=subprocess.PIPE,
        )
        os.close(inner)
        assert model.hanging.wait(60)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        shown = b""
        try:
            while piece := os.read(outer, 1000):
                shown += piece
        except OSError:  # the other end was closed
            pass
        running.wait(timeout=30)
        os.close(outer)

    assert running.returncode == 130
    assert shown.split(b"Found until then")[0].count(b"The second") == 1
    assert b"Found until then" in shown


def test_a_saved_trace_counts_the_time_and_the_tokens_up_to_the_stop(
    indexed: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    model = AgentModel(hang_in=1, hang_after=4, says=SAYS)

    out, _, _ = stopped(indexed, model, "--json", "--trace", str(file), wait=1.0)

    answer: dict[str, Any] = json.loads(out)
    assert json.loads(file.read_text("utf-8")) == answer
    assert answer["text"] == "The second pump was replaced in 2019 [1]. It stands"
    assert [one["number"] for one in answer["citations"]] == [1]
    returned = next(event for event in answer["trace"] if event["type"] == "tool_returned")
    assert answer["usage"]["retrieved_tokens"] == returned["retrieved_tokens"] > 0
    assert answer["usage"]["model_requests"] == 2
    assert answer["usage"]["estimated"]
    assert answer["usage"]["input_tokens"] > 100  # the server's count of the first, ours of this
    assert answer["seconds"] >= returned["seconds"] + 1.0
    asking = answer["trace"][-1]
    assert (asking["type"], asking["error"]) == ("step_finished", "stopped")
    assert asking["duration"] >= 1.0

    shown = run_arag(indexed, "trace", file).out
    assert f" s  think: stopped after {asking['duration']:.1f} s" in shown
    assert "[1] Pump station › History" in shown
    assert "\nstopped before an answer; agent, openai:any: 2 model requests, about " in shown


def test_a_request_without_any_reply_has_its_line_in_the_trace_and_before_it_live(
    indexed: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"

    _, err, _ = stopped(indexed, AgentModel(hang_in=1), "--trace", str(file))

    asking = [line for line in err.splitlines() if line.startswith("asking the model, about ")]
    assert len(asking) == 2  # one a request, where standard error is no terminal
    assert "think: stopped after " in run_arag(indexed, "trace", file).out


def test_text_before_any_search_is_not_shown_as_an_answer(indexed: Path) -> None:
    class FromMemory(AgentModel):
        def reply(self, body: dict[str, Any]) -> dict[str, Any]:
            self.answers += 1
            return {"role": "assistant", "content": "".join(self.says)}

    model = FromMemory(hang_in=1, hang_after=2, says=("I think ", "it was 1999."))

    out, _, _ = stopped(indexed, model)

    assert out == ""
