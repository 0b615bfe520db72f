"""Files to documents: `find_sources` names the files, `parse` turns the bytes of one into text.

One module per format family. Nothing here touches the knowledge base, and parsing is pure: the
same name and bytes give the same `Document`.
"""

from agentic_rag.documents.discover import InvalidExclude, Problem, Source, find_sources
from agentic_rag.documents.document import Document, GivenChunk, Heading, Page, Scalar
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.parse import PARSER_VERSION, parse

__all__ = [
    "PARSER_VERSION",
    "Document",
    "GivenChunk",
    "Heading",
    "InvalidExclude",
    "Page",
    "Problem",
    "Scalar",
    "Source",
    "UnreadableDocument",
    "UnsupportedDocument",
    "find_sources",
    "parse",
]
