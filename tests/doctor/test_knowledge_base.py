"""Each thing that can be wrong with a knowledge base is found by its name, and cured."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from agentic_rag.doctor.knowledge_base import check_knowledge_base, repair
from agentic_rag.doctor.records import Finding
from agentic_rag.knowledge_base import EmbeddingModelMismatch, KnowledgeBase, tables
from agentic_rag.knowledge_base.lock import writer_lock
from tests.doctor import damage
from tests.knowledge_base.test_crashes import steps, write_documents, writer
from tests.knowledge_base.whole import assert_searchable, assert_whole, opened


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    """Four documents of two chunks each, as numbers 1 to 4."""
    write_documents(tmp_path / "docs", 4, 2)
    made = opened(tmp_path / "kb")
    made.add(tmp_path / "docs", metadata={"lang": "en"})
    return made


def found(kb: KnowledgeBase) -> dict[str, Finding]:
    return {finding.code: finding for finding in check_knowledge_base(kb.directory)}


def cure(kb: KnowledgeBase) -> None:
    """Repair, and see that nothing is left to repair."""
    repaired = repair(kb, check_knowledge_base(kb.directory))
    assert repaired.failed == ()
    assert found(kb) == {}
    assert assert_whole(kb.directory) == {f"doc000{i}.txt": 2 for i in range(4)}
    assert_searchable(kb.directory)


def test_a_sound_knowledge_base_has_no_findings_also_after_searches_and_removals(
    kb: KnowledgeBase,
) -> None:
    kb.semantic_search("x")
    assert found(kb) == {}
    kb.remove(["2"])
    kb.semantic_search("x")
    assert found(kb) == {}


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("chunks", "document = 2 AND chunk = 1"),  # the last one is left, the count is not
        ("chunks", "document = 2"),
        ("sentences", "document = 2 AND chunk = 2 AND sentence = 0"),
        ("sentences", "document = 2"),
    ],
)
def test_a_document_that_lacks_rows_is_named_and_indexed_again_under_its_number(
    kb: KnowledgeBase, name: str, where: str
) -> None:
    damage.delete(kb.directory, name, where)

    finding = found(kb)["incomplete_documents"]

    assert finding.documents == (2,)
    assert "2 " in finding.message
    assert "doc0001.txt" in finding.message
    assert "arag doctor --fix" in finding.cure
    cure(kb)
    document = kb.document("doc0001.txt")
    assert (document.number, document.metadata["lang"]) == (2, "en")


def test_rows_of_no_document_are_counted_and_deleted(kb: KnowledgeBase) -> None:
    damage.delete(kb.directory, "documents", "number = 3")

    findings = found(kb)

    assert findings["orphan_chunks"].documents == (3,)
    assert findings["orphan_chunks"].message.startswith("2 rows of the table chunks")
    assert findings["orphan_sentences"].documents == (3,)
    repair(kb, list(findings.values()))
    assert found(kb) == {}
    assert len(kb.documents()) == 3


@pytest.mark.parametrize("name", damage.NAMES)
def test_rows_that_stand_twice_are_found_in_every_table(kb: KnowledgeBase, name: str) -> None:
    damage.repeat(kb.directory, name, f"{'number' if name == 'documents' else 'document'} = 4")

    findings = found(kb)

    assert findings["rows_twice"].documents == (4,)
    assert "incomplete_documents" not in findings
    cure(kb)


def test_a_path_with_two_numbers_is_told_with_the_one_to_remove(kb: KnowledgeBase) -> None:
    documents = damage.table(kb.directory, "documents")
    row = documents.to_table(filter="number = 1").to_pylist()[0]
    again = {**row, "number": 5, "chunks": 0, "sentences": 0, "status": "empty"}
    damage.append(kb.directory, "documents", pa.Table.from_pylist([again], tables.DOCUMENTS))
    damage.commit(kb.directory, next_number=6)

    finding = found(kb)["path_twice"]

    assert "arag remove 1" in finding.cure
    kb.remove(["1"])
    assert found(kb) == {}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), "vectors_not_finite"),
        (float("inf"), "vectors_not_finite"),
        (0.0, "vectors_zero"),
    ],
)
def test_vectors_that_spoil_a_search_are_found_and_embedded_anew(
    kb: KnowledgeBase, value: float, code: str
) -> None:
    count = damage.set_vector(kb.directory, "document = 2 AND chunk = 1", value)

    findings = found(kb)

    assert list(findings) == [code]
    assert findings[code].documents == (2,)
    assert findings[code].message.startswith(f"{count} vectors are ")
    cure(kb)
    hits = kb.semantic_search("x", 100).hits
    assert len(hits) == 8
    assert all(np.isfinite(hit.score) for hit in hits)


def test_rows_without_a_word_index_over_them_are_counted(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_documents(tmp_path / "more", 3, 1, "later")
    with monkeypatch.context() as patch:
        patch.setattr(tables.Writer, "index_words", lambda self, at_least=0: False)
        kb.add(tmp_path / "more")

    finding = found(kb)["unindexed_rows"]

    assert "3 of 11 chunks" in finding.message
    assert "`arag compact`" in finding.cure
    kb.compact()
    assert found(kb) == {}


def test_a_lost_word_index_is_made_anew(kb: KnowledgeBase) -> None:
    damage.table(kb.directory, "chunks").drop_index("words_idx")
    damage.commit(kb.directory)

    assert list(found(kb)) == ["no_word_index"]
    cure(kb)


def test_what_a_crash_left_past_the_head_is_told_and_put_aside(kb: KnowledgeBase) -> None:
    damage.table(kb.directory, "sentences").delete("document = 1")

    finding = found(kb)["tables_past_head"]

    assert "sentences (version " in finding.message
    assert "chunks" not in finding.message
    assert "`arag compact`" in finding.cure
    kb.compact()
    assert found(kb) == {}
    assert_whole(kb.directory)


def test_work_in_progress_of_a_living_writer_is_no_finding(kb: KnowledgeBase) -> None:
    damage.table(kb.directory, "sentences").delete("document = 1")

    with writer_lock(kb.directory):
        assert found(kb) == {}


@pytest.mark.parametrize("part", ["vectors", "owners", "sentences"])
@pytest.mark.parametrize("spoil", ["empty", "bytes", "shape", "values"])
def test_a_derived_file_that_differs_from_its_table_is_made_anew(
    kb: KnowledgeBase, part: str, spoil: str
) -> None:
    expected = kb.semantic_search("x").hits
    (path,) = (kb.directory / "derived").glob(f"*.{part}.npy")
    array = np.load(path)
    if spoil in ("empty", "bytes"):
        path.write_bytes(path.read_bytes()[: 0 if spoil == "empty" else 20])
    else:
        np.save(path, array[:-1] if spoil == "shape" else array + 1)

    finding = found(kb)["derived_files_wrong"]

    assert str(path) in finding.files
    cure(kb)
    assert opened(kb.directory).semantic_search("x").hits == expected


def test_old_derived_files_of_no_fragment_are_named(kb: KnowledgeBase) -> None:
    kb.semantic_search("x")
    left = kb.directory / "derived" / "gone.vectors.npy"
    left.write_bytes(b"x")
    assert found(kb) == {}  # a reader of an older version may have made it just now
    yesterday = time.time() - 86_400
    os.utime(left, (yesterday, yesterday))

    finding = found(kb)["derived_files_left"]

    assert finding.files == (str(left),)
    cure(kb)
    assert not left.exists()


def test_a_number_that_would_be_used_again_is_raised(kb: KnowledgeBase, tmp_path: Path) -> None:
    damage.commit(kb.directory, next_number=3)

    assert list(found(kb)) == ["number_used_again"]
    cure(kb)
    write_documents(tmp_path / "more", 1, 1, "later")
    assert kb.add(tmp_path / "more").added[0].number == 5


def test_a_damaged_document_without_its_file_is_left_and_told(kb: KnowledgeBase) -> None:
    damage.delete(kb.directory, "sentences", "document = 2 AND chunk = 1")
    Path(kb.document("2").uri).unlink()

    repaired = repair(kb, check_knowledge_base(kb.directory))

    assert "doc0001.txt: its file is gone" in repaired.failed[0]
    assert list(found(kb)) == ["incomplete_documents"]
    kb.remove(["2"])
    assert found(kb) == {}


def test_nothing_is_touched_when_the_embedding_model_is_another(kb: KnowledgeBase) -> None:
    damage.delete(kb.directory, "sentences", "document = 2")
    other = KnowledgeBase.open(kb.directory, create=False)
    before = (kb.directory / "head.json").read_text()

    with pytest.raises(EmbeddingModelMismatch):
        repair(other, check_knowledge_base(kb.directory))

    assert (kb.directory / "head.json").read_text() == before


def test_a_word_index_whose_files_are_gone_is_made_anew(kb: KnowledgeBase) -> None:
    shutil.rmtree(kb.directory / "chunks.lance" / "_indices")

    findings = found(kb)

    assert list(findings) == ["no_word_index"]
    assert "not readable" in findings["no_word_index"].message
    cure(kb)


def test_a_word_index_whose_files_are_cut_off_is_made_anew(kb: KnowledgeBase) -> None:
    for path in (kb.directory / "chunks.lance" / "_indices").glob("*/*"):
        path.write_bytes(path.read_bytes()[:50])

    assert list(found(kb)) == ["no_word_index"]
    cure(kb)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda kb: (kb / "head.json").write_text("{"), "head.json is not readable"),
        (lambda kb: (kb / "head.json").unlink(), "has tables but no head.json"),
        (lambda kb: damage.commit(kb, generation="x"), "'generation' cannot be \"x\""),
        (lambda kb: damage.commit(kb, documents=99), "version 99"),
        (lambda kb: shutil.rmtree(kb / "documents.lance"), "Table 'documents'"),
        (
            lambda kb: [path.unlink() for path in (kb / "chunks.lance" / "_versions").iterdir()],
            "Table 'chunks'",
        ),
        (
            lambda kb: [path.unlink() for path in (kb / "sentences.lance" / "data").iterdir()],
            "sentences.lance/data",
        ),
    ],
)
def test_what_cannot_be_read_at_all_is_one_finding_that_names_the_backup(
    kb: KnowledgeBase, harm: Callable[[Path], object], said: str
) -> None:
    kb.semantic_search("x")  # more than one check reads the sentences now
    harm(kb.directory)

    (finding,) = check_knowledge_base(kb.directory)

    assert finding.code == "unreadable"
    assert said in finding.message
    assert "from a backup" in finding.cure
    assert "again" in finding.cure
    assert ".rs" not in finding.message


def test_a_folder_without_a_knowledge_base_has_no_findings(tmp_path: Path) -> None:
    assert check_knowledge_base(tmp_path) == []


def test_a_crash_at_any_step_leaves_nothing_but_what_the_next_writer_puts_aside(
    tmp_path: Path,
) -> None:
    docs, start = tmp_path / "docs", tmp_path / "start"
    write_documents(docs, 3, 2)
    opened(start).add(docs)
    write_documents(docs, 4, 3, "second")
    count = steps("add", shutil.copytree(start, tmp_path / "counted"), docs)
    codes = set()
    for step in range(1, count + 1):
        directory = shutil.copytree(start, tmp_path / f"kb{step}")
        writer("add", directory, docs, step).communicate(timeout=120)
        codes |= {finding.code for finding in check_knowledge_base(directory)}
        opened(directory).add(docs)
        assert check_knowledge_base(directory) == []
    assert codes <= {"tables_past_head", "unindexed_rows"}
    assert "tables_past_head" in codes
