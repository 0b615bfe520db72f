"""What a knowledge base takes and gives: frozen records, ready for JSON by `dataclasses.asdict`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentic_rag.documents.reading import ImageCounts
from agentic_rag.errors import AragError
from agentic_rag.text.document import Scalar

Mode = Literal["keyword", "semantic", "bm25", "hybrid"]
DocumentStatus = Literal["ready", "empty", "failed"]
Stage = Literal["scan", "parse", "ocr", "embed", "write", "index"]
Unit = Literal["documents", "pages", "sentences", "rows"]


class NoKnowledgeBase(AragError):
    """There is no knowledge base where one was looked for."""


class DamagedKnowledgeBase(AragError):
    """A knowledge base's own files cannot be used as they are."""


class KnowledgeBaseBusy(AragError):
    """Another writer holds the lock and waiting was not wanted."""


class KnowledgeBaseReadOnly(AragError):
    """A knowledge base cannot be written to."""


class EmbeddingModelMismatch(AragError):
    """A knowledge base was made with another embedding model than the settings name."""


class UnknownDocument(AragError):
    """A selector fits no document, or more than one."""


class BadQuery(AragError):
    """A query that cannot be searched, such as an empty one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Narrows a search: a document passes if its path fits one of `paths` (gitignore-style
    globs, relative ones at any depth) and its chunk or document has all of `metadata`."""

    paths: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found. `page` and `section` are those of its best matched sentence."""

    chunk_id: str
    source_id: str | None
    score: float
    title: str
    uri: str
    page: int | None
    section: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first.

    `terms` are the strings to highlight; `counts` says in keyword mode how many chunks contain
    each keyword; `related` is False where nothing is clearly related; `notices` are sentences
    for a person about how the search was done.
    """

    mode: Mode
    query: str
    hits: tuple[Hit, ...]
    terms: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    related: bool = True
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk whole. `text` is what is searched and shown; `tokens` are o200k tokens of it."""

    chunk_id: str
    source_id: str | None
    title: str
    uri: str
    page: int | None
    section: str
    text: str
    tokens: int
    metadata: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Chunks in the order asked for; `unknown` maps each id that does not exist to the nearest
    one that does (None where there is none)."""

    chunks: tuple[Chunk, ...]
    unknown: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One document. "empty" has no text; "failed" has a `reason`, and chunks only where an
    earlier version of it still serves. `size` is in bytes, `tokens` in o200k tokens;
    `without_vector` are sentences that could not be embedded."""

    number: int
    uri: str
    title: str
    media_type: str
    status: DocumentStatus
    reason: str
    chunks: int
    sentences: int
    tokens: int
    size: int
    indexed_at: str
    metadata: Mapping[str, Scalar]
    without_vector: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is. `total` is None while unknown, and of sentences an estimate unless it
    is `exact`."""

    stage: Stage
    done: int
    total: int | None
    unit: Unit
    detail: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """What became of one source; `explicit` where it was named rather than met in a folder."""

    uri: str
    number: int | None = None
    reason: str = ""
    chunks: int = 0
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one run did, per document. `gone` are indexed files no longer on disk that were kept
    because `sync` was off; `stopped` says that the run was asked to end early; `images` are the
    figures of the documents that were parsed."""

    added: tuple[DocumentOutcome, ...] = ()
    updated: tuple[DocumentOutcome, ...] = ()
    unchanged: tuple[DocumentOutcome, ...] = ()
    removed: tuple[DocumentOutcome, ...] = ()
    empty: tuple[DocumentOutcome, ...] = ()
    failed: tuple[DocumentOutcome, ...] = ()
    unsupported: tuple[DocumentOutcome, ...] = ()
    warnings: tuple[DocumentOutcome, ...] = ()
    gone: tuple[str, ...] = ()
    stopped: bool = False
    sentences_embedded: int = 0
    sentences_reused: int = 0
    seconds: float = 0.0
    images: ImageCounts = field(default_factory=ImageCounts)


@dataclass(frozen=True, slots=True)
class SentenceWithoutVector:
    """A sentence that the embedder could not embed, and why; `text` is its beginning."""

    chunk_id: str
    uri: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a change of the embedding model did.

    `changed` is False where nothing was to be done, or where `stopped` says that the run was
    asked to end early. `sentences` is how many there are, `embedded` how many the embedder was
    given in this run; the others were known from an earlier run or stand twice.
    """

    model_before: str
    model: str
    dimensions: int
    changed: bool
    sentences: int = 0
    embedded: int = 0
    without_vector: tuple[SentenceWithoutVector, ...] = ()
    stopped: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CompactReport:
    """Files and bytes on disk before and after."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What an interrupted change of the embedding model left: a table with so many sentences."""

    table: str
    embedding_model: str
    dimensions: int
    sentences: int


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a knowledge base. `bytes_on_disk` includes derived files; `writer` names who
    is writing now; `unfinished` are interrupted changes of the embedding model."""

    path: str
    documents: int
    chunks: int
    sentences: int
    tokens: int
    bytes_on_disk: int
    embedding_model: str
    dimensions: int
    schema_version: int
    chunking: Mapping[str, int]
    unindexed_rows: int
    failed: tuple[DocumentInfo, ...]
    empty: tuple[DocumentInfo, ...]
    sentences_without_vector: int
    without_vector: tuple[DocumentInfo, ...]  # the documents of those
    off_topic_score: float | None
    writer: str | None
    unfinished: tuple[Unfinished, ...] = ()
