"""A server that speaks the OpenAI protocol and streams its words slowly, for tests of Ctrl-C."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class SlowModel:
    """`words` are streamed one after another, `pause` seconds apart."""

    words: list[str]
    pause: float
    address: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    requested: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(model: SlowModel) -> Iterator[SlowModel]:
    """The model at `model.address`; `hung_up` is set when a caller leaves before the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            model.requested.set()
            try:
                for word in model.words:
                    self._send({"role": "assistant", "content": word}, None)
                    time.sleep(model.pause)
                self._send({}, "stop")
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                model.hung_up.set()

        def _send(self, delta: dict[str, str], finish: str | None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            piece = {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "slow",
                "choices": [choice],
            }
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.address = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
