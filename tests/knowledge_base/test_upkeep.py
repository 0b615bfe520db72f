"""What keeps a knowledge base quick: the word index, compaction, old versions, derived files."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import lancedb
import numpy as np
import pytest

from agentic_rag.knowledge_base import tables
from agentic_rag.knowledge_base.tables import open_table
from tests.knowledge_base.test_crashes import write_documents
from tests.knowledge_base.whole import assert_searchable, assert_whole, opened


def top(kb: object, query: str) -> list[tuple[str, float]]:
    hits = kb.bm25_search(query, 5).hits  # type: ignore[attr-defined]
    return [(Path(hit.uri).name, round(hit.score, 4)) for hit in hits]


def test_an_index_made_on_an_empty_table_ranks_as_a_fresh_one(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for i in range(300):
        (docs / f"{i:03}.txt").parent.mkdir(exist_ok=True)
        (docs / f"{i:03}.txt").write_text(
            f"The text {'marker ' * (i % 7)}number {i}. " * (1 + i % 5)
        )
    grown = opened(tmp_path / "grown")
    for part in range(0, 300, 50):
        grown.add([docs / f"{i:03}.txt" for i in range(part, part + 50)])
    fresh = opened(tmp_path / "fresh")
    fresh.add(docs)
    fresh_table = open_table(fresh.directory, "chunks")
    fresh_table.drop_index("words_idx")
    tables._create_word_index(open_table(fresh.directory, "chunks"))
    with_index = tables.Writer(fresh.directory)
    with_index.commit()
    for query in ["the text", "marker number", "text marker 17", "number 250"]:
        assert top(grown, query) == top(fresh, query)
    assert grown.status().unindexed_rows == 0


def test_rows_the_index_does_not_cover_are_found_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_documents(tmp_path / "docs", 5, 1)
    kb = opened(tmp_path / "kb")
    kb.add(tmp_path / "docs/doc0000.txt")
    monkeypatch.setattr(tables.Writer, "index_words", lambda self: False)
    kb.add(tmp_path / "docs")
    assert kb.status().unindexed_rows == kb.status().chunks - 1
    assert_searchable(kb.directory)
    monkeypatch.undo()
    kb.compact()
    assert kb.status().unindexed_rows == 0
    assert_searchable(kb.directory)


def test_all_indexed_rows_can_go_while_newer_ones_stay(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 4, 1)
    kb = opened(tmp_path / "kb")
    kb.add([tmp_path / "docs/doc0000.txt", tmp_path / "docs/doc0001.txt"])
    kb.add(tmp_path / "docs")
    kb.remove(["doc0000.txt", "doc0001.txt"])
    assert_searchable(kb.directory)
    kb.compact()
    assert_searchable(kb.directory)


def test_many_small_runs_leave_few_files_and_stay_searchable(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 60, 1)
    kb = opened(tmp_path / "kb")
    for path in sorted((tmp_path / "docs").iterdir()):
        kb.add(path)
    for name in tables.NAMES:
        assert len(open_table(kb.directory, name).get_fragments()) <= tables._SMALL_FRAGMENTS + 2
    assert kb.status().unindexed_rows <= tables._UNINDEXED_SHARE * 60
    assert_whole(kb.directory)
    assert_searchable(kb.directory)


def test_what_a_query_must_look_at_does_not_grow_with_the_number_of_runs(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 40, 1)
    kb = opened(tmp_path / "kb")
    looked_at = []
    for path in sorted((tmp_path / "docs").iterdir()):
        kb.add(path)
        pieces = len(kb.snapshot().semantic_index.pieces)
        looked_at.append(pieces + kb.status().unindexed_rows)
    assert max(looked_at) <= tables._SMALL_FRAGMENTS + 2


def test_old_versions_stay_for_the_grace_and_then_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_documents(tmp_path / "docs", 3, 1)
    kb = opened(tmp_path / "kb")
    for path in sorted((tmp_path / "docs").iterdir()):
        kb.add(path)
    assert len(open_table(kb.directory, "chunks").versions()) > 3
    monkeypatch.setattr(tables, "GRACE", timedelta(0))
    kb.compact()
    assert len(open_table(kb.directory, "chunks").versions()) == 1
    assert_searchable(kb.directory)


def test_vectors_are_derived_once_and_old_ones_cleared(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 3, 1)
    kb = opened(tmp_path / "kb")
    kb.add(tmp_path / "docs")
    kb.semantic_search("x")
    derived = {p: p.stat().st_mtime_ns for p in (kb.directory / "derived").iterdir()}
    assert derived
    again = opened(kb.directory)
    again.semantic_search("x")
    again.remove(["doc0001.txt"])
    again.semantic_search("x")
    assert {p: p.stat().st_mtime_ns for p in (kb.directory / "derived").iterdir()} == derived
    (tmp_path / "docs/doc0000.txt").write_text("A new text.")
    again.add(tmp_path / "docs")
    again.compact()
    again.semantic_search("x")
    assert not {p for p in (kb.directory / "derived").iterdir()} & set(derived)


def _rows_lost(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


def _narrower(path: Path) -> None:
    array = np.load(path)
    np.save(path, array[:, :-1] if array.ndim == 2 else array[:, None])


def _of_another_type(path: Path) -> None:
    np.save(path, np.load(path).astype(np.float64))


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),  # as a power cut leaves it
        lambda path: path.write_bytes(b"spoilt"),
        lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        _rows_lost,
        _narrower,
        _of_another_type,
    ],
)
@pytest.mark.parametrize("part", ["vectors", "owners", "sentences"])
def test_a_lost_or_spoilt_derived_file_is_made_again(
    tmp_path: Path, spoil: Callable[[Path], object], part: str
) -> None:
    write_documents(tmp_path / "docs", 2, 1)
    kb = opened(tmp_path / "kb")
    kb.add(tmp_path / "docs")
    expected = kb.semantic_search("x").hits
    (path,) = (kb.directory / "derived").glob(f"*.{part}.npy")
    sound = path.read_bytes()
    spoil(path)
    assert opened(kb.directory).semantic_search("x").hits == expected
    assert path.read_bytes() == sound


def test_lancedb_opens_the_tables(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 2, 1)
    kb = opened(tmp_path / "kb")
    kb.add(tmp_path / "docs")
    database = lancedb.connect(str(kb.directory))
    assert database.open_table("documents").count_rows() == 2
    found = database.open_table("chunks").search("doc0001", query_type="fts").limit(3).to_list()
    assert {row["document"] for row in found} == {2}
    vector = np.ones(16, dtype=np.float32)
    assert len(database.open_table("sentences").search(vector).limit(2).to_list()) == 2


def test_the_key_of_a_document_is_declared_to_lance(tmp_path: Path) -> None:
    opened(tmp_path / "kb")
    field = lance.dataset(str(tmp_path / "kb/documents.lance")).schema.field("number")
    assert not field.nullable
    assert field.metadata[b"lance-schema:unenforced-primary-key"] == b"true"


def test_off_topic_scores_are_measured_when_the_base_has_grown_by_half(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 10, 1)
    paths = sorted((tmp_path / "docs").iterdir())
    kb = opened(tmp_path / "kb")
    measured = []
    for path in paths:
        kb.add(path)
        measured.append(kb.snapshot().head.off_topic_sentences)
    per_document = measured[0]
    assert per_document > 0
    assert [count // per_document for count in measured] == [1, 2, 3, 3, 5, 5, 5, 8, 8, 8]


def test_compaction_reports_what_it_saved(tmp_path: Path) -> None:
    write_documents(tmp_path / "docs", 6, 1)
    kb = opened(tmp_path / "kb")
    for path in sorted((tmp_path / "docs").iterdir()):
        kb.add(path)
    report = kb.compact()
    assert report.files_before > 0
    assert report.bytes_before > 0
    assert all(len(open_table(kb.directory, n).get_fragments()) == 1 for n in tables.NAMES)
