"""A model's reply as it comes: pieces of text and of thought, and last the whole of it.

`streamed` and `whole` ask for it piece by piece or at once; `told_apart` takes thoughts that were
written into the text out of it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentic_rag.strategies.thoughts import Piece, ThoughtSplitter

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings


T = TypeVar("T")


class Gate(Protocol):
    """What a model may have as its `gate`: it lets requests through at the pace that a provider
    bears. To wait before it is no silence of the model."""

    async def turn(self) -> None:
        """Wait until a request may be sent."""
        ...

    def waits(self, error: Exception, refusals: int) -> bool:
        """Whether a request that was refused for so many times, last with `error`, is to be sent
        again at its next turn."""
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """A whole reply: its text without thoughts, and what the provider made of it. `unclosed`: it
    ended inside its thoughts."""

    text: str
    thoughts: str
    unclosed: bool
    response: "ModelResponse"


async def told_apart(
    parts: "AsyncGenerator[Piece | ModelResponse, None]",
) -> AsyncGenerator[Piece | Said, None]:
    """What `streamed` or `whole` yields, with thoughts told from text; last the `Said`."""
    splitter = ThoughtSplitter()
    text: list[str] = []
    thoughts: list[str] = []
    response: ModelResponse | None = None

    def kept(pieces: list[Piece]) -> list[Piece]:
        for piece in pieces:
            if piece.kind == "restart":
                text.clear()
            else:
                (text if piece.kind == "text" else thoughts).append(piece.text)
        return pieces

    async with aclosing(parts):
        async for part in parts:
            if not isinstance(part, Piece):
                response = part
                continue
            for piece in kept(splitter.feed(part.text) if part.kind == "text" else [part]):
                yield piece
    for piece in kept(splitter.finish()):
        yield piece
    assert response is not None  # both ways of asking end in one
    yield Said("".join(text), "".join(thoughts).strip(), splitter.unclosed, response)


async def streamed(
    model: "Model",
    messages: "list[ModelMessage]",
    settings: "ModelSettings",
    silence: float,
    parameters: "ModelRequestParameters | None" = None,
) -> "AsyncGenerator[Piece | ModelResponse, None]":
    """Pieces as they come, and last the response.

    `silence` is how many seconds the model may say nothing. Raises what the provider raises, and
    `TimeoutError`.
    """
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import (
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
    )

    async with AsyncExitStack() as stack:
        stream = await _let_through(
            model,
            silence,
            lambda: stack.enter_async_context(
                model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
            ),
        )
        events = aiter(stream)
        while True:
            async with asyncio.timeout(silence):
                event = await anext(events, None)
            match event:
                case None:
                    break
                case (
                    PartStartEvent(part=TextPart(content=said))
                    | PartDeltaEvent(delta=TextPartDelta(content_delta=said))
                ):
                    yield Piece("text", said)
                case (
                    PartStartEvent(part=ThinkingPart(content=thought))
                    | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought))
                ):
                    if thought:
                        yield Piece("thought", thought)
        yield stream.get()


async def whole(
    model: "Model",
    messages: "list[ModelMessage]",
    settings: "ModelSettings",
    silence: float,
    parameters: "ModelRequestParameters | None" = None,
) -> "AsyncGenerator[Piece | ModelResponse, None]":
    """The same of a reply that comes at once."""
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import TextPart, ThinkingPart

    response = await _let_through(
        model,
        silence,
        lambda: model_request(
            model, messages, model_settings=settings, model_request_parameters=parameters
        ),
    )
    for part in response.parts:
        if isinstance(part, TextPart) and part.content:
            yield Piece("text", part.content)
        elif isinstance(part, ThinkingPart) and part.content:
            yield Piece("thought", part.content)
    yield response


async def _let_through(model: "Model", silence: float, request: Callable[[], Awaitable[T]]) -> T:
    """What `request()` gives within `silence` seconds, once the model's gate, if any, is open."""
    gate: Gate | None = getattr(model, "gate", None)
    for refusals in count(1):
        if gate is not None:
            await gate.turn()
        try:
            async with asyncio.timeout(silence):
                return await request()
        except Exception as error:
            if gate is None or not gate.waits(error, refusals):
                raise
    raise AssertionError("count has no end")
