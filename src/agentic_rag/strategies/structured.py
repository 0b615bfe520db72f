"""A chat model's reply as an object: asked for as JSON in words, read strictly, with its thoughts
told apart.

No provider's own JSON mode is used, since servers differ in what they take. The object that
counts is the last in the reply that fits: models draft one before, and quote others.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agentic_rag.strategies.reply import (
    ModelCallFailed,
    Prompt,
    Reply,
    Retrying,
    stream_reply,
)
from agentic_rag.strategies.trace import Usage

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.models.chat import ChatModel

T = TypeVar("T", bound=BaseModel)
_MOST_OBJECTS = 200  # a reply with more braces than this is no object with words around it


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """What came of it: `value`, or None and the `problem` in a sentence. `raw` is the last reply's
    text."""

    value: T | None
    problem: str
    usage: Usage
    raw: str = ""


async def ask_for(
    schema: type[T],
    model: "Model",
    chat: "ChatModel",
    prompt: Prompt,
    settings: "ModelSettings",
    *,
    silence: float,
    tries: int,
) -> AsyncGenerator[Retrying | Structured[T], None]:
    """Ask `model` for an object of `schema`, `tries` times while the reply does not fit; last the
    `Structured`. A model that cannot be asked is its `problem`, not an error."""
    usage = Usage(cost=0.0)
    problem = raw = ""
    for _ in range(tries):
        reply: Reply | None = None
        try:
            replies = stream_reply(
                model,
                prompt,
                settings,
                silence=silence,
                cost=chat.cost,
                cures=chat.cures,
            )
            async with aclosing(replies) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        reply = piece
                    elif isinstance(piece, Retrying):
                        yield piece
        except ModelCallFailed as failure:
            usage += Usage(model_requests=failure.requests, cost=chat.cost)
            yield Structured(None, str(failure), usage, raw)
            return
        assert reply is not None  # the last piece is one
        usage += reply.usage
        raw = reply.text
        value = read_object(raw, schema)
        if value is not None:
            yield Structured(value, "", usage, raw)
            return
        problem = _problem(reply)
    yield Structured(None, problem, usage, raw)


def read_object(text: str, schema: type[T]) -> T | None:
    """The last JSON object in `text` that fits `schema`; None where there is none."""
    found = None
    for data in _objects(text):
        try:
            found = schema.model_validate(data)
        except ValidationError:
            continue
    return found


def _objects(text: str) -> Iterator[object]:
    """The outermost JSON objects of a text, in order."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks into strings
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            data, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield data
            if isinstance(data, dict) and len(data) == 1:  # wrapped in one more level
                yield next(iter(data.values()))
        at = text.find("{", end)


def _problem(reply: Reply) -> str:
    if reply.unclosed or (reply.cut_off and not reply.text):
        return "The model was cut off while it was still thinking."
    if reply.cut_off:
        return "The model's reply was cut off before its end."
    if not reply.text:
        return "The model's reply was empty."
    return "The model's reply was not the object it was asked for."
