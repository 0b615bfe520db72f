"""Making a knowledge base in a directory that has none."""

from collections.abc import Callable
from pathlib import Path

from agentic_rag.config import Settings
from agentic_rag.knowledge_base.head import Head, read_head
from agentic_rag.knowledge_base.lock import writer_lock
from agentic_rag.knowledge_base.records import NoKnowledgeBase
from agentic_rag.knowledge_base.tables import create_tables, is_knowledge_base
from agentic_rag.models.embedder import Embedder


def make(directory: Path, settings: Settings, embedder: Callable[[], Embedder]) -> None:
    """Make an empty knowledge base, unless another process is faster. Raises NoKnowledgeBase,
    EmbeddingFailed."""
    if directory.exists() and not directory.is_dir():
        raise NoKnowledgeBase(f"{directory} is a file; name a directory for the knowledge base.")
    if not is_knowledge_base(directory) and _has_other_files(directory):
        raise NoKnowledgeBase(
            f"{directory} holds other files and is no knowledge base; name a new or an empty "
            "directory."
        )
    model = embedder()  # a server is asked for its width before anything is made
    head = Head(
        documents=0,
        chunks=0,
        sentences=0,
        embedding_model=model.name,
        dimensions=model.dimensions,
        with_heading=settings.embedding.with_heading,
        chunking=settings.chunking.sizes,
    )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoKnowledgeBase(
            f"{directory} cannot be made ({error.strerror}); name another directory."
        ) from None
    with writer_lock(directory):
        if read_head(directory) is None:  # nobody was faster
            create_tables(directory, head)


def _has_other_files(directory: Path) -> bool:
    ours = ("writer.lock", "writer.json")  # of a creation that is going on, or was cut short
    there = directory.iterdir() if directory.exists() else ()
    return any(path.name not in ours for path in there)
