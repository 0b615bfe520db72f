"""`arag watch`: keep a knowledge base in step with folders."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.index import report_json, show_report, stopping_on_ctrl_c
from agentic_rag.cli.options import Exclude, Kb, QuietIndexing, given_path, settings_for

if TYPE_CHECKING:
    from agentic_rag.cli.progress import Report
    from agentic_rag.knowledge_base import IndexReport, Progress


def watch(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files and folders.",
            show_default=False,
            parser=given_path,
        ),
    ],
    exclude: Exclude = None,
    quiet: QuietIndexing = False,
    kb: Kb = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each time of indexing.")
    ] = False,
) -> None:
    """Index files and folders, and again whenever something in them changes, until Ctrl-C.

    Documents whose file is deleted are removed. While a watched folder is itself away, as a drive
    that is not mounted, its documents stay.

    Example: `arag watch ~/notes --exclude 'drafts/'`
    """
    settings = settings_for(ctx, kb)

    from agentic_rag.cli.progress import shown
    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.knowledge_base.watching import roots_to_watch
    from agentic_rag.knowledge_base.watching import watch as watching

    def tell(report: "IndexReport") -> None:
        if as_json:
            streams.out_json_line(report_json(report))
        else:
            show_report(report, quiet=quiet, when=f"{datetime.now():%H:%M:%S} ")
            sys.stdout.flush()  # a pipe would keep it until the end

    def work(stop: threading.Event) -> None:
        roots = roots_to_watch(paths)
        store = KnowledgeBase.open(settings.kb, settings=settings)
        report_to: list[Report] = []

        def on_progress(progress: "Progress") -> None:
            for report in report_to:
                report(progress)

        reports = watching(
            store,
            roots,
            stop=stop,
            exclude=exclude or (),
            on_progress=on_progress,
            on_wait=streams.say,
            on_error=lambda error: streams.say(f"error: {error} Watching goes on."),
        )
        with shown(quiet=quiet) as bar:  # only of the first look, which may be long
            report_to.append(bar)
            first = next(reports, None)
        report_to.clear()
        if first is not None:
            tell(first)
        if not quiet and not stop.is_set():
            streams.say("Watching; Ctrl-C ends it.")
        for report in reports:
            tell(report)

    with (
        stopping_on_ctrl_c("Stopping; Ctrl-C again ends at once.") as stop,
        ThreadPoolExecutor(max_workers=1) as pool,
    ):
        pool.submit(work, stop).result()
