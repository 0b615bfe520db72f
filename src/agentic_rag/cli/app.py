"""The command `arag` itself: its options, its commands, and how errors are told."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from agentic_rag.cli import (
    ask,
    chat,
    doctor,
    documents,
    exit_codes,
    index,
    leave,
    mcp,
    models,
    reembed,
    search,
    serve,
    streams,
    trace,
    upkeep,
    watch,
)
from agentic_rag.cli import eval as eval_commands
from agentic_rag.cli.options import given_path
from agentic_rag.errors import AragError


class Arag(TyperGroup):
    """The group of commands; turns what a command raises into one line and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _errors_told():  # --help and --version print here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        if signal.getsignal(signal.SIGINT) is leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with _errors_told():
            return super().invoke(ctx)


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turns an error into one line on standard error and an exit code."""
    try:
        try:
            yield
        except typer.Exit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except BrokenPipeError:  # `arag list | head -1`
        streams.abandon_stdout()
        raise typer.Exit(exit_codes.BROKEN_PIPE) from None
    except KeyboardInterrupt:
        streams.say("Stopped.")
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("ARAG_DEBUG"):
            traceback.print_exc()  # here, as typer hides that of an EOFError
        raise typer.Exit(_told(error)) from None


def _told(error: Exception) -> int:
    """The exit code for an error, which is told in one line."""
    if isinstance(error, streams.StdoutUnusable):
        streams.abandon_stdout()
    if isinstance(error, AragError):
        streams.say(f"error: {error}")
        return exit_codes.ERROR
    if isinstance(error, OSError) and error.strerror:
        place = f" ({error.filename})" if error.filename else ""
        streams.say(f"error: The system says: {error.strerror}{place}.")
        return exit_codes.ERROR
    streams.say(
        f"error: arag met something it did not expect, {type(error).__name__}: {error}; "
        "set ARAG_DEBUG=1 and run it again to see where, and please report it."
    )
    return exit_codes.UNEXPECTED


app = typer.Typer(
    cls=Arag,
    name="arag",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Start with `arag index PATH`, then `arag ask "your question"`.',
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            streams.out(f"arag {version('agentic-rag')}")
        except PackageNotFoundError:  # run from its source without having been installed
            streams.out("arag, not installed")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def arag(
    ctx: typer.Context,
    kb: Annotated[
        Path | None,
        typer.Option(
            "--kb",
            metavar="DIR",
            parser=given_path,
            help="The knowledge base: a folder. Also ARAG_KB.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Ask your documents, and get an answer whose sources you can check."""
    ctx.obj = kb
    if ctx.invoked_subcommand is None:
        streams.out(ctx.get_help().rstrip())


# The order here is the order in the help text.
app.command()(index.index)
app.command()(watch.watch)
_EXTRA = {"allow_extra_args": True}  # for words of their own about a question without quotes
app.command(context_settings=_EXTRA)(ask.ask)
app.command(context_settings=_EXTRA)(chat.chat)
app.command()(trace.trace)
app.command()(search.search)
app.command()(search.read)
app.command("list")(documents.list_documents)
app.command()(documents.show)
app.command()(documents.remove)
app.command()(upkeep.status)
app.command()(upkeep.compact)
app.command()(reembed.reembed)
app.command()(serve.serve)
app.command()(mcp.mcp)
app.command()(doctor.doctor)
app.add_typer(models.app, name="models")
app.add_typer(eval_commands.app, name="eval")
