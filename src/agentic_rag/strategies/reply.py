"""One streamed request to a chat model, without tools: pieces of text and thought, then the reply.

Errors of every provider come out as `ModelCallFailed` with one sentence. What may pass by itself
(rate limits, overload, broken connections, silence) is tried once more.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from agentic_rag.errors import AragError
from agentic_rag.models.cures import Cures
from agentic_rag.strategies.failures import Failure, describe_failure
from agentic_rag.strategies.streaming import streamed, told_apart
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.strategies.trace import Usage
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

T = TypeVar("T")

_PAUSE = 1.0  # seconds before the second try, unless the provider asks for more
_LONGEST_PAUSE = 10.0


class ModelCallFailed(AragError):
    """A chat model could not be reached or refused; `requests` were made.

    `failure` has what is wrong and what to do apart; `too_long`: the prompt did not fit, so that a
    shorter one may work.
    """

    def __init__(self, failure: Failure | str, requests: int = 1) -> None:
        self.failure = Failure(failure) if isinstance(failure, str) else failure
        super().__init__(self.failure.message)
        self.requests = requests
        self.too_long = self.failure.too_long


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions and the user's turn."""

    instructions: str
    user: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The first try failed for `reason` (a sentence); what it gave so far does not count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply.

    `cut_off`: it ended at the token limit; `unclosed`: inside its thoughts; `broken_off`: the
    stream ended without saying that the reply was over, which some servers never say.
    """

    text: str
    thoughts: str
    cut_off: bool
    unclosed: bool
    broken_off: bool
    usage: Usage


async def stream_reply(
    model: "Model",
    prompt: Prompt,
    settings: "ModelSettings",
    *,
    silence: float,
    cost: float | None = None,
    cures: Cures = Cures(),  # noqa: B008  frozen
) -> AsyncGenerator[Piece | Retrying | Reply, None]:
    """Pieces as they come, and last the `Reply`.

    `silence` is how many seconds the model may say nothing. `cost` overrides the price list (0
    for a model on this machine). `cures` say what to do when it fails.
    Raises `ModelCallFailed`. Closing the iterator, or cancelling
    its task, ends the request.
    """
    requests = 1
    pieces = tried_twice(lambda: _request(model, prompt, settings, silence, cost), silence, cures)
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Retrying):
                requests += 1
            elif isinstance(piece, Reply):
                usage = piece.usage.model_copy(update={"model_requests": requests})
                piece = replace(piece, usage=usage)
            yield piece


async def tried_twice(
    request: Callable[[], AsyncGenerator[T, None]],
    silence: float,
    cures: Cures = Cures(),  # noqa: B008  frozen
) -> AsyncGenerator[T | Retrying, None]:
    """What `request()` yields; where it fails by something that may pass, `Retrying` and then
    what it yields when asked again. Raises `ModelCallFailed`, with the provider's error as its
    cause."""
    for attempt in (1, 2):
        try:
            async with aclosing(request()) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except Exception as error:
            failure = describe_failure(error, silence, cures)
            if attempt == 2 or not failure.transient:
                raise ModelCallFailed(failure, attempt) from error
            pause = min(failure.pause or _PAUSE, _LONGEST_PAUSE)
        yield Retrying(f"{failure.what}.")
        await asyncio.sleep(pause)


async def _request(
    model: "Model", prompt: Prompt, settings: "ModelSettings", silence: float, cost: float | None
) -> AsyncGenerator[Piece | Reply, None]:
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(prompt.user)], instructions=prompt.instructions)
    ]
    async with aclosing(told_apart(streamed(model, messages, settings, silence))) as pieces:
        async for piece in pieces:
            if isinstance(piece, Piece):
                yield piece
                continue
            written, response = piece.text.rstrip(), piece.response
            yield Reply(
                text=written,
                thoughts=piece.thoughts,
                cut_off=response.finish_reason == "length",
                unclosed=piece.unclosed or (not written and bool(piece.thoughts)),
                broken_off=has_no_end(response),
                usage=usage_of(
                    response,
                    lambda: count_tokens(prompt.instructions + prompt.user),
                    written + piece.thoughts,
                    cost,
                ),
            )


def has_no_end(response: "ModelResponse") -> bool:
    """Whether the stream ended without saying that the reply was over."""
    # Pydantic AI puts in "stop" where nothing came; what came is among the provider's details.
    details = response.provider_details or {}
    chat_protocol = response.provider_url is not None and "timestamp" in details
    return chat_protocol and "finish_reason" not in details


def usage_of(
    response: "ModelResponse", sent: Callable[[], int], said: str, cost: float | None
) -> Usage:
    """What a request cost, by the provider's count, or by ours of `sent` and `said` where it sends
    none. `cost` overrides the price list."""
    counted = response.usage
    estimated = not counted.input_tokens
    if cost is None and not estimated:
        try:
            cost = float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):  # a model without a known price
            cost = None
    return Usage(
        input_tokens=counted.input_tokens or sent(),
        output_tokens=counted.output_tokens or count_tokens(said),
        model_requests=1,
        cost=cost,
        estimated=estimated,
    )
