"""Watching: what changes on disk changes in the knowledge base, and nothing else does."""

import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import IndexReport, KnowledgeBase
from agentic_rag.knowledge_base.watching import NothingToWatch, watch
from agentic_rag.models.embedder import EmbeddingFailed, Vectors
from tests.knowledge_base.embedders import HashEmbedder

PATIENCE = 30.0
Next = Callable[[], IndexReport]


@contextmanager
def watched(
    kb: KnowledgeBase, *paths: Path, errors: list[AragError] | None = None
) -> Iterator[Next]:
    """Watching in a thread; yields what waits for the next report."""
    stop = threading.Event()
    reports: queue.Queue[IndexReport] = queue.Queue()
    told = errors if errors is not None else []

    def work() -> None:
        for report in watch(kb, paths, stop=stop, on_error=told.append):
            reports.put(report)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: reports.get(timeout=PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert reports.empty()  # nothing was reported that no test asked for


def names(kb: KnowledgeBase) -> list[str]:
    return sorted(Path(document.uri).name for document in kb.documents())


def test_files_that_come_change_and_go_are_followed(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "笔记"
    folder.mkdir()
    (folder / "a.md").write_text("The fee is 10.")
    with watched(kb, folder) as following:
        assert len(following().added) == 1
        (folder / "子").mkdir()
        (folder / "子/b.md").write_text("蓝桥泵站。")
        assert [Path(o.uri).name for o in following().added] == ["b.md"]
        (folder / "a.md").write_text("The fee is 12.")
        assert len(following().updated) == 1
        assert kb.keyword_search("fee is 12").hits
        (folder / "a.md").unlink()
        assert [Path(o.uri).name for o in following().removed] == ["a.md"]
    assert names(kb) == ["b.md"]


def test_a_file_replaced_by_renaming_is_followed(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("The fee is 10.")
    with watched(kb, path) as following:
        following()
        for fee in (12, 14):  # the second one too: the first replaced the file that was watched
            (tmp_path / "draft").write_text(f"The fee is {fee}.")
            (tmp_path / "draft").rename(path)
            assert len(following().updated) == 1
    assert kb.keyword_search("fee is 14").hits


def test_documents_of_a_folder_that_is_away_stay_until_it_is_back(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "drive"
    folder.mkdir()
    (folder / "a.md").write_text("The fee is 10.")
    with watched(kb, folder) as following:
        following()
        shutil.move(folder, tmp_path / "away")
        threading.Event().wait(3)
        assert names(kb) == ["a.md"]
        (tmp_path / "away/b.md").write_text("The fee is 12.")
        shutil.move(tmp_path / "away", folder)
        assert [Path(o.uri).name for o in following().added] == ["b.md"]
    assert names(kb) == ["a.md", "b.md"]


def test_a_knowledge_base_inside_the_watched_folder_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The fee is 10.")
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    embedder = kb.embedder()
    assert isinstance(embedder, HashEmbedder)
    with watched(kb, tmp_path) as following:
        following()
        generation = kb.snapshot().head.generation
        threading.Event().wait(3)
        assert kb.snapshot().head.generation == generation


def test_watching_survives_an_error(tmp_path: Path) -> None:
    class Failing(HashEmbedder):
        def embed_passages(self, texts: list[str]) -> Vectors:  # type: ignore[override]
            raise EmbeddingFailed("The embedding server is away; start it.")

    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=Failing())
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("The fee is 10.")
    with watched(kb, folder) as following:
        assert len(following().failed) == 1
        (folder / "b.txt").write_text("")
        assert following().empty


def test_a_path_that_does_not_exist_is_named(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(NothingToWatch, match=r"nowhere does not exist; name a file or a folder"):
        next(watch(kb, [tmp_path / "nowhere"], stop=threading.Event()))
