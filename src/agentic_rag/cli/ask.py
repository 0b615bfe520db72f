"""`arag ask`: a question, the steps on the way, the answer with numbered sources."""

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import answers, exit_codes, streams
from agentic_rag.cli.asking import Asker, Outcome, SoFar
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
    limits,
    settings_for,
)

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase


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
            help="Save all the steps there, also of a question that fails, for `arag trace`.",
        ),
    ] = None,
    show_prompt: Annotated[
        bool,
        typer.Option(
            "--show-prompt", help="Print exactly what the agent would send, and ask nothing."
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
    if not question.strip():
        raise typer.BadParameter("The question is empty; ask something.")
    # Bytes of the command line that are no text could not be sent or saved.
    question = question.encode("utf-8", "replace").decode("utf-8")
    wanted = filter_for(path, where)
    settings = settings_for(
        ctx, kb, model=model, strategy=strategy, agent=limits(max_steps, budget, cost, effort)
    )

    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.strategies.run import stream

    store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
    if show_prompt:
        _print_prompt(store, question, settings)
        return
    if trace is not None:
        _check_writable(trace)
    screen = answers.Screen(live=sys.stdout.isatty() and not as_json, quiet=quiet or as_json)
    ending = threading.Lock()  # the first to end the question prints; see Asker.on_hang

    def end(outcome: Outcome) -> None:
        if ending.acquire(blocking=False):
            _end_without_answer(outcome, screen, as_json=as_json, trace=trace)

    def end_at_once(so_far: SoFar) -> None:
        end(Outcome(so_far, stopped=True))
        os._exit(exit_codes.INTERRUPTED)

    asker = Asker(end_at_once)
    outcome = asker.follow(stream(store, question, settings=settings, where=wanted), screen.show)
    answer = outcome.answer
    if answer is None:
        end(outcome)
        if outcome.fault is not None:
            raise outcome.fault
        raise typer.Exit(exit_codes.INTERRUPTED if outcome.stopped else exit_codes.ERROR)
    asker.close()
    if trace is not None:
        _write_trace(trace, answer.model_dump_json(indent=1))
    if as_json:
        streams.out_json(answer.model_dump(mode="json"))
    else:
        if not sys.stdout.isatty():
            streams.out(answer.text)
        answers.print_sources(answer)
        if not quiet:
            if not sys.stdout.isatty():  # there the sources end in an empty line
                streams.say("")
            if note := answers.limit_note(answer):
                streams.say(note)
            streams.say(answers.summary(answer))
    if answer.status == "model_failed":
        raise typer.Exit(exit_codes.SOME_FAILED)


def _end_without_answer(
    outcome: Outcome, screen: answers.Screen, *, as_json: bool, trace: Path | None
) -> None:
    shown = screen.written
    screen.end_text()
    stopped = outcome.so_far.answer()
    if stopped is not None and trace is not None:
        _write_trace(trace, stopped.model_dump_json(indent=1))
    if as_json and stopped is not None:
        streams.out_json(stopped.model_dump(mode="json"))
    elif not as_json:
        answers.print_found(outcome.so_far, text_is_shown=shown)
    sys.stdout.flush()
    if outcome.fault is None:
        streams.say("Stopped." if outcome.stopped else f"error: {outcome.error}")


def _print_prompt(store: "KnowledgeBase", question: str, settings: "Settings") -> None:
    from agentic_rag.strategies.agent import show_prompt

    streams.out(show_prompt(store, question, settings))


def _check_writable(path: Path) -> None:
    """Find out before a question is paid for; raises what the system says."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8"):
        pass
    if is_new:
        path.unlink()


def _write_trace(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
