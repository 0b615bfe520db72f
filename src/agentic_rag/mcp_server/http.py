"""MCP over streamable HTTP, at `/mcp`: mounted in `arag serve`, or by itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentic_rag.mcp_server.server import mcp_server
from agentic_rag.mcp_server.serving import Serving
from agentic_rag.server.authorisation import Authorisation, token_of

if TYPE_CHECKING:
    import socket

PATH = "/mcp"

_GRACE = 3  # seconds that requests have to end when the server stops


class McpOverHttp:
    """ASGI application for `/mcp`; it answers while `running` is entered. Who may come in is the
    business of what it is mounted in."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._sessions: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Holds the client sessions; they end with it."""
        self._sessions = StreamableHTTPSessionManager(
            mcp_server(self._serving),
            max_request_body_size=self._serving.settings.server.max_body_kb * 1024,
        )
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._sessions is not None  # requests come between the two ends of the lifespan
        await self._sessions.handle_request(scope, receive, send)

    @property
    def route(self) -> Route:
        """The route to add to an application; every method, as the protocol has its own answers."""
        return Route(PATH, endpoint=self)


def mcp_app(serving: Serving) -> Starlette:
    """An application that serves `/mcp` alone. Raises TokenNeeded."""
    token = token_of(serving.settings.server)
    over_http = McpOverHttp(serving)
    return Starlette(
        routes=[over_http.route],
        middleware=[
            Middleware(Authorisation, token=token, origins=serving.settings.server.allow_origins)
        ],
        lifespan=lambda app: over_http.running(),
    )


def run_http(serving: Serving, tell: Callable[[str], None]) -> None:
    """Serve until a signal ends it; `tell` is given a line for a person. Raises TokenNeeded,
    CannotListen."""
    import uvicorn

    from agentic_rag.server.run import listening, url_of

    app = mcp_app(serving)
    listener: socket.socket = listening(serving.settings.server.host, serving.settings.server.port)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    tell(f"Serving MCP at {url_of(listener).rstrip('/')}{PATH}; Ctrl-C ends it.")
    uvicorn.Server(config).run(sockets=[listener])
