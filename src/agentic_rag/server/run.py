"""Running the application by uvicorn until Ctrl-C or SIGTERM."""

import socket
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.models.chat import resolve_chat_model
from agentic_rag.server.app import create_app
from agentic_rag.server.connections import PromptH11Protocol
from agentic_rag.server.request_log import log_as_json
from agentic_rag.server.spans import configure

if TYPE_CHECKING:
    from agentic_rag.config import Settings

_GRACE = 3  # seconds that requests have to end when the server stops
_BACKLOG = 2048
_CONNECTIONS = 800  # below the 1,024 files that a process may commonly have open


class CannotListen(AragError):
    """The address cannot be listened on."""


def serve(settings: "Settings", *, tell: Callable[[str], None], open_page: bool = False) -> None:
    """Serve until a signal ends it. `tell` is given a line for a person. Raises TokenNeeded,
    CannotListen, ModelUnavailable, and what opening the knowledge base raises."""
    resolve_chat_model(settings)  # one that cannot be is told now, not at the first question
    kb = KnowledgeBase.open(settings.kb, settings=settings)
    app = create_app(settings, kb=kb)
    listener = listening(settings.server.host, settings.server.port)
    log_as_json()
    if said := configure():
        tell(f"note: {said}")
    config = uvicorn.Config(
        app,
        http=PromptH11Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        limit_concurrency=_CONNECTIONS,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    url = url_of(listener)
    tell(f"Serving {kb.directory} at {url}; Ctrl-C ends it.")
    if open_page:
        webbrowser.open(url)
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells questions that the server ends, before it waits for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.server.gate.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises CannotListen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"Nothing can listen on {host}, port {port} ({error.strerror or error}); choose "
            "another one with --port or --host."
        ) from None
    made.set_inheritable(True)
    return made


def url_of(listener: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
