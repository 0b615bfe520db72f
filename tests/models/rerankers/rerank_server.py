"""A loopback server that speaks `/rerank` in the forms of several makers, with limits and faults.

A text's score is the number of query words in it, so that the right order is plain to see.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Mapping[str, str], Any]  # status, headers, a text or what becomes JSON


@dataclass
class RerankServer:
    """How the server behaves, and what it was asked. `form` says which requests are taken and what
    the reply looks like; `most` texts and `longest` characters are taken, else `refusal` is given;
    `reply` stands in for every answer; `hang` waits until it is set."""

    form: str = "jina"
    most: int = 1_000
    longest: int = 1_000_000
    refusal: int = 413
    reply: Reply | None = None
    hang: threading.Event | None = None
    results: Callable[[list[dict[str, Any]]], Any] = lambda results: results
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, body: dict[str, Any]) -> Reply:
        if self.reply is not None:
            return self.reply
        texts = body.get("texts" if self.form == "tei" else "documents")
        if texts is None:
            missing = "texts" if self.form == "tei" else "documents"
            return 422, {}, f"Failed to deserialize the JSON body: missing field `{missing}`"
        if self.form == "strict" and (extra := body.keys() - {"model", "query", "documents"}):
            return 400, {}, {"message": f"unknown field: {sorted(extra)}"}
        if len(texts) > self.most:
            said = f"batch size {len(texts)} > maximum allowed batch size {self.most}"
            return self.refusal, {}, {"error": said, "error_type": "Validation"}
        if not body.get("truncate") and max(map(len, texts)) > self.longest:
            return 400, {}, {"message": "maximum context length is 512 tokens"}
        return 200, {}, self._shape(body["query"], texts)

    def _shape(self, query: str, texts: Sequence[str]) -> Any:
        scores = [float(sum(w in text.split() for w in query.split())) for text in texts]
        order = sorted(range(len(texts)), key=lambda i: (i % 2, i))  # by no score at all
        name = "score" if self.form == "tei" else "relevance_score"
        found = [{"index": i, name: scores[i]} for i in order]
        if self.form == "tei":
            return self.results(found)
        if self.form == "voyage":
            return {"object": "list", "data": self.results(found), "usage": {}}
        if self.form == "siliconflow":
            found = [{**one, "document": None} for one in found]
        if self.form == "vllm":
            found = [{**one, "document": {"text": texts[one["index"]]}} for one in found]
        return {"id": "x", "results": self.results(found), "meta": {"tokens": {}}}


@contextmanager
def serving(server: RerankServer) -> Iterator[RerankServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(body)
            server.keys.append(self.headers.get("Authorization", ""))
            server.paths.append(self.path)
            if server.hang is not None:
                server.hang.wait(20)
            status, headers, said = server.answer(body)
            data = (said if isinstance(said, str) else json.dumps(said)).encode()
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.address = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        if server.hang is not None:
            server.hang.set()
        http.shutdown()
        http.server_close()
        thread.join()
