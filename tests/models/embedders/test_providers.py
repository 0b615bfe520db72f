"""Cohere, Voyage AI and Google by their SDKs, against servers that speak as theirs do."""

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from agentic_rag.config import Embedding
from agentic_rag.models.embedder import Embedder, resolve_embedder
from agentic_rag.models.embedders.calls import PROBE
from agentic_rag.models.embedders.resolve import resolve
from agentic_rag.models.embedders.watched import EmbedderUnavailable
from tests.knowledge_base.embedders import HashEmbedder

KEY = "secret-key-0123"
DIMENSIONS = 16
MOST = 10  # inputs of a request
PROVIDERS = {
    "cohere": ("cohere", "CO_API_KEY", "search_query", "search_document"),
    "voyage": ("voyageai", "VOYAGE_API_KEY", "query", "document"),
    "google": ("google.genai", "GOOGLE_API_KEY", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Provider:
    """What the server was asked: kind of input and texts a request, and replies to give first."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.keys: set[str] = set()
        self.script: list[tuple[int, dict[str, str]]] = []
        self.url = ""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        kind, texts = _read(body)
        self.asked.append((kind, texts))
        if self.script:
            status, headers = self.script.pop(0)
            return status, headers, {"message": f"bad key {KEY}", "detail": "no", "error": {}}
        if len(texts) > MOST:
            said = f"at most {MOST} inputs"
            error = {"message": said, "detail": said, "error": {"message": said, "code": 400}}
            return 400, {}, error
        vectors = HashEmbedder(DIMENSIONS).embed_passages(texts).tolist()
        return 200, {}, _written(body, texts, vectors)


def _read(body: dict[str, Any]) -> tuple[str, list[str]]:
    if "requests" in body:
        asked = body["requests"]
        return asked[0].get("taskType", ""), [r["content"]["parts"][0]["text"] for r in asked]
    return body["input_type"], body.get("texts") or body["input"]


def _written(body: dict[str, Any], texts: list[str], vectors: list[list[float]]) -> Any:
    if "requests" in body:
        return {"embeddings": [{"values": vector} for vector in vectors]}
    if "texts" in body:
        return {
            "id": "1",
            "texts": texts,
            "embeddings": {"float": vectors},
            "meta": {"api_version": {"version": "2"}},
            "response_type": "embeddings_by_type",
        }
    data = [{"object": "embedding", "embedding": v, "index": i} for i, v in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"total_tokens": 1}}


@pytest.fixture
def provider() -> Iterator[Provider]:
    resolve.cache_clear()
    found = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            found.keys.add(bearer or self.headers.get("x-goog-api-key", ""))
            status, headers, reply = found.reply(self.path, body)
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(params=list(PROVIDERS))
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    module, variable, _, _ = PROVIDERS[name]
    if not _installed(module):
        pytest.skip(f"the extra {name} is absent")
    monkeypatch.setenv(variable, KEY)
    return name


def made(name: str, provider: Provider, **settings: Any) -> Embedder:
    settings = {"patience": 20, "timeout": 5, "base_url": provider.url, **settings}
    return resolve_embedder(Embedding(model=f"{name}:m", **settings))


def test_texts_go_as_queries_and_documents_within_the_limit_of_inputs(
    name: str, provider: Provider
) -> None:
    embedder = made(name, provider, batch_size=32)
    texts = [f"Sentence {i}." for i in range(40)]

    vectors = embedder.embed_passages(texts)
    query = embedder.embed_query("Sentence 1.")

    assert embedder.name == f"{name}:m"
    assert vectors == pytest.approx(HashEmbedder(DIMENSIONS).embed_passages(texts), abs=1e-5)
    assert query == pytest.approx(vectors[1], abs=1e-5)
    _, _, as_query, as_document = PROVIDERS[name]
    assert {kind for kind, texts in provider.asked[:-1]} == {as_document}
    assert provider.asked[-1] == (as_query, ["Sentence 1."])
    assert provider.keys == {KEY}
    refused = [len(t) for _, t in provider.asked if len(t) > MOST]
    assert refused == [32, 16]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(40), abs=1e-5)


def test_a_wrong_key_is_told_without_the_key(name: str, provider: Provider) -> None:
    provider.script = [(401, {})] * 9
    with pytest.raises(EmbedderUnavailable) as error:
        made(name, provider).embed_query("a")
    assert PROVIDERS[name][1] in str(error.value)
    assert KEY not in str(error.value)


def test_a_busy_provider_is_waited_for(name: str, provider: Provider) -> None:
    embedder = made(name, provider)
    assert embedder.dimensions == DIMENSIONS
    provider.script = [(429, {"Retry-After": "1"})]
    texts = ["a", "b"]
    assert embedder.embed_passages(texts) == pytest.approx(
        HashEmbedder(DIMENSIONS).embed_passages(texts), abs=1e-5
    )
    assert provider.asked[0][1] == [PROBE]
