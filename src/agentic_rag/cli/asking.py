"""Asking from the command line: follow a question, end it on Ctrl-C, show what it came to.

What has been found is kept as it comes, so that it can be shown when there is no answer.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentic_rag.cli import answers, exit_codes, streams

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer, Citation
    from agentic_rag.strategies.events import Event, HitRecord
    from agentic_rag.strategies.trace import Usage

GRACE = 0.8  # seconds between Ctrl-C and the end, whatever a thread is still doing


@dataclass(slots=True)
class SoFar:
    """What a question has come to before its end."""

    events: "list[Event]" = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    citations: "list[Citation]" = field(default_factory=list)  # of the marks in the pieces
    _began: float = 0.0  # on the monotonic clock
    _ended: float | None = None

    def take(self, event: "Event") -> None:
        if not self.events:
            self._began = time.monotonic() - event.seconds
        self.events.append(event)
        if event.type == "answer_delta":
            self.pieces.append(event.text)
            self.citations += event.citations
        elif event.type == "answer_reset":
            self.pieces.clear()
            self.citations.clear()

    def stop(self) -> None:
        """Note that the question is stopped now."""
        self._ended = time.monotonic()

    @property
    def text(self) -> str:
        """The answer as far as it was written."""
        return "".join(self.pieces)

    def hits(self) -> "list[HitRecord]":
        """What the searches found, each chunk once, in the order of coming."""
        found: dict[str, HitRecord] = {}
        for event in self.events:
            if event.type in ("step_finished", "tool_returned"):
                for hit in event.hits:
                    found.setdefault(hit.chunk_id or hit.uri, hit)
        return list(found.values())

    def answer(self) -> "Answer | None":
        """The same as an answer of status "stopped", or "failed" after an error; None where
        nothing had begun."""
        from agentic_rag.strategies.answer import Answer
        from agentic_rag.strategies.events import Notice, kept

        begun = next((event for event in self.events if event.type == "run_started"), None)
        if begun is None:
            return None
        failed = [event for event in self.events if event.type == "run_failed"]
        notices = [event for event in self.events if event.type == "notice"]
        notices += [
            Notice(seconds=event.seconds, level="error", code=event.code, message=event.error)
            for event in failed
        ]
        return Answer(
            question=begun.question,
            text=self.text,
            trace=(*kept(self.events), *notices[len(notices) - len(failed) :]),
            citations=tuple(self.citations),
            usage=self._usage(),
            status="failed" if failed else "stopped",
            strategy=begun.strategy,
            model=begun.model,
            seconds=self._seconds(),
            notices=tuple(notices),
        )

    def _usage(self) -> "Usage":
        from agentic_rag.strategies.trace import Usage

        told = [event.usage for event in self.events if event.type == "usage"]
        usage = told[-1] if told else Usage(cost=None)
        # What tools gave back since is not in it yet.
        given = sum(e.retrieved_tokens for e in self.events if e.type == "tool_returned")
        return usage.model_copy(update={"retrieved_tokens": max(usage.retrieved_tokens, given)})

    def _seconds(self) -> float:
        last = self.events[-1].seconds
        return last if self._ended is None else max(last, round(self._ended - self._began, 6))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question ended: with an answer, with an error, or stopped by Ctrl-C.

    `fault` is an error of this program's own, to be raised when what was found has been shown.
    """

    so_far: SoFar
    answer: "Answer | None" = None
    error: str = ""
    stopped: bool = False
    fault: Exception | None = None


