"""The knowledge base of a run: the dataset's own, a copy's, or none that would mislead."""

import json
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.evaluation.dataset import BadDataset, load_dataset
from agentic_rag.evaluation.running.corpus import OWN, knowledge_base_of
from agentic_rag.evaluation.running.identity import AnotherRun, check_same, run_info
from agentic_rag.evaluation.running.variants import variants_of
from agentic_rag.knowledge_base import KnowledgeBase
from tests.evaluation.running.conftest import CHUNKS, write_dataset
from tests.knowledge_base.embedders import HashEmbedder

SETTINGS = Settings(model="none")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = KnowledgeBase.open

    def with_hashes(*given: object, **named: object) -> KnowledgeBase:
        return opened(*given, **{"embedder": HashEmbedder(), **named})  # type: ignore[arg-type]

    monkeypatch.setattr(KnowledgeBase, "open", with_hashes)


def folder(path: Path) -> Path:
    path.mkdir()
    write_dataset(path)
    return path


def test_it_is_made_once_in_the_datasets_folder(tmp_path: Path) -> None:
    dataset = load_dataset(folder(tmp_path / "鸟 set"))

    first = knowledge_base_of(dataset, SETTINGS)
    again = knowledge_base_of(dataset, SETTINGS)

    assert first.directory == again.directory == dataset.directory / OWN
    [document] = again.documents()
    assert document.chunks == len(CHUNKS)


def test_one_of_a_copy_of_the_chunks_will_do(tmp_path: Path) -> None:
    kb = knowledge_base_of(load_dataset(folder(tmp_path / "one")), SETTINGS)
    copy = load_dataset(folder(tmp_path / "two"))

    assert knowledge_base_of(copy, SETTINGS, Path(kb.directory)).directory == kb.directory
    assert len(kb.documents()) == 1


def test_one_of_as_many_other_chunks_with_the_same_ids_is_refused(tmp_path: Path) -> None:
    kb = knowledge_base_of(load_dataset(folder(tmp_path / "one")), SETTINGS)
    other = folder(tmp_path / "two")
    chunks = [{"id": name, "text": f"{text} And more."} for name, text in CHUNKS.items()]
    (other / "chunks.json").write_text(json.dumps(chunks), encoding="utf-8")

    with pytest.raises(BadDataset, match=r"holds 5 chunks, and they are not those of .*--kb"):
        knowledge_base_of(load_dataset(other), SETTINGS, Path(kb.directory))


def test_one_that_holds_other_documents_besides_is_refused(tmp_path: Path) -> None:
    dataset = load_dataset(folder(tmp_path / "one"))
    kb = knowledge_base_of(dataset, SETTINGS)
    (tmp_path / "note.txt").write_text("Herons fish at dawn.")
    kb.add([tmp_path / "note.txt"])

    with pytest.raises(BadDataset, match="holds 6 chunks"):
        knowledge_base_of(dataset, SETTINGS)


def test_a_folder_that_may_not_be_written_to_needs_a_place_by_name(tmp_path: Path) -> None:
    dataset = load_dataset(folder(tmp_path / "one"))
    dataset.directory.chmod(0o555)
    try:
        with pytest.raises(BadDataset, match="name one with --kb"):
            knowledge_base_of(dataset, SETTINGS)
        named = knowledge_base_of(dataset, SETTINGS, tmp_path / "elsewhere")
    finally:
        dataset.directory.chmod(0o755)
    assert len(named.documents()) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[{", r"chunks\.json is not JSON .*correct it"),
        ('[{"id": "c1"}]', "is no list of chunks"),
        ('{"id": "c1", "text": "x"}', "is no list of chunks"),
        ("[]", "is no list of chunks"),
    ],
)
def test_a_file_that_holds_no_chunks_is_not_indexed_as_a_text(
    tmp_path: Path, content: str, said: str
) -> None:
    path = folder(tmp_path / "one")
    (path / "chunks.json").write_text(content, encoding="utf-8")

    with pytest.raises(BadDataset, match=said):
        knowledge_base_of(load_dataset(path), SETTINGS)
    assert not (path / OWN).exists()


def test_a_run_is_of_its_chunks_too(tmp_path: Path) -> None:
    path = folder(tmp_path / "one")
    kb = knowledge_base_of(load_dataset(path), SETTINGS)
    dataset, variants = load_dataset(path), variants_of("naive")
    begun = run_info(dataset, variants, kb, "none", SETTINGS, limit=None, seed=None)
    (path / "chunks.json").write_text("[]", encoding="utf-8")
    now = run_info(dataset, variants, kb, "none", SETTINGS, limit=None, seed=None)

    check_same(begun, begun, tmp_path)
    with pytest.raises(AnotherRun, match="other chunks than"):
        check_same(begun, now, tmp_path)
