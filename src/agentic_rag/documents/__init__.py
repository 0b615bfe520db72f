"""Files to documents: `find_sources` names the files, `parse` turns the bytes of one into text.

One module per format family. Nothing here touches the knowledge base, and parsing is pure: the
same name, bytes and reading give the same `Document`.
"""

from agentic_rag.documents.discover import InvalidExclude, find_sources
from agentic_rag.documents.document import Document, GivenChunk, Heading, Page, Scalar, Table
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.parse import PARSER_VERSION, is_current, parse, parser_version
from agentic_rag.documents.reading import Reading, ReadingStopped
from agentic_rag.documents.source import Content, Problem, Source, TooLarge, given_source

__all__ = [
    "PARSER_VERSION",
    "Content",
    "Document",
    "GivenChunk",
    "Heading",
    "InvalidExclude",
    "Page",
    "Problem",
    "Reading",
    "ReadingStopped",
    "Scalar",
    "Source",
    "Table",
    "TooLarge",
    "UnreadableDocument",
    "UnsupportedDocument",
    "find_sources",
    "given_source",
    "is_current",
    "parse",
    "parser_version",
]
