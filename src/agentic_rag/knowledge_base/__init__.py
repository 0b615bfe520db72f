"""The knowledge base: documents, chunks and sentences in Lance tables, and their searches.

Names are loaded when first used: `import lance` alone takes 0.3 s.
"""

from typing import TYPE_CHECKING

from agentic_rag.knowledge_base.records import (
    BadQuery,
    Chunk,
    CompactReport,
    DamagedKnowledgeBase,
    DocumentInfo,
    DocumentOutcome,
    EmbeddingModelMismatch,
    Filter,
    Hit,
    IndexReport,
    KnowledgeBaseBusy,
    KnowledgeBaseReadOnly,
    NoKnowledgeBase,
    Progress,
    ReadResult,
    ReembedReport,
    SearchResult,
    SentenceWithoutVector,
    Status,
    Unfinished,
    UnknownDocument,
)

if TYPE_CHECKING:
    from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
    from agentic_rag.knowledge_base.snapshot import Snapshot

__all__ = [
    "BadQuery",
    "Chunk",
    "CompactReport",
    "DamagedKnowledgeBase",
    "DocumentInfo",
    "DocumentOutcome",
    "EmbeddingModelMismatch",
    "Filter",
    "Hit",
    "IndexReport",
    "KnowledgeBase",
    "KnowledgeBaseBusy",
    "KnowledgeBaseReadOnly",
    "NoKnowledgeBase",
    "Progress",
    "ReadResult",
    "ReembedReport",
    "SearchResult",
    "SentenceWithoutVector",
    "Snapshot",
    "Status",
    "Unfinished",
    "UnknownDocument",
]


def __getattr__(name: str) -> object:
    if name == "KnowledgeBase":
        from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase

        return KnowledgeBase
    if name == "Snapshot":
        from agentic_rag.knowledge_base.snapshot import Snapshot

        return Snapshot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
