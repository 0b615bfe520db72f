"""MCP over standard input and output: one JSON-RPC message a line, and nothing else."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

_AHEAD = 64  # lines read before they are worked on


async def run_stdio(server: Server[Any]) -> None:
    """Serve until standard input ends or nobody reads standard output any more.

    What other code prints goes to standard error.
    """
    lines = _Lines()
    try:
        async with stdio_server(stdin=lines) as (read, write):  # type: ignore[arg-type]
            lines.write = write
            lines.start()
            with _printing_elsewhere():
                await server.run(read, write, server.create_initialization_options())
    except* (BrokenPipeError, anyio.BrokenResourceError):
        task = asyncio.current_task()  # one of its streams may break first when it is cancelled
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None


@contextmanager
def _printing_elsewhere() -> Iterator[None]:
    """Text that is printed would wait in a buffer, and go out behind the messages at the end."""
    out = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        out.flush()  # for whoever held it; it still leads to standard error


@dataclass(slots=True)
class _Lines:
    """The lines of standard input that are messages, for the transport.

    The library drops the others without a word, and their sender waits for ever; here each gets
    an error at once. The descriptor is moved away, so that no other code can read from it. A
    daemon thread reads it: it may be waiting for a line when the process is to end.
    """

    write: Any = None
    _lines: "asyncio.Queue[str]" = field(default_factory=lambda: asyncio.Queue(_AHEAD))

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        source = os.dup(sys.stdin.fileno())
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, sys.stdin.fileno())
        os.close(nowhere)

        def read() -> None:
            with os.fdopen(source, encoding="utf-8", errors="replace", newline="\n") as lines:
                for line in lines:
                    put(line)
            put("")

        def put(line: str) -> None:
            asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()

        threading.Thread(target=read, daemon=True, name="standard input").start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._lines.get():
            if not line.strip():
                continue
            refusal = _refusal(line)
            if refusal is None:
                yield line
            else:
                await self.write.send(SessionMessage(refusal))


def _refusal(line: str) -> JSONRPCError | None:
    """The answer to a line that is no message; None for one that is."""
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
        return None
    except ValidationError:
        pass
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "The line is not JSON; send one message a line.")
    if not isinstance(value, dict):
        return _error(None, INVALID_REQUEST, "A message must be a JSON object; send one a line.")
    given = value.get("id")
    known = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if not isinstance(value.get("params", {}), dict):
        return _error(known, INVALID_REQUEST, "`params` must be a JSON object, or left out.")
    return _error(
        known,
        INVALID_REQUEST,
        'The line is no JSON-RPC message; it needs "jsonrpc": "2.0", a `method`, and for a '
        "request an `id` that is a number or a text.",
    )


def _error(request_id: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
