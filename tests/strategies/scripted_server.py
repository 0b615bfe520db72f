"""A small OpenAI-compatible server on loopback that plays a script, a turn per request."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass(frozen=True)
class Turn:
    """What one request gets. `bytes_a_write` splits the stream; `delay` is before each piece."""

    pieces: Sequence[str | dict[str, Any]] = ()
    status: int = 200
    error: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    bytes_a_write: int = 1_000_000
    delay: float = 0.0
    finish: str = "stop"
    hang: bool = False  # says nothing at all
    break_off: bool = False  # ends the connection in the middle


@dataclass
class Script:
    """The turns, and what was seen."""

    turns: list[Turn]
    address: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(*turns: Turn) -> Iterator[Script]:
    """A server that plays `turns`, the last one again and again."""
    script = Script(list(turns))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            script.requests.append(json.loads(self.rfile.read(length)))
            script.keys.append(self.headers.get("Authorization", ""))
            script.asked.set()
            number = min(len(script.requests), len(script.turns)) - 1
            try:
                if script.requests[-1].get("stream"):
                    self._play(script.turns[number])
                else:
                    self._play_whole(script.turns[number])
            except OSError:
                script.hung_up.set()
            self.close_connection = True

        def _play(self, turn: Turn) -> None:
            if turn.hang:
                self._wait_for_hang_up()
                return
            body = b"" if turn.error is None else json.dumps({"error": turn.error}).encode()
            self.send_response(turn.status)
            for name, value in turn.headers.items():
                self.send_header(name, value)
            kind = "application/json" if body else "text/event-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Connection", "close")
            if body or turn.status != 200:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if body or turn.status != 200:
                self.wfile.write(body)
                return
            for piece in turn.pieces:
                time.sleep(turn.delay)
                delta = {"content": piece} if isinstance(piece, str) else piece
                self._send(_chunk(delta=delta), turn.bytes_a_write)
            if turn.break_off:
                return
            self._send(_chunk(delta={}, finish_reason=turn.finish), turn.bytes_a_write)
            self._send({**_chunk(), "choices": [], "usage": _USAGE}, turn.bytes_a_write)
            self.wfile.write(b"data: [DONE]\n\n")

        def _play_whole(self, turn: Turn) -> None:
            if turn.hang or turn.error is not None:
                self._play(turn)
                return
            message: dict[str, Any] = {"role": "assistant", "content": None}
            for piece in turn.pieces:
                for name, value in (
                    {"content": piece} if isinstance(piece, str) else piece
                ).items():
                    message[name] = value if message.get(name) is None else message[name] + value
            for call in message.get("tool_calls", ()):
                call.pop("index", None)
            whole = {"index": 0, "finish_reason": turn.finish, "message": message}
            body = {**_chunk(), "object": "chat.completion", "choices": [whole], "usage": _USAGE}
            data = json.dumps(body, ensure_ascii=False).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _send(self, chunk: dict[str, Any], size: int) -> None:
            data = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
            for at in range(0, len(data), size):
                self.wfile.write(data[at : at + size])
                self.wfile.flush()

        def _wait_for_hang_up(self) -> None:
            self.connection.settimeout(0.1)
            while not script.over.is_set():
                try:
                    if not self.connection.recv(1):
                        break
                except TimeoutError:
                    continue
            script.hung_up.set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.address = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _chunk(**choice: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }
