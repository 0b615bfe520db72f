"""An embedding server with limits and faults: every text that can have a vector gets its own."""

import base64
import email.utils
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

from agentic_rag.config import Embedding
from agentic_rag.models.embedder import EmbeddingFailed, UnknownEmbedder, resolve_embedder
from agentic_rag.models.embedders.calls import PROBE
from agentic_rag.models.embedders.remote import RemoteEmbedder
from agentic_rag.models.embedders.resolve import resolve
from agentic_rag.models.embedders.watched import (
    EmbedderUnavailable,
    EmbeddingStopped,
    Outcome,
    Watch,
    WrongWidth,
)
from tests.knowledge_base.embedders import HashEmbedder
from tests.models.embedders.embedding_server import (
    DIMENSIONS,
    EmbeddingServer,
    Reply,
    openai_shape,
)

KEY = "sk-very-secret-0123"


@pytest.fixture(autouse=True)
def _nothing_learnt_before() -> None:
    resolve.cache_clear()


def remote(server: EmbeddingServer, model: str = "openai:m", **settings: Any) -> RemoteEmbedder:
    settings = {"patience": 20, "base_url": server.base_url, **settings}
    embedder = resolve_embedder(Embedding(model=model, **settings))
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


def expected(texts: list[str]) -> np.ndarray[Any, Any]:
    return HashEmbedder(DIMENSIONS).embed_passages(texts)


def numbered(count: int) -> list[str]:
    return [f"Sentence number {i} of the file." for i in range(count)]


def asked_for(server: EmbeddingServer, word: str) -> list[int]:
    """The sizes of the requests that held `word`."""
    return [len(r.texts) for r in server.requests if any(word in t for t in r.texts)]


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [400, 413, 422])
def test_a_limit_on_inputs_is_learnt_once_and_kept_to(
    server: EmbeddingServer, refusal: int
) -> None:
    server.most_inputs, server.refusal = 10, refusal
    embedder = remote(server)
    texts = numbered(300)

    assert embedder.embed_passages(texts) == pytest.approx(expected(texts), abs=1e-6)

    refused = [len(r.texts) for r in server.requests if r.status == refusal]
    assert refused == [64, 32, 16]  # by one batch only, though four are in flight
    before = len(server.requests)
    embedder.embed_passages(numbered(80))
    assert [len(r.texts) for r in server.requests[before:]] == [8] * 10


def test_the_batch_size_of_the_settings_is_never_exceeded(server: EmbeddingServer) -> None:
    remote(server, batch_size=7).embed_passages(numbered(50))
    assert max(len(r.texts) for r in server.requests) == 7


