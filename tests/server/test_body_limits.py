"""Bodies that are too long or too slow, and connections that bring no request."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server import connections
from agentic_rag.server.app import create_app
from agentic_rag.server.body_limits import BodyLimits
from agentic_rag.server.connections import PromptH11Protocol
from agentic_rag.server.run import listening
from tests.server.conftest import Api
from tests.server.listening import served


async def test_a_body_that_says_it_is_too_long_is_not_read(api: Api) -> None:
    async with api(max_body_kb=16) as client:
        headers = {"Content-Length": str(5 * 2**30), "Content-Type": "application/json"}
        refused = await client.post("/api/ask", content=b"{}", headers=headers)

    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "too_large"
    assert "16 KB" in refused.json()["error"]["message"]
    assert refused.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/api/ask", "/api/search", "/v1/chat/completions", "/mcp"])
def test_a_body_without_a_length_is_cut_off_at_the_limit(kb: KnowledgeBase, path: str) -> None:
    server = kb.settings.server.model_copy(update={"max_body_kb": 64})
    app = create_app(kb.settings.model_copy(update={"server": server}), kb=kb)
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 5 * 2**30:
            sent += 2**16
            yield b"x" * 2**16

    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with served(app) as url:
        try:
            reply = httpx.post(f"{url}{path}", content=endless(), headers=headers, timeout=20)
            assert reply.status_code == 413
            assert "64 KB" in reply.json()["error"]["message"]
        except httpx.TransportError:  # the connection was closed while it was still sending
            pass
        assert sent < 16 * 2**20
        assert httpx.get(f"{url}/api/health").status_code == 200


def _pieces(url: str, pieces: int, pause: float) -> bytes:
    """What a server answers to a body that comes in pieces of one byte."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n".encode())
        for _ in range(pieces):
            time.sleep(pause)
            try:
                line.sendall(b"x")
            except OSError:
                break
        try:
            return line.recv(4096)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    ("limits", "pieces", "pause"),
    [({"pause": 0.2}, 1, 0.0), ({"pause": 5.0, "grace": 0.3}, 20, 0.05)],
)
def test_a_body_that_comes_too_slowly_is_given_up(
    limits: dict[str, float], pieces: int, pause: float
) -> None:
    async def read(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    app = Starlette(routes=[Route("/", read, methods=["POST"])])
    with served(BodyLimits(app, most=1000, **limits)) as url:
        began = time.monotonic()
        answer = _pieces(url, pieces, pause)
    assert b" 408 " in answer
    assert time.monotonic() - began < 4


def test_a_body_whose_pieces_come_in_time_is_taken(kb: KnowledgeBase) -> None:
    with served(create_app(kb.settings, kb=kb)) as url:

        def slowly() -> Iterator[bytes]:
            for byte in '{"query": "泵站"}'.encode():
                time.sleep(0.005)
                yield bytes([byte])

        headers = {"Content-Type": "application/json"}
        found = httpx.post(f"{url}/api/search", content=slowly(), headers=headers)
    assert found.status_code == 200
    assert found.json()["query"] == "泵站"


@pytest.mark.parametrize("sent", [b"", b"GET /api/hea", b"GET /api/health HTTP/1.1\r\nHost: 127"])
def test_a_connection_without_a_whole_request_is_closed(
    kb: KnowledgeBase, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SECONDS", 0.3)
    with _prompt(create_app(kb.settings, kb=kb)) as (host, port):
        with socket.create_connection((host, port), timeout=5) as line:
            line.sendall(sent)
            assert line.recv(100) == b""  # closed by the server
        with httpx.Client(base_url=f"http://{host}:{port}") as client:  # one connection
            for _ in range(3):
                assert client.get("/api/health").status_code == 200
                time.sleep(0.15)


class _prompt:
    """As `served`, with the protocol that `arag serve` has."""

    def __init__(self, app: Any) -> None:
        self._listener = listening("127.0.0.1", 0)
        config = uvicorn.Config(app, http=PromptH11Protocol, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listener],), daemon=True
        )

    def __enter__(self) -> tuple[str, int]:
        self._thread.start()
        host, port = self._listener.getsockname()
        return host, port

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
