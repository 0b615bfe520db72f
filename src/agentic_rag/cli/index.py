"""`arag index`: take documents in."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.named_sources import check_files, files_of, named_sources, nothing_under
from agentic_rag.cli.options import (
    AsJson,
    Exclude,
    Kb,
    NoWait,
    QuietIndexing,
    key_values,
    settings_for,
)
from agentic_rag.cli.passages import path_from_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentic_rag.cli.progress import Report
    from agentic_rag.documents.reading import ImageCounts
    from agentic_rag.knowledge_base import DocumentOutcome, IndexReport

OUTCOMES = ("added", "updated", "unchanged", "removed", "empty", "failed", "unsupported")
SUPPORTED = " not supported; "  # within the reason of a kind that is not read
NAMES_OF_A_KIND = 3
LINES_OF_A_KIND = 20  # a folder of photographs is not worth ten thousand lines


def index(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files, folders and URLs; - is standard input.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            show_default=False,
            help="What standard input is called, with a suffix that says what it is (notes.md). "
            "The same name again replaces it.",
        ),
    ] = None,
    sync: Annotated[
        bool,
        typer.Option("--sync", help="Also remove documents whose file under PATH is gone."),
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try documents that failed before again.")
    ] = False,
    exclude: Exclude = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            metavar="KEY=VALUE",
            show_default=False,
            help="Metadata for these documents, for `--where` later. Can be repeated.",
        ),
    ] = None,
    no_wait: NoWait = False,
    quiet: QuietIndexing = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Take files, folders and web pages into the knowledge base, which is made when it is not
    there.

    Files that have not changed since the last time are skipped. Ctrl-C stops after the batch in
    hand and keeps what is done.

    Example: `arag index docs handbook.pdf --exclude 'drafts/'`

    Example: `arag index https://example.com/handbook`

    Example: `pandoc notes.org -t gfm | arag index - --name notes.md`
    """
    if not paths and not retry_failed:
        raise typer.BadParameter("Name a file, a folder or a URL, or use --retry-failed.")
    metadata = key_values(meta, "--meta")
    settings = settings_for(ctx, kb)
    wanted = named_sources(paths or (), name, settings)

    from agentic_rag.cli.progress import shown
    from agentic_rag.documents import find_sources
    from agentic_rag.knowledge_base import KnowledgeBase, KnowledgeBaseBusy, NoKnowledgeBase
    from agentic_rag.knowledge_base.embedding import IndexingEnded

    def work(stop: threading.Event, on_progress: "Report") -> "IndexReport":
        try:
            store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
        except NoKnowledgeBase:
            if not wanted:
                raise
            files = files_of(wanted)
            check_files(wanted)
            patterns = (*settings.index.exclude, *(exclude or ()))
            if len(files) == len(wanted) and next(find_sources(files, patterns), None) is None:
                raise nothing_under(paths or ()) from None
            store = KnowledgeBase.open(settings.kb, settings=settings)
        else:
            check_files(wanted, store.documents() if sync else ())
        shared: dict[str, Any] = {
            "on_progress": on_progress,
            "stop": stop,
            "on_wait": streams.say,
            "wait": not no_wait,
        }
        if not wanted:
            return store.retry_failed(**shared)
        return store.add(
            wanted,
            sync=sync,
            retry_failed=retry_failed,
            exclude=exclude or (),
            metadata=metadata,
            **shared,
        )

    with shown(quiet=quiet) as on_progress, stopping_on_ctrl_c() as stop:
        try:
            report = _in_a_thread(lambda: work(stop, on_progress))
        except KnowledgeBaseBusy:
            if not stop.is_set():
                raise
            streams.say("Stopped while waiting; nothing was done.")
            raise typer.Exit(exit_codes.INTERRUPTED) from None
        except IndexingEnded as error:
            if as_json:
                streams.out_json(report_json(error.report))
            else:
                show_report(error.report, quiet=quiet)
            raise
    if as_json:
        streams.out_json(report_json(report))
    else:
        show_report(report, quiet=quiet)
    if paths and not report.stopped and not report.gone and not _counts(report):
        raise nothing_under(paths)
    raise typer.Exit(_exit_code(report))


