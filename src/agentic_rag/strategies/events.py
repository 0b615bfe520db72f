"""Events of a question, as every consumer sees them: command line, server, evaluation.

A run is: `run_started`, then any of the others, then `run_finished` or `run_failed`. Joining the
`answer_delta` texts since the last `answer_reset` gives `Answer.text` exactly.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.trace import (
    STOPPED,
    HitRecord,
    Notice,
    RunStarted,
    StepFinished,
    StepStarted,
    Thought,
    ToolCalled,
    ToolReturned,
    TraceEvent,
    TraceRecord,
    Usage,
    UsageReported,
)


class ThoughtDelta(TraceRecord):
    """A piece of the model's thoughts, or of progress text; never part of the answer."""

    type: Literal["thought_delta"] = "thought_delta"
    text: str


class AnswerDelta(TraceRecord):
    """A piece of the answer, its marks already numbered. `citations` are the sources that it is
    the first to name, as far as they are known by then."""

    type: Literal["answer_delta"] = "answer_delta"
    text: str
    citations: tuple[Citation, ...] = ()


class AnswerReset(TraceRecord):
    """The answer pieces so far do not count: a retry, thoughts without a tag, a tool call."""

    type: Literal["answer_reset"] = "answer_reset"
    reason: str


class RunFinished(TraceRecord):
    """The last event of a run that worked."""

    type: Literal["run_finished"] = "run_finished"
    answer: Answer


class RunFailed(TraceRecord):
    """The last event of a run that could not end in an answer."""

    type: Literal["run_failed"] = "run_failed"
    error: str
    code: str


Event = Annotated[
    RunStarted
    | StepStarted
    | StepFinished
    | ToolCalled
    | ToolReturned
    | Thought
    | Notice
    | UsageReported
    | ThoughtDelta
    | AnswerDelta
    | AnswerReset
    | RunFinished
    | RunFailed,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(tuple[Event, ...])
TRACE: TypeAdapter[tuple[TraceEvent, ...]] = TypeAdapter(tuple[TraceEvent, ...])

_LIVE_ONLY = (ThoughtDelta, AnswerDelta, AnswerReset, RunFinished, RunFailed)


def kept(events: Iterable[Event]) -> tuple[TraceEvent, ...]:
    """The events of a run that its trace keeps."""
    return tuple(event for event in events if not isinstance(event, _LIVE_ONLY))


__all__ = [
    "EVENT",
    "EVENTS",
    "STOPPED",
    "TRACE",
    "AnswerDelta",
    "AnswerReset",
    "Event",
    "HitRecord",
    "Notice",
    "RunFailed",
    "RunFinished",
    "RunStarted",
    "StepFinished",
    "StepStarted",
    "Thought",
    "ThoughtDelta",
    "ToolCalled",
    "ToolReturned",
    "TraceEvent",
    "Usage",
    "UsageReported",
    "kept",
]