def test_a_text_that_is_too_long_is_cut_and_costs_the_others_nothing(
    server: EmbeddingServer,
) -> None:
    server.most_tokens, server.refusal = 512, 413
    long = "word " * 516
    han = "长" * 1200
    texts = [*numbered(20), long, han, *numbered(40)[20:]]
    outcome = Outcome()

    remote(server).embed_watched(texts, DIMENSIONS, outcome, Watch())

    assert outcome.shortened == {20, 21}
    assert outcome.failed == {}
    whole = [i for i in range(len(texts)) if i not in outcome.shortened]
    got = np.array([outcome.vectors[i] for i in whole])
    assert got == pytest.approx(expected([texts[i] for i in whole]), abs=1e-6)
    assert outcome.vectors[20] == pytest.approx(
        expected([long[: len(long) // 2].rstrip()])[0], abs=1e-6
    )
    # A limit on length is not taken for one on inputs, and a long text is now sent by itself.
    before = len(server.requests)
    remote(server).embed_watched([*numbered(30), "other " * 600], DIMENSIONS, Outcome(), Watch())
    assert sorted(len(r.texts) for r in server.requests[before:]) == [1, 1, 30]


def test_a_short_text_that_is_refused_is_left_without_a_vector(server: EmbeddingServer) -> None:
    server.faults = {"forbidden": "refuse"}
    texts = [*numbered(9), "The forbidden word."]
    outcome = Outcome()
    remote(server).embed_watched(texts, DIMENSIONS, outcome, Watch())
    assert outcome.failed == {9: "400: this text is not allowed"}
    assert sorted(outcome.vectors) == list(range(9))


def test_a_server_that_refuses_everything_ends_the_work(server: EmbeddingServer) -> None:
    embedder = remote(server)
    assert embedder.dimensions == DIMENSIONS
    server.faults = {" ": "refuse"}
    with pytest.raises(EmbedderUnavailable, match="even a short text"):
        embedder.embed_passages(numbered(64))
    assert len(server.requests) < 12


# -- what comes back --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["nan", "zero", "short", "long", "null", "missing"])
def test_a_bad_vector_is_asked_for_once_more_and_never_given(
    server: EmbeddingServer, fault: str
) -> None:
    server.faults = {"poison": fault}
    texts = [*numbered(15), "A poison sentence.", *numbered(30)[15:]]

    vectors = remote(server).embed_passages(texts)

    assert np.isnan(vectors[15]).all()
    good = [i for i in range(31) if i != 15]
    assert vectors[good] == pytest.approx(expected([texts[i] for i in good]), abs=1e-6)
    # An answer without any vector is a failure of the server, so that one is asked twice.
    assert asked_for(server, "poison") == ([31, 1, 1] if fault == "missing" else [31, 1])


def test_one_text_that_breaks_the_server_is_found_and_left_out(server: EmbeddingServer) -> None:
    server.faults = {"poison": "500"}
    texts = [*numbered(12), "A poison sentence that makes it crash.", *numbered(29)[12:]]

    vectors = remote(server).embed_passages(texts)

    assert np.isnan(vectors[12]).all()
    good = [i for i in range(30) if i != 12]
    assert vectors[good] == pytest.approx(expected([texts[i] for i in good]), abs=1e-6)
    assert len(server.requests) < 30


def backwards(vectors: list[list[Any]]) -> Any:
    body = openai_shape(vectors)
    return body | {"data": body["data"][::-1]}


def without_numbers(vectors: list[list[Any]]) -> Any:
    return {"data": [{"embedding": vector} for vector in vectors]}


def all_numbered_zero(vectors: list[list[Any]]) -> Any:
    return {"data": [{"embedding": vector, "index": 0} for vector in vectors]}


def base64_floats(vectors: list[list[Any]]) -> Any:
    packed = [base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() for v in vectors]
    return {"data": [{"embedding": text, "index": i} for i, text in enumerate(packed)]}


def not_of_unit_length(vectors: list[list[Any]]) -> Any:
    return openai_shape([[x * 1e30 for x in v] for v in vectors])


SHAPES = [backwards, without_numbers, all_numbered_zero, base64_floats, not_of_unit_length]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_an_answer_is_put_in_order(server: EmbeddingServer, shape: Any) -> None:
    server.shape = shape
    texts = numbered(20)
    vectors = remote(server).embed_passages(texts)
    assert vectors == pytest.approx(expected(texts), abs=1e-5)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(20), abs=1e-5)


ERRORS: list[Reply] = [
    (200, {}, {"error": {"message": "internal error", "code": 500}}),
    (200, {}, {"code": 20012, "message": "Model does not exist", "data": None}),
    (200, {}, {"data": []}),
    (200, {}, {"data": [{"index": 25, "embedding": [1.0] * DIMENSIONS}]}),
    (200, {}, "<html>captcha</html>"),
    (200, {}, "[" * 100_000),
    (500, {}, "oops"),
    (502, {}, "<html>Bad gateway</html>"),
    (503, {"Retry-After": "1"}, {"detail": "starting"}),
    (429, {"retry-after-ms": "200"}, {"error": "slow down"}),
]


@pytest.mark.parametrize("reply", ERRORS)
def test_an_error_that_passes_is_waited_for(server: EmbeddingServer, reply: Reply) -> None:
    embedder = remote(server)
    assert embedder.dimensions == DIMENSIONS
    server.script = [reply, reply]
    texts = numbered(20)
    assert embedder.embed_passages(texts) == pytest.approx(expected(texts), abs=1e-6)
    assert sum(len(r.texts) == 20 for r in server.requests) <= 3


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_kept_to_by_all_requests(server: EmbeddingServer, form: str) -> None:
    embedder = remote(server, batch_size=5)
    assert embedder.dimensions == DIMENSIONS
    asked = "1" if form == "seconds" else email.utils.formatdate(time.time() + 3, usegmt=True)
    server.script = [(429, {"Retry-After": asked}, {"error": {"message": "rate limit"}})]
    embedder.embed_passages(numbered(40))
    busy = next(r for r in server.requests if r.status == 429)
    later = [r.at - busy.at for r in server.requests if r.at > busy.at + 0.2]
    assert len(server.requests) == 1 + 8 + 1
    assert min(later) > 0.95


# -- waiting and ending -----------------------------------------------------------------------


def test_patience_ends_in_one_sentence_and_keeps_what_was_done(server: EmbeddingServer) -> None:
    embedder = remote(server, batch_size=5, concurrency=1, patience=1.5)
    server.before = lambda number: server.die() if number == 4 else None
    outcome = Outcome()
    told: list[str] = []
    began = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="run the same command again") as error:
        embedder.embed_watched(numbered(30), DIMENSIONS, outcome, Watch(tell=told.append))
    assert time.monotonic() - began < 20
    assert "\n" not in str(error.value)
    assert server.base_url in str(error.value)
    assert len(outcome.vectors) >= 10
    assert any("does not answer" in sentence for sentence in told)


def test_a_pause_longer_than_patience_is_not_waited_for(server: EmbeddingServer) -> None:
    server.script = [(429, {"Retry-After": "3600"}, {"error": {"message": "daily limit"}})]
    began = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="asks to wait 3600 s"):
        remote(server).embed_passages(["a"])
    assert time.monotonic() - began < 5
    assert len(server.requests) == 1


