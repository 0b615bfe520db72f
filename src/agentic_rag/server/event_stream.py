"""Server-sent events: sent as they come, kept alive while nothing comes, ended with the client.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

_KEEP_ALIVE = 15  # seconds; proxies give up after 30 to 60
_AHEAD = 16  # events made before the client has taken them

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class ClientGone(Exception):
    """The client closed the connection, so that nobody waits for the answer any more."""


class EventStream(Response):
    """A response of the events that `events` yields, each as it goes over the wire.

    An exception before the first event is answered by `refused`, since there is no status yet; one
    that comes later by the event that `failed` makes of it. When the client goes, the generator's
    task is cancelled and the generator closed.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[str, None],
        refused: Callable[[Exception], Response],
        failed: Callable[[Exception], str],
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._refused = refused
        self._failed = failed
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ready: asyncio.Queue[str | Exception | None] = asyncio.Queue(_AHEAD)
        making = asyncio.create_task(self._make(ready))
        gone = asyncio.create_task(_until_gone(receive))
        sending = asyncio.create_task(self._send_all(ready, scope, receive, send))
        # The generator's time-out may come while a client that is slow to read is waited for.
        making.add_done_callback(lambda task: task.cancelled() and sending.cancel())
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not sending.cancelled():
                sending.result()
        except OSError:
            pass  # the client went while it was being sent something
        finally:
            await _ended(sending, making, gone)

    async def _make(self, ready: "asyncio.Queue[str | Exception | None]") -> None:
        """All of it in one task: timeouts within the generator count on that."""
        async with aclosing(self._events):
            try:
                async for event in self._events:
                    await ready.put(event)
            except Exception as error:
                await ready.put(error)
        await ready.put(None)

    async def _send_all(
        self,
        ready: "asyncio.Queue[str | Exception | None]",
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        while True:
            try:
                async with asyncio.timeout(_KEEP_ALIVE):
                    event = await ready.get()
            except TimeoutError:
                await self._send(send, ": waiting\n\n")
                continue
            if event is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            if isinstance(event, Exception):
                if not self._begun:
                    await self._refused(event)(scope, receive, send)
                    return
                event = self._failed(event)
            await self._send(send, event)

    async def _send(self, send: Send, event: str) -> None:
        if not self._begun:
            self._begun = True
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
        await send({"type": "http.response.body", "body": event.encode(), "more_body": True})


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client goes. Raises `ClientGone` then, and
    what `work` raises."""
    doing = asyncio.create_task(work)
    gone = asyncio.create_task(_until_gone(request.receive))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientGone
        return doing.result()
    finally:
        await _ended(doing, gone)


async def _until_gone(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel what is not done, and wait for it."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task
