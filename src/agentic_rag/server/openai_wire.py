"""OpenAI's chat completions, as far as a question needs them: requests read, answers written.

Format: https://platform.openai.com/docs/api-reference/chat. Sources stand in the text and, as
`url_citation`, in `annotations`; the steps on the way are `reasoning_content`, which clients that
know it show apart from the answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentic_rag.errors import AragError
from agentic_rag.integrations.adk_text import message_of, withdrawn
from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.question import Turn
from agentic_rag.strategies.run import STRATEGIES
from agentic_rag.strategies.trace import Usage

PREFIX = "arag-"

_SOURCES = re.compile(r"\n\n(?:Sources:|来源：)\n\n(?=- \[\d+\])")
_NOTES = re.compile(r"\n\n(?:Notes:|说明：)\n\n- ")
_WITHDRAWN = tuple(withdrawn(question).strip() for question in ("", "问"))
_EVIDENCE = re.compile(r"^- \[\d+\] .*?\((\d+-\d+)\)", re.MULTILINE)
_MARK = re.compile(r"\[(\d+)\]")


class NotAChat(AragError):
    """The messages hold no question that can be answered; `param` is the field that is wrong."""

    def __init__(self, message: str, param: str = "messages") -> None:
        super().__init__(message)
        self.param = param


class UnknownModel(AragError):
    """There is no model of that name."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = False


class _Format(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str = "text"


class ChatRequest(BaseModel):
    """A request. What it says of sampling and tools is ignored: the settings decide."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(max_length=200, examples=["arag-agent"])]
    messages: Annotated[list[_Message], Field(min_length=1)]
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    response_format: _Format | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks: the question, the turns before it, and which strategy is to answer."""

    question: str
    history: tuple[Turn, ...]
    strategy: str


def models() -> list[dict[str, Any]]:
    """Each strategy as a model."""
    return [model(f"{PREFIX}{name}") for name in sorted(STRATEGIES)]


def model(name: str) -> dict[str, Any]:
    """One model. Raises `UnknownModel`."""
    strategy_of(name)
    return {"id": name, "object": "model", "created": 0, "owned_by": "agentic-rag"}


def strategy_of(name: str) -> str:
    """The strategy that a model's name stands for. Raises `UnknownModel`."""
    strategy = name.removeprefix(PREFIX)
    if not name.startswith(PREFIX) or strategy not in STRATEGIES:
        known = ", ".join(f"{PREFIX}{one}" for one in sorted(STRATEGIES))
        raise UnknownModel(f"There is no model {name[:100]!r}; use one of: {known}.")
    return strategy


def asked(request: ChatRequest) -> Asked:
    """The question of a request. Instructions (`system`) and results of tools are left out: they
    are no part of a question to documents. Raises `UnknownModel`, `NotAChat`."""
    strategy = strategy_of(request.model)
    if (request.n or 1) != 1:
        raise NotAChat("Only one answer is given to a question; leave out `n`.", "n")
    if request.response_format and request.response_format.type != "text":
        raise NotAChat("Answers are text; leave out `response_format`.", "response_format")
    messages = [one for one in request.messages if one.role in ("user", "assistant")]
    if not messages or messages[-1].role != "user":
        raise NotAChat("The last message must be the user's question; put it at the end.")
    turns: list[Turn] = []
    question = ""
    for message in messages[:-1]:
        said = _text(message)
        if message.role == "user":
            question = f"{question}\n{said}".strip()
        elif question:
            turns.append(_turn(question, said))
            question = ""
    if isinstance(messages[-1].content, list):
        for part in messages[-1].content:
            if part.type != "text":
                raise NotAChat(f"A question is text; leave out the part of type {part.type[:40]}.")
    last = f"{question}\n{_text(messages[-1])}".strip()
    if not last:
        raise NotAChat("The question is empty; ask something.")
    return Asked(last, tuple(turn for turn in turns if turn.answer_text), strategy)


def _text(message: _Message) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if part.type == "text").strip()
    return (message.content or "").strip()


