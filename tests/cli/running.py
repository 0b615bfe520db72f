"""Running `arag`: in this process, which is quick, or in one of its own, where that matters."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentic_rag.cli.app import app

ARAG = (sys.executable, "-m", "agentic_rag")


@dataclass(frozen=True)
class Ran:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Arag = Callable[..., Ran]


def run_arag(folder: Path, *words: str | Path, typed: str | None = None, **environment: str) -> Ran:
    """`arag WORDS…` in `folder`, in this process; `typed` comes by standard input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ran = CliRunner().invoke(
            app, [*map(str, words)], input=typed, env=environment, prog_name="arag"
        )
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


def start_arag(folder: Path, *words: str | Path, **environment: str) -> Ran:
    """`arag WORDS…` in `folder`, in a process of its own, as from a shell."""
    ran = subprocess.run(
        [*ARAG, *map(str, words)],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return Ran(ran.returncode, ran.stdout.decode("utf-8"), ran.stderr.decode("utf-8"))


NOTES = {
    "pump.md": (
        "# Pump station\n\n## History\n\nThe Blue Bridge station has two pumps. "
        "The second one was replaced in 2019.\n"
    ),
    "fees.txt": "The yearly fee is 12 euros. It is due in March, [in cash] or by card.\n",
    "泵站.md": "# 蓝桥泵站\n\n蓝桥泵站有两台水泵。第二台水泵于2019年更换。\n",
    "sub/other.txt": "Apples keep best in a cold cellar.\n",
}


def write_notes(folder: Path) -> Path:
    """Four small documents, one of them Chinese, one in a folder of its own."""
    notes = folder / "notes"
    for name, text in NOTES.items():
        path = notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return notes
