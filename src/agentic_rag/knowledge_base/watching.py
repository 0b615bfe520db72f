"""Keeping a knowledge base in step with folders: index, wait for a change on disk, index again.

What changed is found by looking at the whole folder again, since what is left out and where a
file stands in the folder depend on more than the file; unchanged files are not read for that.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.records import IndexReport, Progress

# An editor writes a file in several steps, and a copied folder arrives file by file.
_QUIET_MS = 400  # without a change before work begins
_LONGEST_MS = 1_500  # of changes without a pause
_TICK_MS = 1_000  # between two looks at whether the watched paths are still the same files
_TRY_AGAIN = 30.0  # seconds until a look that failed for want of a server or a disk is repeated


class NothingToWatch(AragError):
    """A path to watch does not exist."""


def roots_to_watch(paths: Sequence[Path]) -> list[Path]:
    """`paths` made absolute. Raises NothingToWatch if one does not exist."""
    roots = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links keep their names
    for root in roots:
        if not root.exists():
            raise NothingToWatch(f"{root} does not exist; name a file or a folder to watch.")
    return roots


def watch(
    kb: KnowledgeBase,
    paths: Sequence[Path],
    *,
    stop: threading.Event,
    exclude: Sequence[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
    on_wait: Callable[[str], None] | None = None,
    on_error: Callable[[AragError], None] | None = None,
) -> Iterator[IndexReport]:
    """Index `paths` now and after every change below them, until `stop` is set.

    Yields a report for the first look and for each later one that changed something. Documents
    whose file is gone are removed; those of a path that is itself gone (a drive not mounted) stay
    until it is back. An error of one look is told to `on_error` and the look repeated after half
    a minute. Raises NothingToWatch before anything is done if a path does not exist.
    """
    roots = roots_to_watch(paths)

    def look() -> IndexReport | None:
        try:
            return kb.add(
                [root for root in roots if root.exists()],
                sync=True,
                exclude=exclude,
                stop=stop,
                on_progress=on_progress,
                on_wait=on_wait,
            )
        except AragError as error:
            if on_error and not stop.is_set():
                on_error(error)
            return None

    first = True
    try_again = float("inf")
    for changed in _changes(roots, kb.directory.resolve(), stop):
        if not changed and not first and time.monotonic() < try_again:
            continue
        report = look()
        try_again = float("inf") if report else time.monotonic() + _TRY_AGAIN
        if report is not None and (first or _tells(report)):
            yield report
        first = False


def _changes(roots: Sequence[Path], own: Path, stop: threading.Event) -> Iterator[bool]:
    """Whether something below `roots` but not in `own` has changed, about once a second, beginning
    when the watch has begun; so no change after the first item is missed."""
    import watchfiles

    usual = watchfiles.DefaultFilter()  # version control, caches, editors' own files

    def concerns_us(change: watchfiles.Change, path: str) -> bool:
        return own not in (Path(path), *Path(path).parents) and usual(change, path)

    known = None
    while not stop.is_set():
        there = _identities(roots)
        if known is not None and there != known:
            yield True
        known = there
        if not known:
            stop.wait(_TICK_MS / 1000)
            yield False
            continue
        for changes in watchfiles.watch(
            *known,
            watch_filter=concerns_us,
            step=_QUIET_MS,
            debounce=_LONGEST_MS,
            rust_timeout=_TICK_MS,
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
        ):
            if stop.is_set():
                return
            if _identities(roots) != known:  # replaced, gone or back: to be watched anew
                break
            yield bool(changes)


def _identities(paths: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    found = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found[path] = (status.st_dev, status.st_ino)
    return found


def _tells(report: IndexReport) -> bool:
    return bool(report.added or report.updated or report.removed or report.empty or report.failed)
