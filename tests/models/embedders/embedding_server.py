"""A loopback server that speaks the embeddings call of OpenAI, with limits and faults.

A vector is made from the hash of its text, so that equal texts have equal vectors whatever
happened on the way.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.knowledge_base.embedders import HashEmbedder

Reply = tuple[int, Mapping[str, str], Any]
DIMENSIONS = 16


@dataclass
class Request:
    """One request as it came, headers by lower-case name, and the status it got."""

    texts: list[str]
    headers: dict[str, str]
    body: dict[str, Any]
    path: str
    status: int = 0
    at: float = field(default_factory=time.monotonic)


class EmbeddingServer:
    """How the server behaves, and what it was asked.

    `most_inputs` and `most_tokens` (words and Han characters) are refused with `refusal`;
    `faults` maps a word to what befalls a text that holds it: "500", "refuse", "nan", "zero",
    "short", "long", "null" or "missing"; `script` holds replies that are given first, one a
    request, None for a good one; `hang` lets requests wait until it is set.
    """

    def __init__(self) -> None:
        self.most_inputs = 10_000
        self.most_tokens = 1_000_000
        self.refusal = 400
        self.faults: dict[str, str] = {}
        self.script: list[Reply | None] = []
        self.shape: Callable[[list[list[Any]]], Any] = openai_shape
        self.requests: list[Request] = []
        self.hang: threading.Event | None = None
        self.hung_up = threading.Event()
        self.seconds = 0.0  # a request takes
        self.in_flight = self.most_in_flight = 0
        self.before: Callable[[int], None] = lambda number: None  # given the count of requests
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._hash = HashEmbedder(DIMENSIONS)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Listen, on the same port as before after `die`."""
        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._server.daemon_threads = True
        self._port = self._server.server_port
        serve = self._server.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def die(self) -> None:
        """Take no more connections and drop those there are."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def die_for(self, seconds: float) -> None:
        """Be dead for a while, without holding up the caller."""

        def work() -> None:
            self.die()
            time.sleep(seconds)
            self.start()

        threading.Thread(target=work, daemon=True).start()

    def texts(self) -> list[str]:
        """Every text that was asked for, in order."""
        return [text for request in self.requests for text in request.texts]

    def vector(self, text: str) -> list[Any]:
        vector = [float(x) for x in self._hash.embed_query(text)]
        fault = next((kind for word, kind in self.faults.items() if word in text), "")
        if fault == "nan":
            vector[3] = math.nan
        return {
            "zero": [0.0] * DIMENSIONS,
            "short": vector[:7],
            "long": [*vector, 1.0],
            "null": [None] * DIMENSIONS,
        }.get(fault, vector)

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            scripted = self.script.pop(0) if self.script else None
        self.before(number)
        if scripted is not None:
            return scripted
        texts = request.texts
        if len(texts) > self.most_inputs:
            said = f"batch size is invalid, it should not be larger than {self.most_inputs}."
            return self.refusal, {}, {"error": {"message": said}}
        for text in texts:
            if tokens(text) > self.most_tokens:
                said = f"input has {tokens(text)} tokens, the most are {self.most_tokens}"
                return self.refusal, {}, {"error": {"message": said}}
            fault = next((kind for word, kind in self.faults.items() if word in text), "")
            if fault == "500":
                return 500, {}, {"error": {"message": "the model crashed"}}
            if fault == "refuse":
                return 400, {}, {"error": {"message": "this text is not allowed"}}
        body = self.shape([self.vector(text) for text in texts])
        missing = [i for i, t in enumerate(texts) if self._fault(t) == "missing"]
        if missing:
            body["data"] = [d for d in body["data"] if d["index"] not in missing]
        return 200, {}, body

    def _fault(self, text: str) -> str:
        return next((kind for word, kind in self.faults.items() if word in text), "")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(body["input"], headers, body, self.path)
                if outer._server is None:  # it died while this connection was open
                    self.close_connection = True
                    return
                with outer._lock:
                    outer.in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer.in_flight)
                status, given, reply = outer.answer(request)
                request.status = status
                time.sleep(outer.seconds)
                with outer._lock:
                    outer.in_flight -= 1
                if outer.hang is not None:
                    self._wait()
                    return
                text = reply if isinstance(reply, str) else json.dumps(reply)
                data = text.encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    for name, value in given.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    outer.hung_up.set()

            def _wait(self) -> None:
                """Say nothing until the client hangs up or the test lets go."""
                self.close_connection = True
                self.connection.settimeout(0.05)
                while outer.hang is not None and not outer.hang.is_set():
                    try:
                        if not self.connection.recv(1):
                            outer.hung_up.set()
                            return
                    except TimeoutError:
                        continue
                    except OSError:
                        outer.hung_up.set()
                        return

        return Handler


def tokens(text: str) -> int:
    """Words, and Han characters each by itself."""
    han = sum("一" <= c <= "鿿" for c in text)
    return han + len(text.split())


def openai_shape(vectors: list[list[Any]]) -> Any:
    """The answer as OpenAI gives it."""
    data = [
        {"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1}}


@contextmanager
def running() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    server.start()
    try:
        yield server
    finally:
        if server.hang is not None:
            server.hang.set()
        server.die()
