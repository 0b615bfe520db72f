"""How `arag` ends when nobody reads any more, and when Ctrl-C comes before it has begun."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.running import ARAG, Arag


@pytest.mark.parametrize(
    "words",
    [
        ("search", "pump", "-k", "50"),
        ("ask", "When was the second pump replaced?", "--model", "none"),
        ("read", "1-1"),
        ("list",),
        ("show", "1"),
        ("status",),
    ],
)
def test_a_pipe_that_nobody_reads_gives_141_and_no_word(
    indexed: Path, words: tuple[str, ...]
) -> None:
    unread, pipe = os.pipe()
    os.close(unread)
    ran = subprocess.run(
        [*ARAG, *words], cwd=indexed, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(pipe)

    assert ran.returncode == 141
    assert "rror" not in ran.stderr


@pytest.mark.parametrize("after", [0.06, 0.12, 0.2])
def test_ctrl_c_while_modules_are_imported_is_silent(indexed: Path, after: float) -> None:
    running = subprocess.Popen(
        [*ARAG, "search", "pump"],
        cwd=indexed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    _out, err = running.communicate(timeout=60)

    # Before Python itself is ready, the system ends it.
    assert running.returncode in (130, -signal.SIGINT)
    assert err in ("", "Stopped.\n")


def test_an_unknown_chunk_is_an_error_that_says_what_an_id_looks_like(ask_indexed: Arag) -> None:
    ran = ask_indexed("read", "foo")

    assert ran.code == 1
    assert ran.err == (
        "error: There is no chunk 'foo' here; ids look like 12-3, see `arag search`.\n"
    )


def test_one_thing_is_not_called_many(ask_indexed: Arag) -> None:
    shown = ask_indexed("show", "fees.txt").out

    assert "1 chunk, 2 sentences," in shown
