"""An embedding server that fails while documents come in: nothing is lost, nothing wrong kept."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import EmbeddingModelMismatch, KnowledgeBase, Progress
from agentic_rag.knowledge_base.embedding import IndexingEnded
from agentic_rag.models.embedder import EmbeddingFailed
from agentic_rag.models.embedders.calls import PROBE
from agentic_rag.models.embedders.resolve import resolve
from agentic_rag.models.embedders.watched import EmbedderUnavailable
from tests.knowledge_base.whole import assert_whole
from tests.models.embedders.embedding_server import DIMENSIONS, EmbeddingServer, running

Write = Callable[[str, str], Path]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    resolve.cache_clear()
    with running() as server:
        yield server


def opened(
    directory: Path, server: EmbeddingServer, *, index: Any = None, **embedding: Any
) -> KnowledgeBase:
    embedding = {
        "model": "openai:m",
        "base_url": server.base_url,
        "patience": 30,
        "with_heading": False,
        **embedding,
    }
    settings = Settings(embedding=embedding, index=index or {})
    return KnowledgeBase.open(directory, settings=settings)


def aged(path: Path) -> Path:
    when = path.stat().st_mtime_ns - 10_000_000_000
    os.utime(path, ns=(when, when))
    return path


def vectors(directory: Path) -> dict[tuple[str, int, int], tuple[bytes, list[float] | None]]:
    """Every row of the sentences table by the name of its document, its chunk and its number."""
    documents = lance.dataset(str(directory / "documents.lance")).to_table().to_pylist()
    names = {row["number"]: Path(row["uri"]).name for row in documents}
    rows = lance.dataset(str(directory / "sentences.lance")).to_table().to_pylist()
    found = {
        (names[r["document"]], r["chunk"], r["sentence"]): (r["hash"], r["vector"]) for r in rows
    }
    assert len(found) == len(rows)
    return found


def words(number: int) -> str:
    return hashlib.blake2b(str(number).encode(), digest_size=6).hexdigest()


def write_many(write: Write, sentences: int, documents: int) -> Path:
    each = sentences // documents
    for d in range(documents):
        lines = [f"The pump {words(d * each + i)} was replaced." for i in range(each)]
        write(f"{d:03}.txt", " ".join(lines))
    return write(
        "000.txt", " ".join(f"The pump {words(i)} was replaced." for i in range(each))
    ).parent


@pytest.mark.slow
def test_a_server_with_every_fault_gives_the_same_knowledge_base_as_a_good_one(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    docs = write_many(write, 3_000, 15)
    long = "The valve is " + "very " * 600 + "old and has the number 4711."
    write("long.txt", f"Before it. {long} After it.")
    for fault in ("nan", "zero", "short", "missing"):
        write(f"{fault}.txt", f"Good one about {fault}. The poison{fault} sentence. Good two.")

    with running() as good:
        good.most_tokens = 512
        undisturbed = opened(tmp_path / "good", good)
        undisturbed.add(docs)
        calls_undisturbed = len(good.requests)

    server.most_tokens = 512
    server.most_inputs = 10
    server.faults = {f"poison{fault}": fault for fault in ("nan", "zero", "short", "missing")}
    disturbed = opened(tmp_path / "kb", server)
    busy = (429, {"Retry-After": "1"}, {"error": {"message": "slow down"}})
    broken = (200, {}, {"error": {"message": "internal"}})
    dead: list[float] = []

    def before(number: int) -> None:
        if number in (40, 90):
            server.script = [busy, busy, broken]
        if number == 150:
            dead.append(time.monotonic())
            server.die_for(2.0)

    server.before = before
    report = disturbed.add(docs)

    assert dead
    assert report.failed == ()
    assert len(report.added) == 20
    assert_whole(tmp_path / "kb")
    got, expected = vectors(tmp_path / "kb"), vectors(tmp_path / "good")
    assert got.keys() == expected.keys()
    poisoned = {place for place, (_, vector) in got.items() if vector is None}
    assert sorted({name for name, _, _ in poisoned}) == [
        "missing.txt",
        "nan.txt",
        "short.txt",
        "zero.txt",
    ]
    assert len(poisoned) == 4
    for place in expected.keys() - poisoned:
        assert got[place][0] == expected[place][0]
        assert got[place][1] == pytest.approx(expected[place][1], abs=1e-6)

    # Twenty documents and a little more take 3,017 sentences by tens at the most, and by eights
    # once the limit is learnt by halving 64; what fails costs a few requests more.
    assert calls_undisturbed < 120
    assert 3_000 / 10 < len(server.requests) < 3_017 / 8 + 100
    sent = [text for r in server.requests if r.status == 200 for text in r.texts if text != PROBE]
    assert len(sent) - len(set(sent)) < 60

    # Whatever has no vector, and the end of what was too long, is found by its words.
    status = disturbed.status()
    assert status.sentences_without_vector == 4
    assert {Path(d.uri).name: d.without_vector for d in status.without_vector} == {
        f"{fault}.txt": 1 for fault in ("missing", "nan", "short", "zero")
    }
    assert [Path(h.uri).name for h in disturbed.keyword_search("poisonnan").hits] == ["nan.txt"]
    assert [Path(h.uri).name for h in disturbed.keyword_search("4711").hits] == ["long.txt"]
    told = {Path(o.uri).name: o.reason for o in report.warnings}
    assert "longer than the embedder takes" in told["long.txt"]
    assert "1 sentences could not be embedded" in told["zero.txt"]
    scores = [hit.score for hit in disturbed.semantic_search("poison pump", 1000).hits]
    assert np.isfinite(scores).all()


def test_a_dead_server_ends_the_run_and_fails_no_document(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    docs = write_many(write, 1_000, 10)
    kb = opened(tmp_path / "kb", server, patience=0.7, batch_size=20)
    server.before = lambda number: server.die() if number == 25 else None

    with pytest.raises(IndexingEnded, match="run the same command again") as error:
        kb.add(docs)

    report = error.value.report
    assert report.failed == ()
    assert 2 <= len(report.added) <= 5
    assert [d.status for d in kb.documents()] == ["ready"] * len(report.added)
    assert_whole(tmp_path / "kb")
    server.before = lambda number: None
    server.start()
    asked = len(server.requests)

    rest = kb.add(docs)

    assert len(rest.added) == 10 - len(report.added)
    assert len(vectors(tmp_path / "kb")) == 1_000
    sent = [t for r in server.requests[:asked] if r.status == 200 for t in r.texts]
    again = [t for r in server.requests[asked:] for t in r.texts]
    # What was embedded is not embedded again: only an answer that was lost on the way is.
    assert len(set(sent) & set(again) - {PROBE}) <= 4 * 20


@pytest.mark.parametrize(("status", "named"), [(401, "api_key_env"), (404, "embedding.model")])
def test_a_refusal_for_good_ends_the_run_at_the_first_document(
    server: EmbeddingServer, write: Write, tmp_path: Path, status: int, named: str
) -> None:
    docs = write_many(write, 100, 10)
    kb = opened(tmp_path / "kb", server)
    asked = len(server.requests)
    server.script = [(status, {}, {"error": {"message": "no"}})] * 100
    with pytest.raises(EmbedderUnavailable, match=named):
        kb.add(docs)
    assert len(server.requests) <= asked + 4
    assert kb.documents() == []


def test_a_knowledge_base_is_not_made_without_its_embedder(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    server.script = [(401, {}, "")] * 9
    with pytest.raises(EmbedderUnavailable, match="wants a key"):
        opened(tmp_path / "kb", server)
    assert not (tmp_path / "kb").exists()


def test_stopping_during_a_hanging_call_takes_a_second_and_keeps_what_is_done(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    docs = write_many(write, 400, 4)
    kb = opened(tmp_path / "kb", server, batch_size=10, concurrency=2)
    stop = threading.Event()
    began: list[float] = []

    def before(number: int) -> None:
        if number == 15 and not began:
            server.hang = threading.Event()
            began.append(time.monotonic())
            threading.Timer(0.3, stop.set).start()

    server.before = before
    report = kb.add(docs, stop=stop)

    assert time.monotonic() - began[0] < 6
    assert report.stopped
    assert report.failed == ()
    assert_whole(tmp_path / "kb")
    assert server.hang is not None
    server.hang.set()
    server.hang = None
    rest = kb.add(docs)
    assert len(report.added) + len(rest.added) == 4
    assert rest.sentences_reused >= 20


def test_sentences_without_a_vector_are_tried_again_on_request(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    server.faults = {"poison": "nan", "venom": "zero"}
    kb = opened(tmp_path / "kb", server, with_heading=True)
    path = write("a.md", "# Pumps\n\nGood one. The poison sentence.\n\n## Valves\n\nGood two.")
    write("b.md", "# Other\n\nThe venom sentence. Good three. The poison again.")
    kb.add(path.parent)
    path.unlink()  # the texts are in the knowledge base
    assert kb.status().sentences_without_vector == 3
    asked = len(server.requests)
    assert kb.add(path.parent / "b.md").unchanged
    assert len(server.requests) == asked

    server.faults = {"venom": "zero"}
    report = kb.retry_failed()

    assert sorted(Path(o.uri).name for o in report.updated) == ["a.md", "b.md"]
    assert [Path(o.uri).name for o in report.warnings] == ["b.md"]
    assert {Path(d.uri).name: d.without_vector for d in kb.status().without_vector} == {"b.md": 1}
    assert_whole(tmp_path / "kb")
    server.faults = {}
    assert len(kb.retry_failed().updated) == 1
    assert kb.status().without_vector == ()
    hits = kb.semantic_search("anything", 10).hits
    assert len(hits) == 2
    asked = len(server.requests)
    assert kb.retry_failed().updated == ()
    assert len(server.requests) == asked


def test_a_search_without_its_embedder_falls_back_to_words_and_says_so(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    kb = opened(tmp_path / "kb", server, query_timeout=1)
    kb.add(write("a.txt", "The pump was replaced in 2019."))
    faults: list[Callable[[], object]] = [
        lambda: server.script.extend([(500, {}, "")] * 2),
        lambda: server.script.extend([(429, {"Retry-After": "9"}, "")] * 2),
        lambda: server.script.extend([(401, {}, "")]),
        lambda: server.script.extend([(200, {}, {"error": "x"})] * 2),
        lambda: server.faults.update({"pump": "nan"}),
        lambda: server.faults.update({"pump": "zero"}),
        lambda: server.faults.update({"pump": "short"}),
        lambda: setattr(server, "hang", threading.Event()),
        server.die,
    ]
    for fault in faults:
        server.script, server.faults = [], {}
        fault()
        began = time.monotonic()
        result = kb.hybrid_search("pump replaced")
        assert time.monotonic() - began < 6
        assert [Path(hit.uri).name for hit in result.hits] == ["a.txt"]
        assert "BM25 answered alone" in result.notices[0]
        server.script = []
        fault()
        with pytest.raises((EmbeddingFailed, EmbeddingModelMismatch)):
            kb.semantic_search("pump replaced")
        if server.hang:
            server.hang.set()
            server.hang = None


def test_searching_by_keyword_and_looking_ask_no_server(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    path = aged(write("a.txt", "The pump was replaced."))
    opened(tmp_path / "kb", server).add(path)
    server.die()
    resolve.cache_clear()
    kb = opened(tmp_path / "kb", server)
    assert kb.keyword_search("pump").hits
    assert kb.bm25_search("pump").hits
    assert kb.status().documents == 1
    assert kb.read_chunk(["1-1"]).chunks
    assert kb.add(path).unchanged


def test_another_model_is_refused_by_name_and_by_width(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    opened(tmp_path / "kb", server).add(write("a.txt", "The pump was replaced."))
    asked = len(server.requests)
    other = opened(tmp_path / "kb", server, model="openai:other")
    for call in (lambda: other.semantic_search("x"), lambda: other.add(write("b.txt", "beta"))):
        with pytest.raises(EmbeddingModelMismatch, match=r"'openai:m'.*'openai:other'.*reembed"):
            call()
    assert len(server.requests) == asked

    with running() as wider:
        wider.vector = lambda text: [1.0] * (DIMENSIONS * 2)  # type: ignore[method-assign]
        changed = opened(tmp_path / "kb", wider)
        for call in (
            lambda: changed.semantic_search("x"),
            lambda: changed.add(write("b.txt", "beta")),
        ):
            with pytest.raises(EmbeddingModelMismatch, match=r"32.*16.*|16.*32.*"):
                call()
        assert [Path(d.uri).name for d in changed.documents()] == ["a.txt"]
        assert "BM25 answered alone" in changed.hybrid_search("pump").notices[0]


def test_the_same_model_at_another_address_goes_on(
    server: EmbeddingServer, write: Write, tmp_path: Path
) -> None:
    opened(tmp_path / "kb", server).add(write("a.txt", "The pump was replaced."))
    with running() as elsewhere:
        kb = opened(tmp_path / "kb", elsewhere)
        assert kb.add(write("b.txt", "The valve was replaced.")).added
        assert len(kb.semantic_search("x", 10).hits) == 2


def test_what_is_waited_for_is_told(server: EmbeddingServer, write: Write, tmp_path: Path) -> None:
    kb = opened(tmp_path / "kb", server)
    server.script = [(503, {"Retry-After": "1"}, {"detail": "model is loading"})] * 4
    told: list[Progress] = []
    kb.add(write("a.txt", "The pump was replaced."), on_progress=told.append)
    waiting = [p.detail for p in told if p.stage == "embed" and p.detail]
    assert any("model is loading" in detail for detail in waiting)
