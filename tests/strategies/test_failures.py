"""What a failed request is told as: one sentence, what to do, and no page of HTML."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from agentic_rag.strategies.run import ask

QUESTION = "When was the Oriole Bridge opened?"
PAGE = "<!DOCTYPE html><html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
CHUNK = {"id": "c1", "object": "chat.completion", "created": 1, "model": "any"}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)


@contextmanager
def answering(status: int, kind: str, body: str) -> Iterator[str]:
    """A server that gives the same to every request; its address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


HTML = "text/html"
JSON = "application/json"
EVENTS = "text/event-stream"


@pytest.mark.parametrize("strategy", ["agent", "naive"])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (HTML, PAGE),
        (JSON, '{"choices": [{"mess'),
        (EVENTS, 'data: {"choices": [{"del'),
        (JSON, json.dumps({**CHUNK, "choices": []})),
        (JSON, "{}"),
        (JSON, "[]"),
    ],
)
async def test_a_page_or_half_a_reply_is_told_as_no_reply_of_a_chat_model(
    kb: KnowledgeBase, kind: str, body: str, streaming: bool, strategy: str
) -> None:
    with answering(200, kind, body) as address:
        settings = Settings(
            base_url=address,
            model="any",
            strategy=strategy,
            agent=AgentSettings(streaming=streaming),
        )
        answer = await ask(kb, QUESTION, settings=settings)

    assert answer.status == "model_failed"
    assert answer.notices[-1].message in {
        f"{what}; check that the server at `base_url` ({address}) is one of a chat model. "
        "The best passages stand in for an answer."
        for what in (
            "What came back is not a chat model's reply",
            "What came back holds neither text nor a tool call",
        )
    }


@pytest.mark.parametrize("strategy", ["agent", "naive"])
@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (502, HTML, PAGE, "The model failed (HTTP 502): Bad Gateway; the fault is on the other"),
        (502, HTML, "", "The model failed (HTTP 502); the fault is on the other side: look at"),
        (400, JSON, '{"detail": "No such field."}', "(HTTP 400): No such field; it refused"),
        (400, JSON, '{"error": "bad seed"}', "(HTTP 400): bad seed; it refused the request"),
        (404, JSON, '{"error": "no such page"}', "(any) and `base_url` ({address}): most end in"),
        (401, JSON, '{"error": "who are you"}', "no key was sent; name the environment variable"),
    ],
)
async def test_an_error_is_one_sentence_with_what_to_do(
    kb: KnowledgeBase, status: int, kind: str, body: str, said: str, strategy: str
) -> None:
    with answering(status, kind, body) as address:
        settings = Settings(base_url=address, model="any", strategy=strategy)
        answer = await ask(kb, QUESTION, settings=settings)

    message = answer.notices[-1].message
    assert said.replace("{address}", address) in message
    for mess in ("<", "status_code", "Error", "…", "..", " ;"):
        assert mess not in message
