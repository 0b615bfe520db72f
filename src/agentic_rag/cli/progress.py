"""Progress of indexing, on standard error: a bar per stage, or plain lines where no terminal is."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentic_rag.cli import streams

if TYPE_CHECKING:
    from rich.progress import TaskID

    from agentic_rag.knowledge_base import Progress

SECONDS_BETWEEN_LINES = 3.0
FORETOLD = 0.05  # of the whole; before that, the speed says little
STAGES = {
    "scan": "finding files",
    "parse": "reading",
    "ocr": "reading scans",
    "embed": "embedding",
    "write": "writing",
    "index": "indexing",
}

Report = Callable[["Progress"], None]


@contextmanager
def shown(*, quiet: bool) -> Iterator[Report]:
    """Yields what is to be called with each `Progress`."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        with _bars() as report:
            yield report
    else:
        yield _lines()


@contextmanager
def _bars() -> Iterator[Report]:
    from rich.progress import BarColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            begun = can_be_foretold(task.completed, task.total)
            return super().render(task) if begun else Text("")

    bars = Bars(
        TextColumn("{task.description:<13}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}", markup=False),
        TextColumn("{task.fields[rate]}", markup=False, style="dim"),
        TimeLeft(),
        TextColumn("{task.fields[detail]}", markup=False, style="dim"),
        console=streams.error_console(),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def report(progress: "Progress") -> None:
        if progress.stage not in tasks:
            tasks[progress.stage] = bars.add_task(
                STAGES[progress.stage], total=progress.total, count="", rate="", detail=""
            )
        task = tasks[progress.stage]
        speed = bars.tasks[bars.task_ids.index(task)].speed
        bars.update(
            task,
            completed=progress.done,
            total=progress.total,
            count=_count(progress),
            rate=_rate(speed) if speed else "",
            detail=streams.one_line(progress.detail)[-40:],
        )

    with bars:
        yield report


def _lines() -> Report:
    began: dict[str, float] = {}
    told: dict[str, tuple[float, float]] = {}  # by stage: when, and how much was done

    def report(progress: "Progress") -> None:
        now = time.monotonic()
        # What an embedding is waiting for is told at once, as nothing else moves meanwhile.
        waiting = progress.detail if progress.stage == "embed" else ""
        # A stage that reports often must not silence another, nor is its end left out.
        last, done = told.get(progress.stage, (-SECONDS_BETWEEN_LINES, -1))
        at_the_end = progress.unit == "documents" and progress.done == progress.total != done
        if not waiting and not at_the_end and now - last < SECONDS_BETWEEN_LINES:
            return
        start = began.setdefault(progress.stage, now)
        told[progress.stage] = (now, progress.done)
        line = f"{STAGES[progress.stage]}: {_count(progress)}"
        if progress.done and now > start:
            rate = progress.done / (now - start)
            line += f", {_rate(rate)}"
            if progress.total and can_be_foretold(progress.done, progress.total):
                line += f", {(progress.total - progress.done) / rate:,.0f} s left"
        streams.say(f"{line} ({streams.one_line(waiting)})" if waiting else line)

    return report


def _count(progress: "Progress") -> str:
    if progress.total is None:
        of = ""
    elif progress.unit == "sentences" and not progress.exact:  # files not yet read are guessed at
        of = f" of about {progress.total:,}"
    else:
        of = f"/{progress.total:,}"
    return f"{progress.done:,}{of} {progress.unit}"


def can_be_foretold(done: float, total: float | None) -> bool:
    """Whether enough is done for a guess at the time left."""
    return bool(total) and done >= FORETOLD * (total or 0)


def _rate(a_second: float) -> str:
    return f"{a_second:,.0f}/s" if a_second >= 10 else f"{a_second:.1f}/s"
