"""A knowledge base under two embedding models, and all that can be seen of it."""

import threading
from pathlib import Path
from typing import Any

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase, Progress, tables
from agentic_rag.knowledge_base.head import read_head
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.whole import OTHER


def with_model(directory: Path, embedder: HashEmbedder, **settings: Any) -> KnowledgeBase:
    return KnowledgeBase.open(directory, settings=Settings(**settings), embedder=embedder)


def other() -> HashEmbedder:
    return HashEmbedder(OTHER.dimensions, OTHER.name)


def state(kb: KnowledgeBase) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """All that a reader can see of a knowledge base: rows of sentences, chunks and documents, and
    what stands in the head but for versions."""
    head = read_head(kb.directory)
    assert head is not None
    rows = {n: tables.open_committed(kb.directory, head, n).to_table() for n in tables.NAMES}
    sentences = sorted(
        (r["document"], r["chunk"], r["sentence"], r["hash"], tuple(r["vector"] or ()))
        for r in rows["sentences"].to_pylist()
    )
    chunks = sorted(rows["chunks"].to_pylist(), key=lambda r: (r["document"], r["chunk"]))
    documents = sorted(rows["documents"].drop(["indexed_ns"]).to_pylist(), key=lambda r: r["uri"])
    said = {
        name: getattr(head, name)
        for name in ("embedding_model", "dimensions", "off_topic_score", "off_topic_sentences")
    }
    return sentences, chunks, documents, said


def stopped_after(kb: KnowledgeBase, sentences: int, **how: Any) -> None:
    """Reembed until so many sentences are done, as by Ctrl-C."""
    stop = threading.Event()

    def watch(progress: Progress) -> None:
        if progress.done >= sentences:
            stop.set()

    report = kb.reembed(stop=stop, on_progress=watch, **how)
    assert report.stopped
    assert not report.changed
