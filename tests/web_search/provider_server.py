"""A loopback server that speaks as the providers of web search do, well or badly."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """What the server sends: `body` as it is, or as JSON if it is none; after `wait` seconds,
    at most until the client is gone; `broken`: half of it."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0
    broken: bool = False


@dataclass
class Server:
    """`asked` are the requests so far; `came` is set with the first, `left` when a client left one
    that waits."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(reply: Callable[[Asked], Reply]) -> Iterator[Server]:
    """A server that answers every request with what `reply` says."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            params = {name: values[-1] for name, values in parse_qs(url.query).items()}
            body = json.loads(raw) if raw else None
            asked = Asked(self.command, url.path, params, dict(self.headers), body)
            state.asked.append(asked)
            state.came.set()
            answer = reply(asked)
            if answer.wait:
                self._wait(answer.wait)
            data = answer.body
            if not isinstance(data, bytes):
                data = json.dumps(data).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if answer.broken:
                data = data[: len(data) // 2]
                self.close_connection = True
            try:
                self.wfile.write(data)
            except OSError:
                state.left.set()

        do_POST = do_GET

        def _wait(self, seconds: float) -> None:
            end = time.monotonic() + seconds
            self.connection.settimeout(0.05)
            while time.monotonic() < end:
                try:
                    gone = self.connection.recv(1) == b""
                except TimeoutError:
                    continue
                except OSError:
                    gone = True
                if gone:
                    state.left.set()
                    break
            self.connection.settimeout(5)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
