"""`arag ask`: a question, the steps on the way, the answer with numbered sources."""

import asyncio
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.options import AsJson, Kb, PathGlobs, Where, filter_for, settings_for
from agentic_rag.cli.passages import place, print_passage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentic_rag.strategies.answer import Answer
    from agentic_rag.strategies.events import Event

GRACE = 0.8  # seconds between Ctrl-C and the end, whatever a thread is still doing


def ask(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help="The chat model: openai:NAME, anthropic:NAME, ollama:NAME, local, "
            "local:/path/to.gguf or none. When not given: the setting, or the best one at hand.",
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="NAME",
            show_default=False,
            help="How to answer. When not given: the setting, which is naive.",
        ),
    ] = None,
    path: PathGlobs = None,
    where: Where = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only the answer and its sources.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer cites its sources by number.

    `--json` prints the whole answer with its citations and all the steps that led to it.

    Example: `arag ask "How long is the notice period?" --path '*.pdf'`
    """
    if not question.strip():
        raise typer.BadParameter("The question is empty; ask something.")
    wanted = filter_for(path, where)
    settings = settings_for(ctx, kb, model=model, strategy=strategy)

    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.strategies.run import stream

    store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
    live = sys.stdout.isatty() and not as_json
    screen = _Screen(live=live, quiet=quiet or as_json)
    events = stream(store, question, settings=settings, where=wanted)
    try:
        answer = asyncio.run(_follow(events, screen))
    except asyncio.CancelledError:
        streams.say("\nStopped.")
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    if answer is None:
        raise typer.Exit(exit_codes.ERROR)
    if as_json:
        streams.out_json(answer.model_dump(mode="json"))
    else:
        if not live:
            streams.out(answer.text)
        _print_sources(answer)
        if not quiet:
            streams.say(_summary(answer))
    if answer.status == "model_failed":
        raise typer.Exit(exit_codes.SOME_FAILED)


async def _follow(events: "AsyncIterator[Event]", screen: "_Screen") -> "Answer | None":
    """Show events as they come; the answer, or None when the run failed."""
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        # A thread in native code (an embedding, a model in this process) cannot be cancelled,
        # and nobody who pressed Ctrl-C wants to wait for it.
        end = threading.Timer(GRACE, _end_at_once)
        end.daemon = True
        end.start()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
    async for event in events:
        screen.show(event)
        if event.type == "run_finished":
            return event.answer
        if event.type == "run_failed":
            streams.say(f"error: {event.error}")
    return None


def _end_at_once() -> None:
    streams.say("\nStopped.")
    os._exit(exit_codes.INTERRUPTED)


class _Screen:
    """What a person sees while the answer is made.

    On a terminal the answer's text is written as it comes; elsewhere it is left to the end,
    since text that is withdrawn again could not be taken back.
    """

    def __init__(self, *, live: bool, quiet: bool) -> None:
        self._live = live
        self._quiet = quiet
        self._written = False  # text of an answer stands on the terminal
        self._held: list[str] = []  # what to say when it is complete

    def show(self, event: "Event") -> None:
        match event.type:
            case "run_started":
                self._note(event.why)
            case "step_finished":
                passages = f", {streams.counted(len(event.hits), 'passage')}" if event.hits else ""
                self._note(f"{event.name}{passages}, {event.duration:.1f} s")
            case "notice" if event.code == "model_retried":
                self._note("Asking the model again.")  # why is said if that fails too
            case "notice":
                if event.level != "info" or not self._quiet:
                    self._say(f"{event.level.replace('info', 'note')}: {event.message}")
            case "answer_delta":
                self._write(event.text)
            case "answer_reset":
                if self._written:
                    self._end_text()
                    self._note("The text above does not count.")
            case "run_finished" | "run_failed":
                if self._written:
                    self._end_text()

    def _note(self, message: str) -> None:
        if message and not self._quiet:
            self._say(message)

    def _say(self, message: str) -> None:
        if self._written:
            self._held.append(message)
        else:
            streams.say(message)

    def _end_text(self) -> None:
        self._write("\n")
        self._written = False
        while self._held:
            streams.say(self._held.pop(0))

    def _write(self, text: str) -> None:
        if self._live:
            sys.stdout.write(streams.safe(text))
            sys.stdout.flush()
            self._written = True


def _print_sources(answer: "Answer") -> None:
    screen = streams.console()
    if answer.citations:
        screen.print("\nSources", style="bold")
    for citation in answer.citations:
        print_passage(
            screen,
            f"[{citation.number}]",
            place(citation.title, citation.section, citation.page, source_id=citation.source_id),
            f"{citation.chunk_id}, matched afterwards"
            if citation.made_by == "matched"
            else citation.chunk_id,
            citation.uri,
            "" if citation.made_by == "passage" else citation.snippet,  # it is the answer
        )
    if answer.unsupported:
        screen.print("\nWithout a source", style="bold")
        for sentence in dict.fromkeys(answer.unsupported):
            screen.print(f"  - {streams.one_line(sentence)}")


def _summary(answer: "Answer") -> str:
    usage = answer.usage
    ending = f"{answer.seconds:.1f} s"
    if not usage.input_tokens and not usage.output_tokens:  # no model was asked, or none answered
        return f"\n{answer.strategy}, {answer.model}: {ending}"
    about = "about " if usage.estimated else ""
    tokens = f"{about}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    return f"\n{answer.strategy}, {answer.model}: {tokens}{cost}, {ending}"
