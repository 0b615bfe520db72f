"""How many questions are answered at a time; some more wait in order, the rest is turned away."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from agentic_rag.errors import AragError

_REMEMBERED = 20  # questions whose time says how long the next ones may take
_UNKNOWN = 10.0  # seconds, before any question was answered
_LONGEST = 300  # seconds that a client is asked to wait


class TooManyQuestions(AragError):
    """All places and the queue are full; come again in `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            f"Too many questions are being asked at once; ask again in {retry_after} seconds."
        )
        self.retry_after = retry_after


class ServerStopping(AragError):
    """The server is about to end, and takes and answers no more questions."""

    def __init__(self) -> None:
        super().__init__("The server is stopping; ask again when it is back.")


class QuestionGate:
    """`at_a_time` places, and a queue of `queued` before them. For one event loop."""

    def __init__(self, at_a_time: int, queued: int) -> None:
        self._at_a_time = at_a_time
        self._most = at_a_time + queued
        self._places = asyncio.Semaphore(at_a_time)
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.running = 0
        self.waiting = 0
        self.closed = False
        self._when_closed: set[Callable[[], None]] = set()

    def close(self) -> None:
        """Let nobody in any more, send those away who wait, and tell those who are in."""
        self.closed = True
        for _ in range(self.waiting):
            self._places.release()  # they come in, and see that it is closed
        for tell in list(self._when_closed):
            tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """Within the block `tell` is called when the gate is closed."""
        self._when_closed.add(tell)
        try:
            yield
        finally:
            self._when_closed.discard(tell)

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Holds a place to the end of the block; waits for one. Raises TooManyQuestions at once
        where the queue is full, and ServerStopping."""
        if self.running + self.waiting >= self._most:
            raise TooManyQuestions(self._wait())
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        if self.closed:
            raise ServerStopping
        self.running += 1
        began = time.monotonic()
        try:
            yield
        finally:
            self.running -= 1
            self._seconds.append(time.monotonic() - began)
            self._places.release()

    def _wait(self) -> int:
        """Seconds until a place in the queue may be free, as far as the last questions tell."""
        known = self._seconds
        each = sum(known) / len(known) if known else _UNKNOWN
        return min(_LONGEST, max(1, math.ceil(each / self._at_a_time)))
