"""Server-sent events: what the client gets, and that the work ends with it."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator

import httpx2 as httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentic_rag.server import event_stream
from agentic_rag.server.event_stream import EventStream
from tests.server.listening import served


def answering(events: AsyncGenerator[str, None]) -> Starlette:
    async def answer(request: Request) -> Response:
        return EventStream(
            events,
            lambda error: PlainTextResponse(str(error), 409),
            lambda error: f"event: error\ndata: {error}\n\n",
        )

    return Starlette(routes=[Route("/", answer)])


def test_an_error_before_the_first_event_has_a_status_and_one_after_it_is_an_event() -> None:
    async def at_once() -> AsyncGenerator[str, None]:
        raise ValueError("no place is free")
        yield ""

    async def later() -> AsyncGenerator[str, None]:
        yield "data: 1\n\n"
        raise ValueError("it broke")

    with served(answering(at_once())) as url:
        refused = httpx.get(url)
    assert refused.status_code == 409 and refused.text == "no place is free"
    with served(answering(later())) as url:
        begun = httpx.get(url)
    assert begun.status_code == 200
    assert begun.text == "data: 1\n\nevent: error\ndata: it broke\n\n"
    assert begun.headers["content-type"].startswith("text/event-stream")


def test_while_nothing_comes_the_connection_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_KEEP_ALIVE", 0.05)

    async def slow() -> AsyncGenerator[str, None]:
        await asyncio.sleep(0.3)
        yield "data: 1\n\n"

    with served(answering(slow())) as url:
        text = httpx.get(url).text
    assert text.startswith(": waiting\n\n") and text.endswith("data: 1\n\n")


def test_the_work_ends_with_the_client_though_nothing_was_sent_yet() -> None:
    begun, closed = threading.Event(), threading.Event()

    async def silent() -> AsyncGenerator[str, None]:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            closed.set()
        yield ""

    with served(answering(silent())) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert begun.wait(10)
        assert closed.wait(10)


def test_a_client_that_does_not_read_is_waited_for_no_longer_than_the_work_may_take() -> None:
    closed = threading.Event()

    async def endless() -> AsyncGenerator[str, None]:
        try:
            async with asyncio.timeout(0.5):
                while True:
                    yield f"data: {'x' * 100_000}\n\n"
        finally:
            closed.set()

    with served(answering(endless())) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert closed.wait(10)
            connection.settimeout(10)
            ends = time.monotonic() + 10
            while connection.recv(1_000_000):  # the server ends it
                assert time.monotonic() < ends
