"""Indexing: incremental, failures named and kept apart, numbers never reused."""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.documents import given_source, parser_version
from agentic_rag.documents.fetching import NothingNamed
from agentic_rag.knowledge_base import (
    EmbeddingModelMismatch,
    KnowledgeBase,
    NoKnowledgeBase,
    Progress,
    UnknownDocument,
)
from agentic_rag.knowledge_base.indexing import _RACY_NS
from agentic_rag.knowledge_base.scanning import is_gone
from agentic_rag.models.embedder import EmbeddingFailed, Vectors
from tests.knowledge_base.embedders import HashEmbedder

Write = Callable[[str, str], Path]


def aged(path: Path, seconds: float = 10) -> Path:
    """Give a file an older time stamp, past the time in which it may change unseen."""
    when = path.stat().st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(when, when))
    return path


def spoil(path: Path) -> Path:
    """Put bytes into a file that are no text."""
    path.write_bytes(bytes(range(256)) * 4)
    return path


def found(kb: KnowledgeBase, word: str) -> list[str]:
    return [Path(hit.uri).name for hit in kb.keyword_search(word, 50).hits]


def test_unchanged_files_are_skipped_without_being_read(
    kb: KnowledgeBase, embedder: HashEmbedder, write: Write
) -> None:
    folder = aged(write("a.txt", "The fee is 10.")).parent
    assert [o.uri for o in kb.add(folder).added] == [str(folder / "a.txt")]
    asked = len(embedder.texts)
    (folder / "a.txt").chmod(0)  # only root could read it now, and nobody needs to
    report = kb.add(folder)
    assert len(report.unchanged) == 1
    assert len(embedder.texts) == asked
    assert report.sentences_embedded == 0


def test_a_changed_file_is_replaced_even_with_its_old_size_and_an_older_stamp(
    kb: KnowledgeBase, write: Write
) -> None:
    path = write("price.txt", "fee 10")
    kb.add(path)
    aged(write("price.txt", "fee 12"), 3600)
    report = kb.add(path)
    assert [len(report.updated), len(report.added)] == [1, 0]
    assert found(kb, "fee 10") == []
    assert found(kb, "fee 12") == ["price.txt"]
    assert kb.status().chunks == 1
    assert kb.documents()[0].number == 1


def test_a_file_changed_under_the_same_stamp_just_before_it_was_indexed_is_noticed(
    kb: KnowledgeBase, write: Write
) -> None:
    path = write("price.txt", "fee 10")
    stamp = path.stat().st_mtime_ns
    kb.add(path)
    path.write_text("fee 12")
    os.utime(path, ns=(stamp, stamp))
    assert _RACY_NS > 0
    assert len(kb.add(path).updated) == 1


def test_a_file_only_touched_is_hashed_once(
    kb: KnowledgeBase, embedder: HashEmbedder, write: Write
) -> None:
    path = aged(write("a.txt", "The fee is 10."), 100)
    kb.add(path)
    aged(path, 50)
    assert len(kb.add(path).unchanged) == 1
    generation = kb.snapshot().head.generation
    assert len(kb.add(path).unchanged) == 1
    assert kb.snapshot().head.generation == generation  # the new stamp was remembered


