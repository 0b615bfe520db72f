"""Keeping a provider's rate limit with many workers: one pace, and one pause, for all of them.

Waiting happens at the gate of `strategies/streaming.py`, where it is no silence of the model.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from agentic_rag.models.chat import ChatModel

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_MINUTE = 60.0
_TOO_MANY = 429
_PAUSE = 2.0  # seconds, where the provider does not say how long; twice as long each time
_LONGEST_PAUSE = 300.0  # seconds; a provider that wants more is not waited for
_REFUSALS = 6  # of one request, before its question counts as failed


class Pace:
    """At most `per_minute` requests in any minute (None: as many as come), and none while a
    provider wants a pause; `on_pause` is told of how many seconds. For one event loop."""

    def __init__(
        self,
        per_minute: int | None,
        minute: float = _MINUTE,
        on_pause: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._per_minute = per_minute
        self._minute = minute
        self._on_pause = on_pause
        self._sent: deque[float] = deque()
        self._paused_until = 0.0
        self._turn = asyncio.Lock()

    @property
    def paused(self) -> float:
        """For how many seconds yet a provider wants a pause."""
        return max(0.0, self._paused_until - time.monotonic())

    async def turn(self) -> None:
        """Wait until a request may be sent."""
        async with self._turn:  # first come, first served
            while (wait := self._wait()) > 0:  # noqa: ASYNC110  a pause may grow meanwhile
                await asyncio.sleep(wait)
            self._sent.append(time.monotonic())

    def pause(self, seconds: float) -> None:
        """Let nobody send for so long."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def waits(self, error: Exception, refusals: int) -> bool:
        """Whether a request refused for so many times, last with `error`, is to be sent again: all
        wait as long as the provider wants. One that is refused otherwise is not."""
        from pydantic_ai.exceptions import ModelQuotaExceededError, ModelRateLimitError

        too_many = getattr(error, "status_code", None) == _TOO_MANY
        if isinstance(error, ModelQuotaExceededError) or refusals > _REFUSALS:
            return False
        if not too_many and not isinstance(error, ModelRateLimitError):
            return False
        seconds = getattr(error, "retry_after", None) or _PAUSE * 2.0 ** (refusals - 1)
        if seconds > _LONGEST_PAUSE:
            return False
        self.pause(seconds)
        self._on_pause(self.paused)
        return True

    def _wait(self) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0] <= now - self._minute:
            self._sent.popleft()
        wait = self._paused_until - now
        if self._per_minute is not None and len(self._sent) >= self._per_minute:
            wait = max(wait, self._sent[-self._per_minute] + self._minute - now)
        return wait


def paced(chat: ChatModel, pace: Pace) -> ChatModel:
    """`chat`, its requests sent at `pace`; where one is refused for the rate, all of them wait."""
    if chat.connect is None:
        return chat
    connect = chat.connect

    @asynccontextmanager
    async def connected() -> AsyncIterator["Model"]:
        from pydantic_ai.models.wrapper import WrapperModel

        class PacedModel(WrapperModel):
            gate = pace  # a `Gate` of strategies/streaming.py

        async with connect() as model:
            yield PacedModel(model)

    return replace(chat, connect=connected)
