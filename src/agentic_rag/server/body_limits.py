"""How much a request may send, and how slowly.

Bytes are counted as they come, since `Content-Length` is only what the client says; the rest of a
body that is too long is not read.
"""

import asyncio
import time
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic_rag.server.errors import error_response

TOO_LARGE, TOO_SLOW = 413, 408
_CLOSE = {"Connection": "close"}
_PAUSE = 20.0  # seconds between two pieces of a body; nginx waits 60
_GRACE = 30.0  # seconds before the pace counts
_PACE = 500  # bytes per second, on average; Apache's mod_reqtimeout asks the same


class BodyLimits:
    """ASGI middleware: of a body at most `most` bytes, where `paths` names no other number (None:
    the route counts itself)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int,
        paths: Mapping[str, int | None] | None = None,
        pause: float = _PAUSE,
        grace: float = _GRACE,
    ) -> None:
        self.app = app
        self._most = most
        self._paths = paths or {}
        self._pause = pause
        self._grace = grace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self._paths.get(scope["path"].rstrip("/"), self._most)
        said = Headers(scope=scope).get("content-length", "")
        if most is not None and said.isdecimal() and int(said) > most:
            refused = error_response(TOO_LARGE, "too_large", too_large(most), _CLOSE)
            await refused(scope, receive, send)
            return
        await self.app(scope, self._counted(receive, most), send)

    def _counted(self, receive: Receive, most: int | None) -> Receive:
        began = time.monotonic()
        received = 0
        whole = False

        async def counted() -> Message:
            nonlocal received, whole
            if whole:  # what comes now is the end of the connection, whenever that is
                return await receive()
            try:
                async with asyncio.timeout(self._pause):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(TOO_SLOW, _TOO_SLOW, _CLOSE) from None
            received += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if most is not None and received > most:
                raise HTTPException(TOO_LARGE, too_large(most), _CLOSE)
            seconds = time.monotonic() - began
            if not whole and seconds > self._grace and received < _PACE * seconds:
                raise HTTPException(TOO_SLOW, _TOO_SLOW, _CLOSE)
            return message

        return counted


_TOO_SLOW = "The body came too slowly; send it again over a better connection."


def too_large(most: int) -> str:
    """That a body is longer than `most` bytes."""
    size = f"{most / 1024 / 1024:g} MB" if most >= 1024 * 1024 else f"{most / 1024:g} KB"
    return f"The body is longer than {size}; send less, or raise the limit in section server."
