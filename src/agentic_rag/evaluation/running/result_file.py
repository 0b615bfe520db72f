"""A run's directory: what was asked (`run.json`, `questions.jsonl`), what came of it
(`results.jsonl`, a line for each finished question, appended at once).

A last line that a crash cut short is passed over: its question is asked again.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agentic_rag.errors import AragError
from agentic_rag.evaluation.records import GoldQuestion, Result, RunInfo

RUN = "run.json"
QUESTIONS = "questions.jsonl"
RESULTS = "results.jsonl"
_LOCK = "run.lock"


class NoRun(AragError):
    """There is no run where one was looked for, or its files cannot be read."""


class RunBusy(AragError):
    """Another program is at work on the run."""


class RunUnwritable(AragError):
    """A run's files cannot be written."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it is on disk. `questions` are those that are asked, in their order; `results` one
    for each variant and question that is finished: the variants in their order, and of each the
    questions in theirs."""

    directory: Path
    info: RunInfo
    questions: tuple[GoldQuestion, ...]
    results: tuple[Result, ...]


def read_run(directory: Path) -> Run:
    """The run in `directory`. Raises `NoRun` in a sentence that says what to do."""
    info = _info(directory)
    try:
        lines = (directory / QUESTIONS).read_bytes().splitlines()
        questions = tuple(GoldQuestion.model_validate_json(line) for line in lines)
    except (OSError, ValidationError):
        raise NoRun(
            f"{directory / QUESTIONS} is missing or damaged; run the evaluation again in a new "
            "folder."
        ) from None
    place = {question.qid: number for number, question in enumerate(questions)}
    variant = {one.name: number for number, one in enumerate(info.variants)}
    kept = [
        result
        for result in read_results(directory)
        if result.qid in place and result.variant in variant
    ]
    kept.sort(key=lambda result: (variant[result.variant], place[result.qid]))
    return Run(directory, info, questions, tuple(kept))


def read_results(directory: Path) -> list[Result]:
    """The results so far, of two of one variant and question the later one."""
    found: dict[tuple[str, str], Result] = {}
    try:
        content = (directory / RESULTS).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NoRun(f"{directory / RESULTS} cannot be read ({error.strerror}).") from None
    for line in content.splitlines():
        try:
            result = Result.model_validate_json(line)
        except ValidationError:  # cut short by a crash
            continue
        found[result.key] = result
    return list(found.values())


def has_run(directory: Path) -> bool:
    """Whether a run has been begun there."""
    return (directory / RUN).is_file()


def begin_run(directory: Path, info: RunInfo, questions: Sequence[GoldQuestion]) -> None:
    """Make the run's directory. Raises `RunUnwritable`."""
    lines = "".join(f"{question.model_dump_json()}\n" for question in questions)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _replaced(directory / QUESTIONS, lines)
        _replaced(directory / RUN, info.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise RunUnwritable(
            f"{directory} cannot be written ({error.strerror}); name another folder with -o."
        ) from None


class ResultFile:
    """Where results are appended; each is on disk when `add` returns. It blocks."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESULTS

    def add(self, result: Result) -> None:
        """Append a result. Raises `RunUnwritable`."""
        line = result.model_dump_json().encode("utf-8") + b"\n"
        try:
            with self._path.open("ab+") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":  # a line that a crash cut short
                        line = b"\n" + line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunUnwritable(
                f"{self._path} cannot be written ({error.strerror}); make room, then run the same "
                "command again: what is in it is kept."
            ) from None


@contextmanager
def run_lock(directory: Path) -> Iterator[None]:
    """One program at a time works on a run. Raises `RunBusy`."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunBusy(
            f"Another program is at work on {directory}; wait for it, or name another folder "
            "with -o."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _info(directory: Path) -> RunInfo:
    path = directory / RUN
    try:
        return RunInfo.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise NoRun(
            f"There is no run in {directory}; name the folder that `arag eval run -o` was given."
        ) from None
    except OSError as error:
        raise NoRun(f"{path} cannot be read ({error.strerror}).") from None
    except ValidationError:
        raise NoRun(
            f"{path} is damaged or of another version; run the evaluation again in a new folder."
        ) from None


def _replaced(path: Path, text: str) -> None:
    draft = path.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
