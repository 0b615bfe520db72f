"""How `arag` ends when nobody reads any more, and when Ctrl-C comes before it has begun."""

import os
import signal
import subprocess
import sys
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


@pytest.mark.parametrize("module", ["typer.core", "agentic_rag.cli.streams", "agentic_rag.cli.app"])
def test_ctrl_c_while_modules_are_imported_is_silent(indexed: Path, module: str) -> None:
    """Python tells of each module it has imported; Ctrl-C comes when it tells of `module`."""
    running = subprocess.Popen(
        [sys.executable, "-X", "importtime", *ARAG[1:], "search", "pump"],
        cwd=indexed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line.rpartition("|")[2].strip() == module:
            break
    running.send_signal(signal.SIGINT)
    _out, err = running.communicate(timeout=60)

    assert running.returncode == 130
    told = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert told in ([], ["Stopped."])


def test_an_unknown_chunk_is_an_error_that_says_what_an_id_looks_like(ask_indexed: Arag) -> None:
    ran = ask_indexed("read", "foo")

    assert ran.code == 1
    assert ran.err == (
        "error: There is no chunk 'foo' here; ids look like 12-3, see `arag search`.\n"
    )


def test_one_thing_is_not_called_many(ask_indexed: Arag) -> None:
    shown = ask_indexed("show", "fees.txt").out

    assert "1 chunk, 2 sentences," in shown


OUTPUTS = [
    ("search", "pump"),
    ("search", "pump", "--json"),
    ("ask", "When was the second pump replaced?", "--model", "none"),
    ("ask", "When was the second pump replaced?", "--model", "none", "--json"),
    ("trace", "why.json"),
    ("list",),
    ("--help",),
    ("search", "--help"),
]


def _into(target: str, folder: Path, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    (folder / "why.json").write_text(
        '{"question": "Why?", "text": "So.", "status": "answered", "strategy": "naive", '
        '"model": "none", "seconds": 1}'
    )
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {target}', "sh", *ARAG, *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such shell")
@pytest.mark.parametrize("words", OUTPUTS)
def test_a_closed_standard_output_is_said_and_no_success(own: Path, words: tuple[str, ...]) -> None:
    ran = _into(">&-", own, words)

    assert ran.returncode == 1
    assert ran.stderr.startswith("error: Standard output is closed, ")
    assert ran.stderr.count("\n") == 1  # nothing was asked before it


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("words", OUTPUTS)
def test_a_full_standard_output_is_named(own: Path, words: tuple[str, ...]) -> None:
    ran = _into(">/dev/full", own, words)

    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        "error: Standard output cannot be written to (No space left on device); "
        "send it to another place."
    )
    assert ran.stderr.count("error") == 1
