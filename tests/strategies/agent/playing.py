"""A model that plays a script, streamed and not, and refuses a history that a provider would."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    RunFailed,
    RunFinished,
    ToolCalled,
    ToolReturned,
)
from agentic_rag.strategies.question import Turn
from agentic_rag.strategies.run import stream

BOTH_WAYS = (True, False)  # streaming


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` are sent as they are, an object as JSON."""

    name: str
    arguments: Any = None
    call_id: str = ""

    @property
    def json(self) -> str:
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


@dataclass(frozen=True)
class Thinks:
    """Thoughts in a field of their own."""

    text: str


Said = str | Call | Thinks | Exception


def search(*keywords: str) -> Call:
    return Call("keyword_search", {"keywords": list(keywords)})


def ask_for(query: str) -> Call:
    return Call("semantic_search", {"query": query})


def read(*ids: str, **more: Any) -> Call:
    return Call("read_chunk", {"chunk_ids": list(ids), **more})


class Model:
    """Plays its turns one after the other, the last one again and again."""

    def __init__(self, *turns: Sequence[Said] | Said, name: str = "scripted") -> None:
        self.turns = [turn if isinstance(turn, list | tuple) else [turn] for turn in turns]
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(self._whole, stream_function=self._stream, model_name=name)

    @property
    def count(self) -> int:
        return len(self.requests)

    def sent(self, number: int = -1) -> str:
        """All the text of a request but its instructions."""
        parts = [part for message in self.requests[number] for part in message.parts]
        return "\n".join(str(getattr(part, "content", "") or "") for part in parts)

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Sequence[Said]:
        _check(messages)
        self.requests.append(list(messages))
        self.infos.append(info)
        return self.turns[min(self.count, len(self.turns)) - 1]

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts: list[Any] = []
        for number, said in enumerate(self._next(messages, info)):
            match said:
                case Exception():
                    raise said
                case str():
                    parts.append(TextPart(said))
                case Thinks(text=text):
                    parts.append(ThinkingPart(text))
                case Call():
                    parts.append(ToolCallPart(said.name, said.json, self._id(said, number)))
        return ModelResponse(parts=parts)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield ""
        for number, said in enumerate(self._next(messages, info)):
            match said:
                case Exception():
                    raise said
                case str():
                    for at in range(0, len(said), 7):
                        yield said[at : at + 7]
                case Thinks(text=text):
                    yield {100 + number: DeltaThinkingPart(content=text)}
                case Call():
                    name, one = said.name, self._id(said, number)
                    half = len(said.json) // 2
                    yield {number: DeltaToolCall(name, said.json[:half], tool_call_id=one)}
                    yield {number: DeltaToolCall(json_args=said.json[half:])}

    def _id(self, said: Call, number: int) -> str:
        return said.call_id or f"call-{self.count}-{number}"


def _check(messages: list[ModelMessage]) -> None:
    """Refuse what providers refuse: a call without its one reply, a reply without a call."""
    waiting: list[str] = []
    for before, message in zip([None, *messages], messages, strict=False):
        if type(before) is type(message):
            raise ModelHTTPError(400, "scripted", {"error": {"message": "two of one role"}})
        if isinstance(message, ModelResponse):
            waiting = [p.tool_call_id for p in message.parts if isinstance(p, ToolCallPart)]
            if len(set(waiting)) < len(waiting):
                raise ModelHTTPError(400, "scripted", {"error": {"message": "an id twice"}})
        elif isinstance(message, ModelRequest):
            given = [p.tool_call_id for p in message.parts if isinstance(p, ToolReturnPart)]
            if given != waiting:
                raise ModelHTTPError(400, "scripted", {"error": {"message": "ids lack replies"}})
            kinds = [isinstance(p, UserPromptPart) for p in message.parts]
            if not message.parts or kinds != sorted(kinds):
                raise ModelHTTPError(400, "scripted", {"error": {"message": "replies come first"}})


@dataclass(frozen=True)
class Played:
    """What a run gave."""

    events: list[Event]

    @property
    def answer(self) -> Answer:
        last = self.events[-1]
        assert isinstance(last, RunFinished), last
        return last.answer

    @property
    def error(self) -> RunFailed:
        last = self.events[-1]
        assert isinstance(last, RunFailed), last
        return last

    @property
    def called(self) -> list[ToolCalled]:
        return [event for event in self.events if isinstance(event, ToolCalled)]

    @property
    def returned(self) -> list[ToolReturned]:
        return [event for event in self.events if isinstance(event, ToolReturned)]

    @property
    def run(self) -> list[str]:
        """Names of the tools that were run, and did not fail."""
        return [event.name for event in self.returned if event.error is None]

    @property
    def shown(self) -> str:
        """What a reader saw of the answer: the pieces since the last reset."""
        text = ""
        for event in self.events:
            if isinstance(event, AnswerReset):
                text = ""
            elif isinstance(event, AnswerDelta):
                text += event.text
        return text

    @property
    def resets(self) -> int:
        return sum(isinstance(event, AnswerReset) for event in self.events)


async def play(
    kb: KnowledgeBase,
    model: Model,
    question: str,
    *,
    streaming: bool = True,
    history: Sequence[Turn] = (),
    settings: Settings | None = None,
    **agent: Any,
) -> Played:
    """Ask the agent; further keywords are settings of `[agent]`."""
    base = settings or Settings(kb=kb.settings.kb)
    chosen = base.model_copy(update={"agent": AgentSettings(streaming=streaming, **agent)})
    events = stream(
        kb, question, strategy="agent", model=model.model, settings=chosen, history=history
    )
    played = Played([event async for event in events])
    if isinstance(played.events[-1], RunFinished):
        assert played.shown == played.answer.text  # in every run: what was seen is the answer
    return played
