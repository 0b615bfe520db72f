"""A document as parsing leaves it: one text, and marks that say what stands where in it.

Marks are offsets into the text, so that chunking stays a pure function of the text and the
place of every sentence (heading path, page) is looked up afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line. `start` is the offset of its line in the text; `level` counts from 1."""

    start: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page border. `start` is the offset of the page's first character; numbers from 1, None
    where pages end and text without any follows."""

    start: int
    number: int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one row a line: its heading row is `text[start:body]`, the others end at `end`.

    A chunk that begins among the other rows shows the heading row before them (EasyRAG, arXiv
    2410.10315, restores it from the chunks before).
    """

    start: int
    body: int
    end: int


@dataclass(frozen=True, slots=True)
class Code:
    """Program text inside a document of another kind: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture that a document shows, before it is read. `start` is where the line after it
    begins; `name` is where it lies, relative to the document, or a data URI; `caption` what the
    document itself says it shows. `read` gives its bytes where the document holds them."""

    start: int
    name: str
    caption: str = ""
    read: Callable[[], bytes] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GivenChunk:
    """One item of a corpus that comes already cut; `text` is without its title line."""

    source_id: str
    title: str
    text: str
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """One source, parsed.

    `knowledge_path` holds the folders between the indexed root and the file. A document with
    `given_chunks` is never cut again and has an empty `text`. `warnings` are sentences for a
    person ("no text on pages 2-4: ...") about text that could not be taken. `figures`, in order,
    are there only while a document is parsed: what they say becomes part of the text.
    """

    uri: str
    title: str
    media_type: str
    text: str
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    tables: tuple[Table, ...] = ()
    code: tuple[Code, ...] = ()
    given_chunks: tuple[GivenChunk, ...] | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    knowledge_path: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