def _turn(question: str, said: str) -> Turn:
    """An earlier answer without what `message_of` put behind it; the ids there are its evidence."""
    for mark in _WITHDRAWN:
        said = said.rpartition(mark)[2]
    text, *behind = _SOURCES.split(said, maxsplit=1)
    ids = _EVIDENCE.findall(behind[0]) if behind else []
    return Turn(question, _NOTES.split(text, maxsplit=1)[0].strip(), tuple(dict.fromkeys(ids)))


def content_of(answer: Answer) -> str:
    """The answer as the text of a message: with its sources and its warnings."""
    return message_of(answer)


def annotations(answer: Answer, link: "Link", offset: int = 0) -> list[dict[str, Any]]:
    """Each mark in the answer's text with its source; `offset` is where the text begins."""
    sources = {citation.number: citation for citation in answer.citations}
    return [
        _annotation(sources[int(mark[1])], mark.start() + offset, mark.end() + offset, link)
        for mark in _MARK.finditer(answer.text)
        if int(mark[1]) in sources
    ]


@dataclass(frozen=True, slots=True)
class Link:
    """Where a reader can open a source: a page of the web itself, or this server's chunk."""

    server: str  # ends in "/"

    def to(self, citation: Citation) -> str:
        """The address of a source."""
        if citation.uri.startswith(("http://", "https://")):
            return citation.uri
        return f"{self.server}api/chunks/{citation.chunk_id}"


def _annotation(citation: Citation, start: int, end: int, link: Link) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": start,
            "end_index": end,
            "title": citation.title or citation.uri,
            "url": link.to(citation),
            # Not OpenAI's; its clients keep them.
            "chunk_id": citation.chunk_id or None,
            "page": citation.page,
            "section": citation.section,
            "snippet": citation.snippet,
        },
    }


def usage_of(usage: Usage) -> dict[str, int]:
    """Tokens as OpenAI counts them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


@dataclass(slots=True)
class Frames:
    """The chunks of a streamed answer; `sent` is the text so far."""

    id: str
    created: int  # seconds since 1970
    model: str
    include_usage: bool
    link: Link
    question: str
    sent: str = field(default="")
    _begun: bool = False
    _from: int = 0  # where the text that counts begins

    def text(self, text: str) -> Iterator[dict[str, Any]]:
        """A piece of the answer."""
        if text:
            self.sent += text
            yield self._chunk({"content": text})

    def step(self, said: str) -> Iterator[dict[str, Any]]:
        """A step on the way."""
        yield self._chunk({"reasoning_content": f"{said}\n"})

    def reset(self) -> Iterator[dict[str, Any]]:
        """What was sent does not count; it cannot be taken back, so that is said."""
        if self.sent[self._from :].strip():
            yield from self.text(withdrawn(self.question))
        self._from = len(self.sent)

    def end(self, answer: Answer) -> Iterator[dict[str, Any]]:
        """What is missing of the answer, its annotations, the end, and the usage if wanted."""
        if not content_of(answer).startswith(self.sent[self._from :]):
            yield from self.reset()
        missing = content_of(answer)[len(self.sent) - self._from :]
        yield from self.text(missing)
        found = annotations(answer, self.link, self._from)
        if found:
            yield self._chunk({"annotations": found})
        yield {**self._chunk({}, "stop"), "arag": about(answer)}
        if self.include_usage:
            yield {**self._frame(), "choices": [], "usage": usage_of(answer.usage)}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant", **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._frame(), "choices": [choice]}

    def _frame(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }


def completion(
    answer: Answer, *, id: str, created: int, model: str, link: Link, steps: Sequence[str]
) -> dict[str, Any]:
    """A whole answer."""
    message = {
        "role": "assistant",
        "content": content_of(answer),
        "refusal": None,
        "annotations": annotations(answer, link),
        **({"reasoning_content": "\n".join(steps)} if steps else {}),
    }
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": usage_of(answer.usage),
        "arag": about(answer),
    }


def about(answer: Answer) -> dict[str, Any]:
    """What OpenAI has no field for."""
    return {
        "status": answer.status,
        "strategy": answer.strategy,
        "model": answer.model,
        "seconds": answer.seconds,
        "cost": answer.usage.cost,
    }


def error(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
