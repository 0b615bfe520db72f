"""Questions on their way through the server: a place at the gate, the time they may take, what is
counted and kept of them. Every protocol asks through here."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.server.question_gate import ServerStopping
from agentic_rag.server.spans import Spans
from agentic_rag.server.state import ServerState
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.answer import Status as AnswerStatus
from agentic_rag.strategies.events import (
    Event,
    Notice,
    RunFailed,
    RunFinished,
    RunStarted,
    Usage,
    UsageReported,
    kept,
)
from agentic_rag.strategies.question import Turn
from agentic_rag.strategies.run import AnswerFailed, stream

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter

_logger = logging.getLogger(__name__)

TOOK_TOO_LONG = "took_too_long"
UNEXPECTED = "unexpected"
_UNEXPECTED = RunFailed(
    error="The server met something it did not expect; its log says what.", code=UNEXPECTED
)
_STOPPING = RunFailed(error=str(ServerStopping()), code="server_stopping")


class TookTooLong(AnswerFailed):
    """A question was stopped at `server.question_timeout`."""

    status = 504


class Stopped(AnswerFailed):
    """A question was stopped as the server ended."""

    status = 503


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what is said about it beyond the settings of the server."""

    question: str
    strategy: str | None = None
    model: str | None = None
    settings: "Settings | None" = None
    where: "Filter | None" = None
    history: Sequence[Turn] = ()


class Finished(RunFinished):
    """The end of a question that worked, and under which id its trace is kept, if it is."""

    trace_id: str | None = None


class Failed(RunFailed):
    """The end of a question that failed, and under which id its trace is kept, if it is."""

    trace_id: str | None = None


def raised(failed: RunFailed) -> AnswerFailed:
    """The same end as an error."""
    if failed.code == _STOPPING.code:
        return Stopped(failed.error)
    return (TookTooLong if failed.code == TOOK_TOO_LONG else AnswerFailed)(failed.error)


async def events_of(state: ServerState, asked: Asked) -> AsyncGenerator[Event, None]:
    """The events of a question; the last one is `Finished` or `Failed`.

    Raises TooManyQuestions, and what `stream` raises before its first event. Closing it, or
    cancelling its task, ends the work and gives the place back.
    """
    seen: list[Event] = []
    spans = Spans(asked.question)
    ended = False
    try:
        async with state.gate.entered(), aclosing(_in_time(state, asked, seen)) as events:
            async for event in events:
                spans.take(event)
                if isinstance(event, RunFinished | RunFailed):
                    ended = True
                    event = await _kept(state, seen, event)
                yield event
    finally:
        spans.end()
        if seen and not ended:
            stopped = _without_answer(seen, "stopped")
            state.counts.question(stopped)
            _save_soon(state, stopped)


async def _in_time(
    state: ServerState, asked: Asked, seen: list[Event]
) -> AsyncGenerator[Event, None]:
    """What `stream` yields, and `run_failed` when the time is up; what the server did not expect
    is only logged. `seen` is given what came, even what nobody waits for any more.

    The work has a task of its own: time runs out for it and not for a client that reads slowly.
    """
    seconds = state.settings.server.question_timeout
    arrived: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
    events = stream(
        state.kb,
        asked.question,
        strategy=asked.strategy,
        settings=asked.settings or state.settings,
        model=asked.model or state.model,
        where=asked.where,
        history=asked.history,
    )

    async def follow() -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    if not isinstance(event, RunFailed) or event.code != UNEXPECTED:
                        seen.append(event)
                        arrived.put_nowait(event)
        except Exception as error:
            arrived.put_nowait(error)
        finally:
            arrived.put_nowait(None)

    cut_short: RunFailed | None = None

    def cut(failed: RunFailed) -> None:
        nonlocal cut_short
        if work.cancel():
            cut_short = failed

    work = asyncio.create_task(follow())
    timer = asyncio.get_running_loop().call_later(seconds, cut, _out_of_time(seconds))
    with state.gate.telling(lambda: cut(_STOPPING)):
        try:
            while (event := await arrived.get()) is not None:
                if isinstance(event, Exception):
                    if not seen:
                        raise event
                    _logger.error("a question failed", exc_info=event)
                    break
                yield event
                if isinstance(event, RunFinished | RunFailed):
                    return
            at = seen[-1].seconds if seen else 0.0
            failed = (cut_short or _UNEXPECTED).model_copy(update={"seconds": at})
            seen.append(failed)
            yield failed
        finally:
            timer.cancel()
            work.cancel()
            await asyncio.wait({work})


def _out_of_time(seconds: float) -> RunFailed:
    return RunFailed(
        error=f"The question took longer than {seconds:g} seconds and was stopped; ask something "
        "narrower, or raise server.question_timeout.",
        code=TOOK_TOO_LONG,
    )


async def _kept(state: ServerState, seen: Sequence[Event], event: Event) -> Event:
    """The last event, with the id of the trace."""
    if isinstance(event, RunFinished):
        state.counts.question(event.answer)
        trace_id = await asyncio.to_thread(_save, state, event.answer)
        return Finished(seconds=event.seconds, answer=event.answer, trace_id=trace_id)
    assert isinstance(event, RunFailed)
    failed = _without_answer(seen, "failed")
    state.counts.question(failed)
    trace_id = await asyncio.to_thread(_save, state, failed)
    return Failed(seconds=event.seconds, error=event.error, code=event.code, trace_id=trace_id)


def _without_answer(seen: Sequence[Event], status: AnswerStatus) -> Answer:
    """What came of a question that ended before its answer."""
    begun = next((event for event in seen if isinstance(event, RunStarted)), None)
    usages = [event.usage for event in seen if isinstance(event, UsageReported)]
    told = [
        Notice(seconds=event.seconds, level="error", code=event.code, message=event.error)
        for event in seen
        if isinstance(event, RunFailed)
    ]
    trace = (*kept(seen), *told)
    return Answer(
        question=begun.question if begun else "",
        text="",
        trace=trace,
        usage=usages[-1] if usages else Usage(cost=None),
        status=status,
        strategy=begun.strategy if begun else "",
        model=begun.model if begun else "",
        seconds=seen[-1].seconds,
        notices=tuple(event for event in trace if isinstance(event, Notice)),
    )


def _save(state: ServerState, answer: Answer) -> str | None:
    """The id of a saved trace. One that cannot be saved costs nobody the answer."""
    try:
        return state.traces.save(answer)
    except OSError as error:
        _logger.warning("a trace could not be saved: %s", error)
        return None


def _save_soon(state: ServerState, answer: Answer) -> None:
    """Save without waiting: whoever asked has gone."""
    asyncio.get_running_loop().run_in_executor(None, _save, state, answer)
