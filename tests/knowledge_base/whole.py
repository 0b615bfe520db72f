"""Checks that a knowledge base holds whole documents and nothing else."""

from collections import Counter
from pathlib import Path

import lance

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.head import read_head
from tests.knowledge_base.embedders import HashEmbedder

# The embedder that the action "reembed" of writing.py changes to.
OTHER = HashEmbedder(24, "other")
# What the action "remove" of writing.py removes.
REMOVED = ("doc0001.txt", "doc0002.txt")


def opened(directory: Path, **index: float) -> KnowledgeBase:
    settings = Settings(index=index)
    return KnowledgeBase.open(directory, settings=settings, embedder=HashEmbedder())


def assert_whole(directory: Path) -> dict[str, int]:
    """Every row of the committed tables belongs to a document that has all its rows, once.

    Gives the number of chunks by file name.
    """
    head = read_head(directory)
    assert head is not None
    rows = {
        name: lance.dataset(
            str(directory / f"{head.table_name(name)}.lance"), version=getattr(head, name)
        )
        for name in ("documents", "chunks", "sentences")
    }
    documents = rows["documents"].to_table().to_pylist()
    assert len({d["number"] for d in documents}) == len(documents)
    assert len({d["uri"] for d in documents}) == len(documents)
    for name, columns in (("chunks", ["document", "chunk"]), ("sentences", None)):
        table = rows[name].to_table(columns=columns or ["document", "chunk", "sentence"])
        keys = [tuple(row.values()) for row in table.to_pylist()]
        assert len(set(keys)) == len(keys), f"{name} has a row twice"
        counted = Counter(key[0] for key in keys)
        expected = {d["number"]: d[name] for d in documents if d[name]}
        assert counted == expected, f"{name} are not those of the documents"
    assert all(d["number"] < head.next_number for d in documents)
    return {Path(d["uri"]).name: d["chunks"] for d in documents}


def assert_searchable(directory: Path) -> None:
    """Each document is found by every route, by its own name."""
    kb = opened(directory)
    snapshot = kb.snapshot()
    for document in kb.documents():
        marker = Path(document.uri).stem
        for result in (
            snapshot.keyword_search([f"marker {marker} "], 1),
            snapshot.bm25_search(f"{marker}", 1),
        ):
            assert [hit.uri for hit in result.hits] == [document.uri]
    assert len(snapshot.semantic_search("x", 10_000).hits) == kb.status().chunks
