"""`verdicts.jsonl` of a run's directory: what judge models said, so that none is asked twice.

A line is a `Verdict`. A last line that a crash cut short is passed over and overwritten by none:
the next one begins on a line of its own.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from agentic_rag.errors import AragError
from agentic_rag.evaluation.measures.prompting import Item, Task
from agentic_rag.strategies.trace import Record, Usage

VERDICTS = "verdicts.jsonl"


class VerdictsUnusable(AragError):
    """The file of verdicts cannot be read or written."""


class Verdict(Record):
    """One verdict: of which model, by which instructions (`prompt`, their hash), on which item
    (its hash). `meant` is "" where its word was not clear; `usage` is what asking cost."""

    task: Task
    model: str
    prompt: str
    item: str
    said: str
    meant: str
    usage: Usage = Usage()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a verdict is known by."""
        return self.task, self.model, self.prompt, self.item


class Verdicts:
    """The verdicts of a run. One process writes at a time, as with its results."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / VERDICTS
        self._known: dict[tuple[str, str, str, str], Verdict] = {}
        for verdict in _read(self._path):
            self._known.pop(verdict.key, None)  # the latest is the last
            self._known[verdict.key] = verdict

    def find(self, task: Task, model: str, prompt: str, item: Item) -> Verdict | None:
        """The verdict of this model by these instructions, if there is one."""
        return self._known.get((task, model, prompt, item.hash))

    def judged_by(self, task: Task) -> tuple[str, str] | None:
        """The model and the instructions of the latest verdict of a task; None where there is
        none."""
        latest = next((v for v in reversed(self._known.values()) if v.task == task), None)
        return (latest.model, latest.prompt) if latest else None

    @property
    def cost(self) -> float:
        """What the verdicts have cost in US dollars, as far as it is known."""
        return sum(verdict.usage.cost or 0.0 for verdict in self._known.values())

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict; it is on disk when this returns."""
        line = verdict.model_dump_json() + "\n"
        try:
            with self._path.open("ab+") as file:
                if file.tell() and not _ends_in_line(self._path):
                    line = "\n" + line
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise VerdictsUnusable(
                f"{self._path} cannot be written ({error.strerror}); make room or correct its "
                "permissions, then judge again: what is in it is kept."
            ) from None
        self._known.pop(verdict.key, None)  # the latest is the last
        self._known[verdict.key] = verdict


def _read(path: Path) -> Iterable[Verdict]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise VerdictsUnusable(
            f"{path} cannot be read ({error.strerror}); correct its permissions."
        ) from None
    for line in lines:
        try:
            yield Verdict.model_validate_json(line)
        except ValidationError:  # cut short by a crash: that answer is judged again
            continue


def _ends_in_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
