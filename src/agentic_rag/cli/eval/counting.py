"""How many of how many are done: a bar, or a line every few seconds off a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentic_rag.cli import streams
from agentic_rag.cli.progress import SECONDS_BETWEEN_LINES


@contextmanager
def counted(doing: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yields what is to be called with how many of how many are done; `doing` names it."""
    if quiet:
        yield lambda done, total: None
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        bars = Progress(
            doing,
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=streams.error_console(),
            transient=True,
        )
        with bars:
            task = bars.add_task(doing, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)
    else:
        last = time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= SECONDS_BETWEEN_LINES:
                last = now
                streams.say(f"{doing}: {done:,} of {total:,}")

        yield report
