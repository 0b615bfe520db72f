"""The parsed document; defined beside the text functions, which cut it without knowing formats."""

from agentic_rag.text.document import (
    Code,
    Document,
    Figure,
    GivenChunk,
    Heading,
    Page,
    Scalar,
    Table,
)

__all__ = ["Code", "Document", "Figure", "GivenChunk", "Heading", "Page", "Scalar", "Table"]