def _in_a_thread(work: "Callable[[], IndexReport]") -> "IndexReport":
    """Do `work` beside the main thread: only that one hears Ctrl-C, and an embedding in hand
    would keep it deaf for seconds."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


@contextmanager
def stopping_on_ctrl_c(
    said: str = "Stopping after the batch in hand; Ctrl-C again ends at once.",
) -> Iterator[threading.Event]:
    """Yields an event that the first Ctrl-C sets, and says so; the second ends the process."""
    stop = threading.Event()

    def interrupted(signum: int, frame: object) -> None:
        if stop.is_set():
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
            streams.say("\nEnded. Run the same command again to continue.")
            os._exit(exit_codes.INTERRUPTED)
        stop.set()
        streams.say(f"\n{said}")

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def report_json(report: "IndexReport") -> dict[str, Any]:
    """The report with every document in one list, each with what became of it."""
    documents = [
        {
            "uri": one.uri,
            "number": one.number,
            "outcome": outcome,
            "reason": one.reason,
            "chunks": one.chunks,
        }
        for outcome in OUTCOMES
        for one in getattr(report, outcome)
    ]
    return {
        "documents": documents,
        **{outcome: len(getattr(report, outcome)) for outcome in OUTCOMES},
        "gone": list(report.gone),
        "warnings": [asdict(one) for one in report.warnings],
        "stopped": report.stopped,
        "sentences_embedded": report.sentences_embedded,
        "sentences_reused": report.sentences_reused,
        "images": asdict(report.images),
        "seconds": report.seconds,
    }


def show_report(report: "IndexReport", *, quiet: bool, when: str = "") -> None:
    """What became of each document that needs a word, then one line of counts behind `when`."""
    _name_each("failed", report.failed)
    _name_each("empty", report.empty)
    _name_unsupported([one for one in report.unsupported if one.explicit or not quiet])
    if not quiet:
        _name_each("warning", report.warnings)
        _first_of([f"gone: {path_from_here(uri)}" for uri in report.gone])
        if report.gone:
            streams.say("Those files are no longer on disk; --sync removes them here too.")
        streams.out(f"{when}{_summary(report)}")
        if report.images.seen:
            streams.out(_images(report.images))
    if report.stopped:
        streams.say("Stopped. Run the same command again to continue.")


def _name_each(word: str, documents: "tuple[DocumentOutcome, ...]") -> None:
    _first_of(
        [
            f"{word}: {path_from_here(one.uri)}: {streams.one_line(one.reason)}".removesuffix(": ")
            for one in documents
        ]
    )


def _name_unsupported(documents: "list[DocumentOutcome]") -> None:
    """One line for all files of a suffix, and once what is supported."""
    from agentic_rag.documents.file_types import supported_types

    by_kind: dict[str, list[str]] = {}
    for one in documents:
        name, _, supported = one.reason.partition(SUPPORTED)
        kind = Path(one.uri).suffix.lower() if supported and name.startswith("'.") else ""
        by_kind.setdefault(kind or streams.one_line(name.removesuffix(", which is")), []).append(
            path_from_here(one.uri)
        )
    lines = []
    for kind, names in by_kind.items():
        shown = ", ".join(names[:NAMES_OF_A_KIND])
        more = f" and {len(names) - NAMES_OF_A_KIND:,} more" if len(names) > NAMES_OF_A_KIND else ""
        what = streams.counted(len(names), f"{kind} file") if kind.startswith(".") else kind
        lines.append(f"unsupported: {what}: {shown}{more}")
    _first_of(lines)
    if any(SUPPORTED in one.reason for one in documents):
        streams.say(f"Supported are {supported_types()}.")


def _first_of(lines: list[str]) -> None:
    for line in lines[:LINES_OF_A_KIND]:
        streams.say(line)
    if len(lines) > LINES_OF_A_KIND:
        streams.say(f"… and {len(lines) - LINES_OF_A_KIND:,} more; --json lists them all.")


def _counts(report: "IndexReport") -> list[str]:
    return [f"{len(getattr(report, o)):,} {o}" for o in OUTCOMES if getattr(report, o)]


def _summary(report: "IndexReport") -> str:
    documents = ", ".join(_counts(report)) or "nothing to do"
    if report.sentences_embedded:
        embedded = f"{streams.counted(report.sentences_embedded, 'sentence')} embedded"
    else:
        embedded = "nothing embedded"
    if report.sentences_reused:
        embedded += f", {report.sentences_reused:,} known already"
    return f"Documents: {documents}; {embedded}; {report.seconds:.1f} s."


def _images(images: "ImageCounts") -> str:
    """The line about figures inside documents."""
    if images.cure:
        return f"Images: {images.seen:,} seen, not read; {images.cure}."
    dropped = ", ".join(f"{count:,} {why}" for why, count in images.dropped.items())
    line = f"Images: {images.seen:,} seen, {images.read:,} read, {images.kept:,} kept"
    return f"{line} (left out: {dropped})." if dropped else f"{line}."


def _exit_code(report: "IndexReport") -> int:
    if report.stopped:
        return exit_codes.INTERRUPTED
    unsupported = any(one.explicit for one in report.unsupported)
    if report.failed or report.empty or unsupported:
        return exit_codes.SOME_FAILED
    return exit_codes.OK