DENIED: list[tuple[int, Any, str]] = [
    (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "MY_KEY"),
    (403, {"message": "no access"}, "MY_KEY"),
    (404, {"error": {"message": "The model `m` does not exist."}}, "embedding.model"),
    (402, {"message": "balance is 0"}, "credit"),
    (
        429,
        {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}},
        "credit",
    ),
    (405, "", "embedding.base_url"),
    (301, "", "embedding.base_url"),
]


@pytest.mark.parametrize(("status", "body", "named"), DENIED)
def test_a_permanent_refusal_is_not_repeated_and_names_what_to_change(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, status: int, body: Any, named: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.script = [(status, {}, body)] * 50
    embedder = remote(server, api_key_env="MY_KEY")
    for call in (
        lambda: embedder.embed_query("a"),
        lambda: embedder.embed_passages(["a"]),
    ):
        asked = len(server.requests)
        with pytest.raises(EmbedderUnavailable) as error:
            call()
        assert len(server.requests) == asked + 1
        assert named in str(error.value)
        assert str(error.value).endswith(".")
        assert KEY not in str(error.value)
        assert error.value.__cause__ is None
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_that_is_missing_is_asked_for_by_name(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EmbedderUnavailable, match="MY_KEY, which is not set"):
        remote(server, api_key_env="MY_KEY").embed_query("a")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for model, variable in (
        ("openai:m", "OPENAI_API_KEY"),
        ("voyage:m", "VOYAGE_API_KEY"),
        ("cohere:m", "CO_API_KEY"),
        ("google:m", "GOOGLE_API_KEY"),
    ):
        monkeypatch.delenv(variable, raising=False)
        with pytest.raises(EmbedderUnavailable, match=f"environment variable {variable}"):
            resolve_embedder(model).embed_query("a")
    monkeypatch.setenv("MY_KEY", "schlüssel")
    with pytest.raises(EmbedderUnavailable, match="MY_KEY"):
        remote(server, api_key_env="MY_KEY").embed_query("a")
    assert server.requests == []


def test_openais_key_goes_to_openai_only(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    remote(server).embed_query("a")
    assert "authorization" not in server.requests[0].headers
    resolve.cache_clear()
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    resolve_embedder("openai:m").embed_query("a")
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("way", ["passages", "query"])
def test_a_hanging_call_ends_within_a_second_when_asked_to(
    server: EmbeddingServer, way: str
) -> None:
    embedder = remote(server)
    assert embedder.dimensions == DIMENSIONS
    server.hang = threading.Event()
    watch = Watch()
    threading.Timer(0.3, watch.stop.set).start()
    began = time.monotonic()
    if way == "passages":
        with pytest.raises(EmbeddingStopped):
            embedder.embed_watched(["a"], DIMENSIONS, Outcome(), watch)
    else:
        with pytest.raises(EmbedderUnavailable, match=r"query_timeout"):
            remote(server, query_timeout=0.5).embed_query("a")
    assert time.monotonic() - began < 5
    assert server.hung_up.wait(2)


def test_a_query_does_not_wait_for_a_server_that_is_down(server: EmbeddingServer) -> None:
    server.die()
    began = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        remote(server).embed_query("a")
    assert time.monotonic() - began < 5


def test_a_query_is_asked_again_once(server: EmbeddingServer) -> None:
    server.script = [(503, {}, "")]
    vector = remote(server).embed_query("a")
    assert vector == pytest.approx(expected(["a"])[0], abs=1e-6)
    server.script = [(503, {}, "")] * 9
    with pytest.raises(EmbeddingFailed):
        remote(server).embed_query("a")
    assert len(server.requests) == 4


def test_a_query_without_a_usable_vector_is_an_error(server: EmbeddingServer) -> None:
    server.faults = {"a": "nan"}
    with pytest.raises(EmbeddingFailed, match="not finite"):
        remote(server).embed_query("a")


# -- names, widths, prompts -------------------------------------------------------------------


def test_the_width_is_learnt_by_one_text_when_it_is_needed(server: EmbeddingServer) -> None:
    embedder = remote(server)
    embedder.embed_query("a")
    assert len(server.requests) == 1
    assert embedder.dimensions == embedder.dimensions == DIMENSIONS
    assert server.texts() == ["a", PROBE]
    with pytest.raises(WrongWidth):
        embedder.embed_watched(["b"], 99, Outcome(), Watch())
    assert "b" not in server.texts()


def test_the_same_model_has_the_same_name_wherever_it_runs(server: EmbeddingServer) -> None:
    here = remote(server, "openai:BAAI/bge-m3")
    there = resolve_embedder(Embedding(model="openai:BAAI/bge-m3", base_url="https://host/v1"))
    assert here.name == there.name == "openai:BAAI/bge-m3"
    names = {
        remote(server, "openai:BAAI/bge-m3", **settings).name
        for settings in ({"dimensions": 256}, {"passage_prompt": "text: "}, {})
    }
    assert len(names) == 3
    assert remote(server, "openai:BAAI/bge-m3", query_prompt="q: ").name == here.name


def test_each_model_gets_the_prompts_it_asks_for(server: EmbeddingServer) -> None:
    def sent(model: str, **settings: Any) -> list[str]:
        before = len(server.requests)
        embedder = remote(server, model, **settings)
        embedder.embed_query("x")
        embedder.embed_passages(["y"])
        return [text for r in server.requests[before:] for text in r.texts if text != PROBE]

    task = "Given a web search query, retrieve relevant passages that answer the query"
    assert sent("openai:BAAI/bge-m3") == ["x", "y"]
    assert sent("ollama:qwen3-embedding:0.6b") == [f"Instruct: {task}\nQuery:x", "y"]
    assert sent("openai:Alibaba-NLP/gte-Qwen2-1.5B-instruct") == [
        f"Instruct: {task}\nQuery: x",
        "y",
    ]
    assert sent("openai:intfloat/multilingual-e5-large") == ["query: x", "passage: y"]
    assert sent("openai:intfloat/multilingual-e5-large-instruct") == [
        f"Instruct: {task}\nQuery: x",
        "y",
    ]
    assert sent("openai:BAAI/bge-large-zh-v1.5") == [
        "为这个句子生成表示以用于检索相关文章：x",
        "y",
    ]
    assert sent("openai:m", query_prompt="Q ", passage_prompt="P ") == ["Q x", "P y"]
    assert sent("openai:e5-small", query_prompt="", passage_prompt="") == ["x", "y"]


def test_dimensions_are_asked_for_and_checked(server: EmbeddingServer) -> None:
    assert remote(server, dimensions=DIMENSIONS).dimensions == DIMENSIONS
    assert server.requests[0].body["dimensions"] == DIMENSIONS
    with pytest.raises(EmbedderUnavailable, match=r"remove embedding.dimensions"):
        _ = remote(server, dimensions=8).dimensions
    remote(server).embed_query("a")
    assert "dimensions" not in server.requests[-1].body


def test_any_text_can_be_sent(server: EmbeddingServer) -> None:
    vectors = remote(server).embed_passages(["a\0b", "\ud800 lone", "敏感个人信息"])
    assert np.isfinite(vectors).all()
    assert server.requests[-1].texts == ["a b", "? lone", "敏感个人信息"]


def test_several_requests_are_in_flight_and_the_order_is_kept(server: EmbeddingServer) -> None:
    server.seconds = 0.05
    texts = numbered(100)
    embedder = remote(server, batch_size=10, concurrency=3)
    assert embedder.embed_passages(texts) == pytest.approx(expected(texts), abs=1e-6)
    assert server.most_in_flight == 3


def test_an_unknown_embedder_is_told_with_what_was_meant() -> None:
    with pytest.raises(UnknownEmbedder, match="did you mean 'openai:x'"):
        resolve_embedder("OpenAI:x")
    with pytest.raises(UnknownEmbedder, match="'word2vec'"):
        resolve_embedder("word2vec")
    with pytest.raises(UnknownEmbedder, match="base_url"):
        resolve_embedder(Embedding(model="openai:x", base_url="host:8000"))


@pytest.mark.parametrize("extra", ["cohere", "voyage", "sentence-transformers"])
def test_a_missing_package_names_the_extra(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for module in ("cohere", "voyageai", "sentence_transformers"):
        for name in [n for n in sys.modules if n.split(".")[0] == module]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("CO_API_KEY", "k123")
    monkeypatch.setenv("VOYAGE_API_KEY", "k123")
    with pytest.raises(EmbedderUnavailable, match=rf"agentic-rag\[{extra}\]"):
        resolve_embedder(f"{extra}:m").embed_query("a")