def test_files_of_one_name_in_two_folders_are_two_documents(
    kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    write("a/readme.md", "# One\nThe alpha text.")
    write("b/readme.md", "# Two\nThe beta text.")
    kb.add(tmp_path / "docs")
    (tmp_path / "docs/a/readme.md").unlink()
    report = kb.add(tmp_path / "docs")
    assert report.gone == (str(tmp_path / "docs/a/readme.md"),)
    assert found(kb, "alpha") == ["readme.md"]
    report = kb.add(tmp_path / "docs", sync=True)
    assert [Path(o.uri).parent.name for o in report.removed] == ["a"]
    assert found(kb, "alpha") == []
    assert found(kb, "beta") == ["readme.md"]


def test_sync_removes_only_what_lies_under_the_paths_given(
    kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    write("a/one.txt", "alpha")
    write("ab/two.txt", "beta")
    kb.add(tmp_path / "docs")
    for path in (tmp_path / "docs").rglob("*.txt"):
        path.unlink()
    report = kb.add(tmp_path / "docs/a", sync=True)
    assert [Path(o.uri).name for o in report.removed] == ["one.txt"]
    assert found(kb, "beta") == ["two.txt"]


def test_a_single_file_gone_from_disk_is_removed_by_sync(kb: KnowledgeBase, write: Write) -> None:
    path = write("a.txt", "alpha")
    kb.add(path)
    path.unlink()
    report = kb.add(path, sync=True)
    assert [len(report.removed), len(report.failed)] == [1, 0]
    assert kb.documents() == []


def test_numbers_are_never_used_again(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", "alpha"))
    kb.add(write("b.txt", "beta"))
    kb.remove(["2"])
    kb.add(write("c.txt", "gamma"))
    assert [d.number for d in kb.documents()] == [1, 3]
    assert kb.read_chunk(["2-1"]).chunks == ()


def test_one_bad_document_never_stops_the_others(
    kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    write("a.txt", "alpha")
    bad = spoil(write("b.txt", ""))
    (tmp_path / "docs/c.pdf").write_bytes(b"%PDF-1.4 nothing more")
    write("d.txt", "delta")
    report = kb.add([tmp_path / "docs", tmp_path / "missing"])
    assert sorted(Path(o.uri).name for o in report.added) == ["a.txt", "d.txt"]
    reasons = {Path(o.uri).name: o.reason for o in report.failed}
    assert sorted(reasons) == ["b.txt", "c.pdf", "missing"]
    assert all(reasons.values())
    assert {Path(d.uri).name for d in kb.status().failed} == {"b.txt", "c.pdf"}
    bad.write_text("now epsilon")
    report = kb.retry_failed()
    assert [Path(o.uri).name for o in report.failed] == ["c.pdf"]
    assert found(kb, "epsilon") == ["b.txt"]


def test_a_failed_document_is_taken_again_only_when_it_changed_or_is_asked_for(
    kb: KnowledgeBase, write: Write
) -> None:
    path = aged(spoil(write("b.txt", "")))
    kb.add(path)
    (again,) = kb.add(path).failed
    assert "--retry-failed" in again.reason
    path.write_text("now well")
    assert len(kb.add(path).updated) == 1


def test_a_document_that_no_longer_parses_goes_on_serving_its_last_good_text(
    kb: KnowledgeBase, write: Write
) -> None:
    path = write("b.txt", "fee ten")
    kb.add(path)
    spoil(path)
    assert len(kb.add(path).failed) == 1
    assert found(kb, "ten") == ["b.txt"]
    (failed,) = kb.status().failed
    assert failed.chunks == 1


def test_a_document_without_text_is_empty_and_says_why(kb: KnowledgeBase, write: Write) -> None:
    report = kb.add(write("a.txt", ""))
    assert [o.reason for o in report.empty] == ["the file is empty"]
    assert [d.status for d in kb.documents()] == ["empty"]
    assert [o.reason for o in kb.add(report.empty[0].uri).empty] == ["the file is empty"]


def test_the_same_text_is_embedded_once(
    kb: KnowledgeBase, embedder: HashEmbedder, write: Write
) -> None:
    write("a/same.txt", "One sentence. Another sentence.")
    write("b/same.txt", "One sentence. Another sentence.")
    settings = Settings(embedding={"with_heading": False})
    other = KnowledgeBase.open(kb.directory.parent / "other", settings=settings, embedder=embedder)
    report = other.add(kb.directory.parent / "docs")
    assert [report.sentences_embedded, report.sentences_reused] == [2, 2]
    write("a/same.txt", "One sentence. Another sentence. A third.")
    report = other.add(kb.directory.parent / "docs")
    assert [report.sentences_embedded, report.sentences_reused] == [1, 2]


def test_metadata_is_kept_and_can_be_added_later(kb: KnowledgeBase, write: Write) -> None:
    path = aged(write("a.txt", "alpha"))
    kb.add(path, metadata={"team": "law"})
    assert kb.documents()[0].metadata["team"] == "law"
    report = kb.add(path, metadata={"year": 2024})
    assert len(report.updated) == 1
    assert kb.documents()[0].metadata == {"team": "law", "year": 2024}


def test_given_metadata_and_the_folders_outlast_a_change(
    kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    path = write("part/a.md", "---\ndraft: true\n---\nalpha one")
    kb.add(tmp_path / "docs", metadata={"team": "law"})
    assert kb.documents()[0].metadata == {"draft": True, "team": "law"}
    write("part/a.md", "---\nauthor: Li\n---\nalpha two")
    kb.add(path)
    assert kb.documents()[0].metadata == {"author": "Li", "team": "law"}
    assert kb.chunks(1)[0].section == "part"


def test_a_stopped_run_keeps_what_was_done_and_the_next_one_goes_on(
    tmp_path: Path, embedder: HashEmbedder, write: Write
) -> None:
    settings = Settings(index={"batch_seconds": 0.001})
    kb = KnowledgeBase.open(tmp_path / "kb", settings=settings, embedder=embedder)
    for i in range(20):
        write(f"{i:02}.txt", f"Text number {i}.")
    stop = threading.Event()

    def on_progress(progress: Progress) -> None:
        if progress.stage == "parse" and progress.done == 7:
            stop.set()

    report = kb.add(tmp_path / "docs", stop=stop, on_progress=on_progress)
    assert report.stopped
    assert 7 <= len(report.added) <= 8
    assert len(kb.documents()) == len(report.added)
    rest = kb.add(tmp_path / "docs")
    assert len(rest.added) == 20 - len(report.added)
    assert not rest.stopped


def test_a_long_document_cut_short_is_not_embedded_twice(
    tmp_path: Path, embedder: HashEmbedder, write: Write
) -> None:
    settings = Settings(index={"batch_seconds": 0.001})
    kb = KnowledgeBase.open(tmp_path / "kb", settings=settings, embedder=embedder)
    path = write("long.txt", "".join(f"This is sentence number {i}. " for i in range(2000)))
    stop = threading.Event()

    def on_progress(progress: Progress) -> None:
        if progress.stage == "embed" and progress.done >= 1000:
            stop.set()

    assert kb.add(path, stop=stop, on_progress=on_progress).stopped
    assert kb.documents() == []
    assert kb.status().sentences == 0
    done = len(embedder.texts)
    assert 1000 <= done < 2000
    report = kb.add(path)
    assert report.sentences_reused == done
    assert len(embedder.texts) == 2000
    assert kb.status().sentences == 2000
    assert found(kb, "number 1999") == ["long.txt"]


def test_progress_is_told_per_stage(kb: KnowledgeBase, write: Write, tmp_path: Path) -> None:
    for i in range(3):
        write(f"{i}.txt", f"Text number {i}.")
    told: list[Progress] = []
    kb.add(tmp_path / "docs", on_progress=told.append)
    last = {progress.stage: (progress.done, progress.total) for progress in told}
    assert last["parse"] == (3, 3)
    assert last["embed"] == (3, 3)
    assert last["write"] == (3, 3)


class Failing(HashEmbedder):
    def embed_passages(self, texts: object) -> Vectors:
        raise EmbeddingFailed("the server is down; start it")


def test_a_failing_embedder_fails_the_document_and_says_why(tmp_path: Path, write: Write) -> None:
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=Failing())
    (failed,) = kb.add(write("a.txt", "alpha")).failed
    assert failed.reason == "the server is down; start it"
    working = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    assert len(working.retry_failed().updated) == 1


class Sometimes(HashEmbedder):
    """Gives a vector that cannot be used for one sentence."""

    def __init__(self, bad: float) -> None:
        super().__init__()
        self.bad = bad

    def embed_passages(self, texts: object) -> Vectors:
        vectors = super().embed_passages(texts)  # type: ignore[arg-type]
        for row, text in zip(vectors, texts, strict=True):  # type: ignore[call-overload]
            if "poison" in text:
                row[:] = self.bad
        return vectors


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_bad_vector_is_never_stored_and_its_sentence_stays_findable(
    bad: float, tmp_path: Path, write: Write
) -> None:
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=Sometimes(bad))
    report = kb.add(write("a.txt", "Good one. The poison sentence. Good two."))
    assert "1 sentences could not be embedded" in report.warnings[0].reason
    assert kb.status().sentences_without_vector == 1
    assert found(kb, "poison") == ["a.txt"]
    assert all(abs(hit.score) <= 1.001 for hit in kb.semantic_search("anything").hits)


@pytest.mark.parametrize(
    "other", [HashEmbedder(32, "wide"), HashEmbedder(16, "same width")], ids=["width", "name"]
)
def test_another_embedding_model_is_refused_before_any_write(
    other: HashEmbedder, kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", "The alpha text."))
    changed = KnowledgeBase.open(kb.directory, settings=Settings(), embedder=other)
    generation = kb.snapshot().head.generation
    for refused in (
        lambda: changed.add(write("b.txt", "beta")),
        lambda: changed.semantic_search("x"),
    ):
        with pytest.raises(EmbeddingModelMismatch) as error:
            refused()
        assert "'hash'" in str(error.value)
        assert f"'{other.name}'" in str(error.value)
        assert "'arag reembed'" in str(error.value)
    assert kb.snapshot().head.generation == generation
    assert len(changed.keyword_search("alpha").hits) == 1
    hybrid = changed.hybrid_search("alpha text")
    assert len(hybrid.hits) == 1
    assert "BM25 answered alone" in hybrid.notices[0]


def test_chunking_stays_as_the_knowledge_base_was_made(
    tmp_path: Path, embedder: HashEmbedder, write: Write
) -> None:
    text = "A sentence of a few words. " * 100
    small = Settings(chunking={"size": 100})
    KnowledgeBase.open(tmp_path / "kb", settings=small, embedder=embedder)
    again = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=embedder)
    (told,) = again.add(write("a.txt", text)).warnings
    assert "size 100, not 1000" in told.reason
    assert again.status().chunking["size"] == 100
    assert again.status().chunks >= 7


def test_documents_are_named_by_number_path_or_end_of_path(
    kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    write("a/readme.md", "one")
    write("b/readme.md", "two")
    kb.add(tmp_path / "docs")
    assert (
        kb.document("2").uri
        == kb.document("b/readme.md").uri
        == kb.document(str(tmp_path / "docs/b/readme.md")).uri
    )
    with pytest.raises(UnknownDocument, match="fits 2 documents"):
        kb.document("readme.md")
    with pytest.raises(UnknownDocument, match="arag list"):
        kb.document("eadme.md")
    with pytest.raises(UnknownDocument):
        kb.remove(["1", "nothing"])
    assert len(kb.documents()) == 2


@pytest.mark.parametrize(
    "name", ["it's.md", 'a"b.md', "100%_x.md", "a\\b.md", "o'brien/x.md", "中文 路径/文 件.md"]
)
def test_any_file_name_can_be_replaced_and_removed(
    name: str, kb: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    write("other.md", "The other text.")
    path = write(name, "The first text.")
    kb.add(tmp_path / "docs")
    path.write_text("The second text.")
    kb.add(tmp_path / "docs")
    assert found(kb, "first") == []
    assert found(kb, "second") == [Path(name).name]
    path.rename(path.with_name("renamed.md"))
    report = kb.add(tmp_path / "docs", sync=True)
    assert [Path(o.uri).name for o in report.removed] == [Path(name).name]
    assert sorted(found(kb, "text")) == ["other.md", "renamed.md"]


def test_the_knowledge_base_never_indexes_itself(kb: KnowledgeBase, write: Write) -> None:
    write("a.txt", "alpha")
    report = kb.add(kb.directory.parent)
    assert [Path(o.uri).name for o in report.added] == ["a.txt"]


def test_other_knowledge_bases_are_no_documents(
    kb: KnowledgeBase, embedder: HashEmbedder, write: Write, tmp_path: Path
) -> None:
    path = write("a.txt", "alpha")
    KnowledgeBase.open(path.parent / "other", settings=Settings(), embedder=embedder).add(path)
    report = kb.add(path.parent)
    assert [Path(o.uri).name for o in report.added] == ["a.txt"]
    assert report.unsupported == report.empty == ()


def test_a_folder_of_other_files_is_not_made_a_knowledge_base(
    embedder: HashEmbedder, write: Write
) -> None:
    folder = write("a.txt", "alpha").parent
    with pytest.raises(NoKnowledgeBase, match="holds other files"):
        KnowledgeBase.open(folder, settings=Settings(), embedder=embedder)
    assert [p.name for p in folder.iterdir()] == ["a.txt"]


def test_what_cannot_be_looked_at_is_not_taken_for_gone(tmp_path: Path) -> None:
    assert is_gone(tmp_path / "nothing")
    assert not is_gone(tmp_path)
    # Stands for a folder that may not be entered, which stops everybody but root.
    assert not is_gone(tmp_path / ("x" * 5000))


def test_long_sentences_are_told_of_one_by_one_and_can_be_stopped(
    kb: KnowledgeBase, embedder: HashEmbedder, write: Write
) -> None:
    path = write("long.txt", " ".join(f"w{i}" for i in range(20_000)))
    stop = threading.Event()
    told: list[int] = []

    def on_progress(progress: Progress) -> None:
        if progress.stage == "embed":
            told.append(progress.done)
            if len(told) == 3:
                stop.set()

    assert kb.add(path, stop=stop, on_progress=on_progress).stopped
    assert len(embedder.texts) == told[2] <= 15
    assert kb.add(path).sentences_reused == told[2]


def test_given_ids_are_kept_with_their_chunks(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    path.write_text(
        json.dumps([{"id": "x7", "text": "One.", "year": 1999}, {"id": "y", "text": "B."}])
    )
    kb.add(path)
    assert [c.source_id for c in kb.chunks(1)] == ["x7", "y"]
    assert kb.chunks(1)[0].metadata["year"] == 1999
    assert kb.keyword_search("one").hits[0].source_id == "x7"


def test_a_place_without_a_knowledge_base_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoKnowledgeBase, match="arag index PATH"):
        KnowledgeBase.open(tmp_path / "none", settings=Settings(), create=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(NoKnowledgeBase, match="is a file"):
        KnowledgeBase.open(tmp_path / "file", settings=Settings(), embedder=HashEmbedder())


def test_bytes_without_a_file_are_a_document_and_other_bytes_replace_it(kb: KnowledgeBase) -> None:
    first = kb.add(given_source("note.md", b"# Fee\n\nThe fee is 10.\n"))
    assert [outcome.uri for outcome in first.added] == ["given:note.md"]
    assert kb.add(given_source("note.md", b"# Fee\n\nThe fee is 10.\n")).unchanged
    assert kb.add(given_source("note.md", b"# Fee\n\nThe fee is 12.\n")).updated
    assert kb.keyword_search(["fee is 12"]).hits
    assert not kb.keyword_search(["fee is 10"]).hits
    assert kb.document("note.md").uri == "given:note.md"


def test_a_newer_parser_reads_unchanged_files_again(
    kb: KnowledgeBase, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = aged(write("a.txt", "The fee is 10."))
    kb.add(path)
    assert kb.add(path).unchanged
    monkeypatch.setattr(sys.modules[parser_version.__module__], "PARSER_VERSION", 1_000)
    assert kb.add(path).updated
    assert kb.add(path).unchanged


@pytest.mark.parametrize("paths", ["", [""]])
def test_an_empty_path_is_refused_and_is_not_the_current_folder(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str | list[str]
) -> None:
    (tmp_path / "docs").mkdir(exist_ok=True)
    (tmp_path / "docs" / "a.txt").write_text("Words.")
    monkeypatch.chdir(tmp_path / "docs")

    with pytest.raises(NothingNamed, match="A path is empty; name a file"):
        kb.add(paths)

    assert kb.documents() == []
