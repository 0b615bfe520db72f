"""One streamed request to a chat model, without tools: pieces of text and thought, then the reply.

Errors of every provider come out as `ModelCallFailed` with one sentence. What may pass by itself
(rate limits, overload, broken connections, silence) is tried once more.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from agentic_rag.errors import AragError
from agentic_rag.strategies.streaming import streamed, told_apart
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.strategies.trace import Usage
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

T = TypeVar("T")

_TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_PAUSE = 1.0  # seconds before the second try, unless the provider asks for more
_LONGEST_PAUSE = 10.0
_LONG_TOKEN = re.compile(r"[A-Za-z0-9_\-*.]{20,}")  # keys are echoed by some providers


class ModelCallFailed(AragError):
    """A chat model could not be reached or refused; `requests` were made.

    `too_long`: the prompt did not fit, so that a shorter one may work.
    """

    def __init__(self, message: str, requests: int = 1, *, too_long: bool = False) -> None:
        super().__init__(message)
        self.requests = requests
        self.too_long = too_long


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
    unreachable: str = "check the network",
) -> AsyncGenerator[Piece | Retrying | Reply, None]:
    """Pieces as they come, and last the `Reply`.

    `silence` is how many seconds the model may say nothing. `cost` overrides the price list (0
    for a model on this machine). `unreachable` is what to do when nothing answers, as a clause.
    Raises `ModelCallFailed`. Closing the iterator, or cancelling
    its task, ends the request.
    """
    requests = 1
    pieces = tried_twice(
        lambda: _request(model, prompt, settings, silence, cost), silence, unreachable
    )
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
    unreachable: str = "check the network",
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
            failure = describe_failure(error, silence, unreachable)
            if attempt == 2 or not failure.transient:
                raise ModelCallFailed(
                    failure.message, attempt, too_long=failure.too_long
                ) from error
            pause = min(failure.pause or _PAUSE, _LONGEST_PAUSE)
        yield Retrying(failure.message)
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


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in one sentence; `transient`: it may pass by itself, after `pause` seconds."""

    message: str
    transient: bool
    pause: float | None = None
    too_long: bool = False


def describe_failure(
    error: Exception, silence: float, unreachable: str = "check the network"
) -> Failure:
    """What a request's error comes to; `silence` is how many seconds were waited, `unreachable`
    what to do when nothing answers."""
    from pydantic_ai import exceptions as e

    if isinstance(error, TimeoutError | e.ModelTimeoutError | e.ModelRequestTimeout):
        return Failure(
            f"The model said nothing for {silence:g} seconds; try again, or raise `model_timeout`.",
            True,
        )
    if isinstance(error, AragError):
        return Failure(str(error), False)
    status = getattr(error, "status_code", None)
    told = f" (HTTP {status})" if status else ""
    pause = getattr(error, "retry_after", None)
    match error:
        case e.ModelContextWindowExceededError():
            return Failure(
                "The passages do not fit the model's context; lower `answer.passage_tokens`.",
                False,
                too_long=True,
            )
        case e.ModelAuthenticationError():
            return Failure(
                f"The provider refused the key{told}; check it and what it may use.", False
            )
        case e.ModelQuotaExceededError():
            return Failure(
                f"The provider says the quota is used up{told}; check the account.", False
            )
        case e.ModelNotFoundError():
            return Failure(
                f"The provider does not know this model or address{told}; check `model`.", False
            )
        case e.ModelRateLimitError():
            return Failure(
                f"The provider's rate limit is reached{told}; try again later.", True, pause
            )
        case e.ModelConnectionError():
            return Failure(
                f"The connection to the model failed or broke; {unreachable}.",
                True,
            )
    said = _LONG_TOKEN.sub("…", " ".join(provider_message(error).split()))[:200]
    transient = status in _TRANSIENT_STATUS or isinstance(
        error, e.ModelUnavailableError | e.ModelServerError
    )
    return Failure(f"The model failed{told}: {said}", transient, pause)


def provider_message(error: BaseException) -> str:
    """What the provider said, else the error's own words."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
    return f"{type(error).__name__}: {error}"
