"""A log of one JSON object a line on standard error, and an id for every request.

A client may name the id in `X-Request-ID`; the response carries it back, and so does every line
that is logged on the request's behalf. Queries, bodies and tokens are never logged.
"""

import asyncio
import json
import logging
import re
import secrets
import sys
import time
from contextvars import ContextVar
from datetime import datetime

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic_rag.server.errors import error_response

HEADER = "X-Request-ID"

_logger = logging.getLogger(__name__)
_request: ContextVar[str] = ContextVar("request", default="")
_ID = re.compile(r"[0-9A-Za-z._-]{1,64}")
_OFTEN = ("/api/health", "/api/ready", "/metrics")  # asked every few seconds, by programs
_ELSEWHERE = "(none)"  # the route of what was found nowhere; its path would be a label of its own


def log_as_json() -> None:
    """Let every logger of this process write JSON on standard error: ours from INFO on, those of
    libraries from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("agentic_rag").setLevel(logging.INFO)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := _request.get():
            line["request"] = request
        line.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0]:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class RequestLog:
    """ASGI middleware, the outermost: names, times, counts and logs each request, and answers what
    nothing else caught."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _ID.fullmatch(given) else secrets.token_hex(8)
        token = _request.set(name)
        began = time.monotonic()
        status = 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = name
                headers.setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        try:
            await self.app(scope, receive, named)
        except asyncio.CancelledError:
            # uvicorn cancels what has not ended in time after a signal, and would log a traceback.
            _logger.warning("a request was cut off, as the server stops")
        except Exception:
            _logger.exception("a request failed")
            if status:  # too late for another one: the connection ends without an end of the body
                raise
            said = f"The server met something it did not expect; its log says what, under {name}."
            await error_response(500, "unexpected", said)(scope, receive, named)
        finally:
            self._note(scope, status, time.monotonic() - began)
            _request.reset(token)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", _ELSEWHERE)
        state = getattr(scope["app"].state, "server", None)
        if state is not None:
            state.counts.request(scope["method"], route, status, seconds)
        if scope["path"] in _OFTEN and status == 200:
            return
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status or None,  # None: the client had gone before
            "milliseconds": round(seconds * 1000, 1),
            "client": (scope.get("client") or ("",))[0],
        }
        _logger.info("request", extra={"fields": fields})
