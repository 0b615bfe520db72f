"""Whether a kept knowledge base is what indexing would make of the same files today.

Files that have not changed are never indexed again, so after a change to parsing, cutting or to
what is embedded a kept knowledge base would go on giving the old results.
"""

from collections.abc import Sequence
from pathlib import Path

from agentic_rag.documents.parse import parse
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.rows import chunk_rows, sentences_to_embed
from agentic_rag.knowledge_base.tables import open_table
from agentic_rag.text.chunking import ChunkDraft, chunk_document


def is_current(kb: KnowledgeBase, files: Sequence[Path]) -> bool:
    """Whether texts, words and embedded sentences are those that `files` would give now."""
    head = kb.snapshot().head
    chunking = head.chunking
    cuts = [
        chunk_document(
            parse(path.absolute().as_posix(), path.read_bytes()),
            chunking["size"],
            chunking["overlap_tokens"],
            chunking["overlap_sentences"],
        )
        for path in files
    ]
    chunks = open_table(kb.directory, "chunks", head.chunks).to_table(columns=["text", "words"])
    sentences = open_table(kb.directory, "sentences", head.sentences).to_table(columns=["hash"])
    return (
        sorted(zip(chunks["text"].to_pylist(), chunks["words"].to_pylist(), strict=True))
        == sorted(pair for cut in cuts for pair in _texts_and_words(cut))
    ) and sorted(sentences["hash"].to_pylist()) == sorted(
        draft.hash for cut in cuts for draft in sentences_to_embed(cut, head.with_heading)
    )


def _texts_and_words(cut: Sequence[ChunkDraft]) -> list[tuple[str, str]]:
    rows = chunk_rows(0, cut)
    return list(zip(rows["text"].to_pylist(), rows["words"].to_pylist(), strict=True))
