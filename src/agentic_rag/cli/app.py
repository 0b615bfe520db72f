"""The command `arag` itself: its options, its commands, and how errors are told."""

import os
import signal
import sys
import traceback
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
    models,
    reembed,
    search,
    streams,
    trace,
    upkeep,
    watch,
)
from agentic_rag.cli.options import given_path
from agentic_rag.errors import AragError


class Arag(TyperGroup):
    """The group of commands; turns what a command raises into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        if signal.getsignal(signal.SIGINT) is leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
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
            if isinstance(error, AragError):
                streams.say(f"error: {error}")
                raise typer.Exit(exit_codes.ERROR) from None
            if isinstance(error, OSError) and error.strerror:
                place = f" ({error.filename})" if error.filename else ""
                streams.say(f"error: The system says: {error.strerror}{place}.")
                raise typer.Exit(exit_codes.ERROR) from None
            streams.say(
                f"error: arag met something it did not expect, {type(error).__name__}: {error}; "
                "set ARAG_DEBUG=1 and run it again to see where, and please report it."
            )
            raise typer.Exit(exit_codes.UNEXPECTED) from None


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
app.command()(doctor.doctor)
app.add_typer(models.app, name="models")
