"""`arag ask`: a question, the steps on the way, the answer with numbered sources."""

import os
from dataclasses import asdict
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.asking import Asker, Outcome, Showing
from agentic_rag.cli.evaluation_report import report_lines
from agentic_rag.cli.options import (
    AsJson,
    Budget,
    Cost,
    Effort,
    Kb,
    MaxSteps,
    Model,
    PathGlobs,
    Quiet,
    Strategy,
    Where,
    filter_for,
    given_path,
    limits,
    no_more_words,
    settings_for,
)
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer


class TraceUnwritable(AragError):
    """The steps cannot be saved in the file that --trace names."""


def ask(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    model: Model = None,
    strategy: Strategy = None,
    max_steps: MaxSteps = None,
    budget: Budget = None,
    cost: Cost = None,
    effort: Effort = None,
    path: PathGlobs = None,
    where: Where = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            show_default=False,
            parser=given_path,
            help="Save all the steps there, also of a question that fails, for `arag trace`.",
        ),
    ] = None,
    show_prompt: Annotated[
        bool,
        typer.Option(
            "--show-prompt",
            help="Print exactly what the model would be sent first, and ask nothing.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print how the strategy workflow judged what it had retrieved. With --json it is "
            "among the steps.",
        ),
    ] = False,
    quiet: Quiet = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer cites its sources by number.

    Each step is shown on standard error as it happens. Ctrl-C ends the question and prints what
    was found until then. `--json` prints the whole answer with its citations and all the steps
    that led to it.

    Example: `arag ask "How long is the notice period?" --path '*.pdf'`
    """
    no_more_words(ctx, question)
    if not question.strip():
        raise typer.BadParameter("The question is empty; ask something.")
    if show_prompt and trace is not None:
        raise typer.BadParameter(
            "--show-prompt asks nothing, so there are no steps for --trace to save; leave one out."
        )
    streams.check_stdout()  # before a question is paid for
    # Bytes of the command line that are no text could not be sent or saved.
    question = question.encode("utf-8", "replace").decode("utf-8")
    wanted = filter_for(path, where)
    settings = settings_for(
        ctx, kb, model=model, strategy=strategy, agent=limits(max_steps, budget, cost, effort)
    )
    if trace is not None:  # before a question is paid for
        _check_writable(trace)

    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.strategies.run import shown_prompt, stream

    store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
    if show_prompt:
        prompt = shown_prompt(store, question, settings=settings, where=wanted)
        if as_json:
            streams.out_json(asdict(prompt))
        else:
            streams.out(prompt.text)
        return
    showing = Showing(as_json=as_json, quiet=quiet)
    screen = showing.screen()
    unsaved = False

    def save(answer: "Answer | None") -> None:
        nonlocal unsaved
        if trace is not None and answer is not None:
            unsaved = not _save_trace(trace, answer)

    def end(outcome: Outcome) -> None:
        save(outcome.so_far.answer())
        showing.no_answer(outcome, screen)

    asker = Asker()
    events = stream(store, question, settings=settings, where=wanted)
    outcome = asker.follow(events, screen.show, end)
    if outcome.answer is None:
        if outcome.fault is not None:
            raise outcome.fault
        raise typer.Exit(exit_codes.INTERRUPTED if outcome.stopped else exit_codes.ERROR)
    asker.close()
    save(outcome.answer)
    showing.answer(outcome.answer)
    if explain and not as_json:
        for line in report_lines(outcome.answer):
            streams.out(line)
    if outcome.answer.unanswered or unsaved:
        raise typer.Exit(exit_codes.SOME_FAILED)


def _check_writable(path: Path) -> None:
    """Raise TraceUnwritable where a trace could not be saved; nothing is written."""
    if str(path) == "-":
        raise TraceUnwritable("--trace takes a file; `--json` prints the same on standard output.")
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its reader
            if path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            return
        is_new = not path.exists()
        with path.open("a", encoding="utf-8"):
            pass
        if is_new:
            path.unlink()
    except (OSError, ValueError) as error:
        raise TraceUnwritable(
            f"--trace cannot write {path} ({_reason(error)}); name a file that can be made. "
            "Nothing was asked."
        ) from None


def _save_trace(path: Path, answer: "Answer") -> bool:
    """Whether the steps were saved; it is said where they could not be."""
    text = answer.model_dump_json(indent=1)
    try:
        path.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        streams.say(f"error: --trace could not write {path} ({_reason(error)}).")
        return False
    return True


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