@dataclass(frozen=True, slots=True)
class Showing:
    """How the answers of a command are shown.

    With `many` they follow one another: as JSON each is a line, as text an empty line is between.
    """

    as_json: bool
    quiet: bool
    many: bool = False

    @property
    def live(self) -> bool:
        """Whether the text is shown as it is written."""
        return sys.stdout.isatty() and not self.as_json

    def screen(self, *, introduce: bool = True) -> answers.Screen:
        """What shows the steps of one question."""
        quiet = self.quiet or self.as_json
        return answers.Screen(live=self.live, quiet=quiet, introduce=introduce)

    def answer(self, answer: "Answer") -> None:
        """Show an answer, its sources, and what it cost."""
        if self.as_json:
            self.json(answer.model_dump(mode="json"))
            return
        if not self.live:
            streams.out(answer.text)
        answers.print_sources(answer)
        if self.many and not self.live:
            streams.out()
        sys.stdout.flush()
        if self.quiet:
            return
        if not self.many and not self.live:  # on a terminal the sources end in an empty line
            streams.say("")
        if note := answers.limit_note(answer):
            streams.say(note)
        streams.say(answers.summary(answer))

    def no_answer(self, outcome: Outcome, screen: answers.Screen) -> None:
        """Show what a question without an answer has found, and why it ended."""
        shown = screen.written
        screen.end_text()
        if not self.as_json:
            answers.print_found(outcome.so_far, text_is_shown=shown)
        elif stopped := outcome.so_far.answer():
            self.json(stopped.model_dump(mode="json"))
        sys.stdout.flush()
        if outcome.fault is None:
            streams.say("Stopped." if outcome.stopped else f"error: {outcome.error}")

    def json(self, value: dict[str, Any]) -> None:
        """Print an object."""
        (streams.out_json_line if self.many else streams.out_json)(value)


class Asker:
    """Follows questions in one event loop, one after another.

    A thread in native code (an embedding, a model in this process) cannot be cancelled; it is
    left behind: the process ends, from another thread, when a question has not ended GRACE
    seconds after Ctrl-C, and at a second Ctrl-C.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self._runner = asyncio.Runner()
        self._patient = patient  # wait for a second Ctrl-C

    def follow(
        self,
        events: "AsyncGenerator[Event, None]",
        show: "Callable[[Event], None]",
        end: Callable[[Outcome], None],
    ) -> Outcome:
        """Show the events of a question until it ends. Raises what choosing a model raises.

        `end` is called once, before this returns or the process ends, where there is no answer.
        """
        so_far = SoFar()
        ending = threading.Lock()  # whoever is the first to end the question shows how it ended

        def end_at_once() -> None:
            if ending.acquire(blocking=False):
                try:
                    end(Outcome(so_far, stopped=True))
                finally:
                    os._exit(exit_codes.INTERRUPTED)

        outcome = self._runner.run(self._follow(events, show, so_far, end_at_once))
        ending.acquire()  # for good; waits for the end of the process where that has begun
        if outcome.answer is None:
            end(outcome)
        return outcome

    def close(self) -> None:
        """End the loop and wait for its threads; not after a question was stopped."""
        self._runner.close()

    async def _follow(
        self,
        events: "AsyncGenerator[Event, None]",
        show: "Callable[[Event], None]",
        so_far: SoFar,
        end_at_once: Callable[[], None],
    ) -> Outcome:
        work = asyncio.ensure_future(_until_the_end(events, show, so_far))
        presses = 0
        ends: list[threading.Timer] = []

        def stop() -> None:
            nonlocal presses
            presses += 1
            so_far.stop()
            if presses > 1 or not self._patient:
                end = threading.Timer(GRACE if presses == 1 else 0, end_at_once)
                end.daemon = True
                end.start()
                ends.append(end)
            work.cancel()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, stop)
        try:
            return await work
        except asyncio.CancelledError:
            return Outcome(so_far, stopped=True)
        finally:
            for end in ends:
                end.cancel()
            loop.remove_signal_handler(signal.SIGINT)


async def _until_the_end(
    events: "AsyncGenerator[Event, None]", show: "Callable[[Event], None]", so_far: SoFar
) -> Outcome:
    error = "The question ended without an answer; please report it."
    try:
        async with aclosing(events):
            async for event in events:
                so_far.take(event)
                show(event)
                if event.type == "run_finished":
                    return Outcome(so_far, answer=event.answer)
                if event.type == "run_failed":
                    error = event.error
    except Exception as fault:
        if not so_far.events:  # the question was not even taken
            raise
        return Outcome(so_far, error=error, fault=fault)
    return Outcome(so_far, error=error)
