"""Keeping a provider's rate limit with many workers: one pace, and one pause, for all of them."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentic_rag.models.chat import ChatModel

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_MINUTE = 60.0
_TOO_MANY = 429
_PAUSE = 2.0  # seconds, where the provider does not say how long


class Pace:
    """At most `per_minute` requests in any minute (None: as many as come), and none while a
    provider wants a pause. For one event loop."""

    def __init__(self, per_minute: int | None, minute: float = _MINUTE) -> None:
        self._per_minute = per_minute
        self._minute = minute
        self._sent: deque[float] = deque()
        self._paused_until = 0.0
        self._turn = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until a request may be sent."""
        async with self._turn:  # first come, first served
            while (wait := self._wait()) > 0:  # noqa: ASYNC110  a pause may grow meanwhile
                await asyncio.sleep(wait)
            self._sent.append(time.monotonic())

    def pause(self, seconds: float) -> None:
        """Let nobody send for so long."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

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
        async with connect() as model:
            yield _paced_model(model, pace)

    return replace(chat, connect=connected)


def _paced_model(model: "Model", pace: Pace) -> "Model":
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.wrapper import WrapperModel

    def heed(error: ModelHTTPError) -> None:
        if error.status_code == _TOO_MANY:
            pace.pause(getattr(error, "retry_after", None) or _PAUSE)

    class PacedModel(WrapperModel):
        async def request(self, *given: Any, **named: Any) -> Any:
            await pace.turn()
            try:
                return await super().request(*given, **named)
            except ModelHTTPError as error:
                heed(error)
                raise

        @asynccontextmanager
        async def request_stream(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
            await pace.turn()
            try:
                async with super().request_stream(*given, **named) as response:
                    yield response
            except ModelHTTPError as error:
                heed(error)
                raise

    return PacedModel(model)
