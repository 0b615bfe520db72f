"""What a person waits for at a cold shell: whole processes of the command line."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.places import ROOT, say
from benchmarks.timing import Line, Times, seconds

_RUNS = 5


def arag(work: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own. Raises CalledProcessError."""
    installed = Path(sys.executable).with_name("arag")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "agentic_rag"]
    # The settings of the person who runs this must not matter.
    settings = {k: v for k, v in os.environ.items() if not k.startswith("ARAG_")}
    settings["PYTHONPATH"] = str(ROOT / "src")
    return subprocess.run(
        [*program, *arguments],
        cwd=work,
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )


def lines(work: Path) -> list[Line]:
    """`arag --help`, `arag search` in three modes and `arag read` on this repository's docs."""
    work.mkdir(parents=True, exist_ok=True)
    kb = ["--kb", str(work / "kb")]
    say("Indexing this repository's docs for the shell (once, with the real embedder) …")
    try:
        arag(work, ["index", str(ROOT / "docs"), *kb])
    except subprocess.CalledProcessError as error:
        say(f"arag index failed, so the shell is not timed: {error.stderr.strip()[-500:]}")
        return []
    query = "how are documents cut into chunks"
    commands = [
        ("arag --help", ["--help"], 0.3),
        ("arag search, hybrid", ["search", query, *kb], 1.5),
        ("arag search --mode keyword", ["search", "chunks", "--mode", "keyword", *kb], 1.5),
        ("arag search --mode bm25", ["search", query, "--mode", "bm25", *kb], 1.5),
        ("arag read", ["read", "1-1", *kb], 1.5),
    ]
    found = []
    for name, arguments, target in commands:
        arag(work, arguments)  # the first run pays for what the disk has not read yet
        runs = Times(tuple(seconds(lambda a=arguments: arag(work, a)) for _ in range(_RUNS)))  # type: ignore[misc]
        found.append(Line(f"cold shell: {name}", runs, target=target))
    return found
