"""The parsed document; defined beside the text functions, which cut it without knowing formats."""

from agentic_rag.text.document import Document, GivenChunk, Heading, Page, Scalar, Table

__all__ = ["Document", "GivenChunk", "Heading", "Page", "Scalar", "Table"]
