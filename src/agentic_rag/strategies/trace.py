"""What is kept of a question's events: everything but the text pieces and the answer itself.

Each event is a frozen model with a `type`, JSON both ways. `seconds` counts from the start of
the question; whoever yields an event may leave it at 0, the runner fills it in.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

STOPPED = "stopped"  # the error of a step or a call that was ended from outside

Level = Literal["info", "warning", "error"]


class Record(BaseModel):
    """Frozen, and strict about its fields: a saved trace that does not fit is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class TraceRecord(Record):
    """An event at a time."""

    seconds: float = 0.0  # since the question was asked


class HitRecord(Record):
    """A hit as it was seen. A result from the web has no `chunk_id`: it is empty. The scores of the
    routes are those of strategies that keep them."""

    chunk_id: str
    score: float
    source_id: str | None = None
    title: str = ""
    uri: str = ""
    page: int | None = None
    section: str = ""
    snippet: str = ""
    vector_score: float | None = None
    keyword_score: float | None = None
    fused_score: float | None = None
    rerank_score: float | None = None
    search_type: str | None = None


class RunStarted(TraceRecord):
    """The question was taken; `why` says in a sentence how the model came to be chosen."""

    type: Literal["run_started"] = "run_started"
    question: str
    strategy: str
    model: str
    why: str = ""


class StepStarted(TraceRecord):
    """A step begins. `step` is unique in the run; `parent` is the step it is part of."""

    type: Literal["step_started"] = "step_started"
    step: str
    name: str
    parent: str | None = None
    input: Mapping[str, JsonValue] = Field(default_factory=dict)


class StepFinished(TraceRecord):
    """A step ended, well or with `error`. Tokens are those it cost; `duration` is in seconds."""

    type: Literal["step_finished"] = "step_finished"
    step: str
    name: str
    output: Mapping[str, JsonValue] = Field(default_factory=dict)
    hits: tuple[HitRecord, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    retrieved_tokens: int = 0
    duration: float = 0.0
    error: str | None = None


class ToolCalled(TraceRecord):
    """The model asked for a tool. `arguments` as sent: an object, or text that was no object."""

    type: Literal["tool_called"] = "tool_called"
    call_id: str
    name: str
    arguments: JsonValue = None
    step: str | None = None


class ToolReturned(TraceRecord):
    """What the model was given back for a call, word for word."""

    type: Literal["tool_returned"] = "tool_returned"
    call_id: str
    name: str
    text: str
    hits: tuple[HitRecord, ...] = ()
    retrieved_tokens: int = 0
    duration: float = 0.0
    error: str | None = None


class Thought(TraceRecord):
    """A whole run of the model's thoughts, or text it wrote on its way to a tool call."""

    type: Literal["thought"] = "thought"
    text: str
    step: str | None = None


class Notice(TraceRecord):
    """Something the reader should know. `code` is for programs, `message` for people."""

    type: Literal["notice"] = "notice"
    level: Level
    code: str
    message: str


class Usage(Record):
    """What a question cost so far.

    `retrieved_tokens` are the o200k tokens of passages shown to the model. `cost` is in US
    dollars, None where no price is known. `estimated`: the provider sent no count, ours stands in.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    retrieved_tokens: int = 0
    model_requests: int = 0
    cost: float | None = 0.0
    estimated: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        known = self.cost is not None and other.cost is not None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            retrieved_tokens=self.retrieved_tokens + other.retrieved_tokens,
            model_requests=self.model_requests + other.model_requests,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            estimated=self.estimated or other.estimated,
        )


class UsageReported(TraceRecord):
    """The usage of the run up to here."""

    type: Literal["usage"] = "usage"
    usage: Usage


TraceEvent = Annotated[
    RunStarted
    | StepStarted
    | StepFinished
    | ToolCalled
    | ToolReturned
    | Thought
    | Notice
    | UsageReported,
    Field(discriminator="type"),
]
