"""Rows of the tables from parsed documents, and records from rows."""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agentic_rag.knowledge_base.records import DocumentInfo
from agentic_rag.knowledge_base.tables import CHUNKS, sentences_schema
from agentic_rag.models.embedder import Vectors
from agentic_rag.text.chunking import ChunkDraft, text_to_embed
from agentic_rag.text.document import Document, Scalar
from agentic_rag.text.words import words

if TYPE_CHECKING:
    from agentic_rag.documents import Source

# Characters of a slice: two seconds' work of the local embedder on two cores. A sentence may be
# as long as a whole chunk.
SLICE = 8_000


@dataclass(frozen=True, slots=True)
class SentenceDraft:
    """A sentence to embed: its place, the text an embedder gets, and that text's hash."""

    chunk: int
    sentence: int
    text: str
    hash: bytes


def document_info(row: Mapping[str, Any]) -> DocumentInfo:
    """The record of a row of the documents table."""
    when = datetime.fromtimestamp(row["indexed_ns"] / 1e9, tz=UTC)
    return DocumentInfo(
        number=row["number"],
        uri=row["uri"],
        title=row["title"],
        media_type=row["media_type"],
        status=row["status"],
        reason=row["reason"],
        chunks=row["chunks"],
        sentences=row["sentences"],
        tokens=row["tokens"],
        size=row["size"],
        indexed_at=when.isoformat(timespec="seconds"),
        metadata=json.loads(row["metadata"]),
        without_vector=row["without_vector"],
    )


def document_row(
    number: int,
    source: "Source",
    content_hash: str,
    document: Document,
    drafts: Sequence[ChunkDraft],
    metadata: Mapping[str, Scalar],
) -> dict[str, Any]:
    """Row of the documents table for a parsed document; its sentences are counted later.

    `metadata` is what was given to the document, beside what is its own.
    """
    return {
        "number": number,
        "uri": source.uri,
        "title": document.title,
        "media_type": document.media_type,
        "status": "ready" if drafts else "empty",
        "reason": "" if drafts else "; ".join(document.warnings) or "it has no text",
        "content_hash": content_hash,
        "size": source.size,
        "mtime_ns": source.mtime_ns,
        "indexed_ns": time.time_ns(),
        "chunks": len(drafts),
        "sentences": 0,
        "without_vector": 0,
        "tokens": sum(draft.tokens for draft in drafts),
        "metadata": json.dumps({**document.metadata, **metadata}, ensure_ascii=False),
        "given_metadata": json.dumps(dict(metadata), ensure_ascii=False),
        "folders": list(document.knowledge_path),
    }


def failed_row(
    number: int, source: "Source", known: Mapping[str, Any] | None, reason: str
) -> dict[str, Any]:
    """Row of a document that could not be indexed; what is `known` of it is kept."""
    row = known or {
        "uri": source.uri,
        "title": source.name,
        "media_type": "",
        "chunks": 0,
        "sentences": 0,
        "without_vector": 0,
        "tokens": 0,
        "metadata": "{}",
        "given_metadata": "{}",
        "folders": list(source.folders),
    }
    return {
        **row,
        "number": number,
        "status": "failed",
        "reason": reason,
        "content_hash": "",  # fits no content, so that it is parsed again when it changes
        "size": source.size,
        "mtime_ns": source.mtime_ns,
        "indexed_ns": time.time_ns(),
    }


def sentences_to_embed(drafts: Sequence[ChunkDraft], with_heading: bool) -> list[SentenceDraft]:
    """The sentences of a document that get a vector, in reading order."""
    return [
        _sentence(draft, number, index, with_heading)
        for number, draft in enumerate(drafts, start=1)
        for index, sentence in enumerate(draft.sentences)
        if not sentence.is_heading
    ]


def _sentence(draft: ChunkDraft, number: int, index: int, with_heading: bool) -> SentenceDraft:
    sentence = draft.sentences[index]
    text = draft.text[sentence.start : sentence.end]
    return _to_embed(number, index, draft.title, sentence.section, text, with_heading)


def stored_sentences(
    row: Mapping[str, Any], indexes: Iterable[int], with_heading: bool
) -> list[SentenceDraft]:
    """The same from a row of the chunks table, for the sentences of these indexes."""
    return [
        _to_embed(
            row["chunk"],
            i,
            row["title"],
            s["section"],
            row["text"][s["start"] : s["end"]],
            with_heading,
        )
        for i in indexes
        for s in [row["sentences"][i]]
    ]


def _to_embed(
    chunk: int, index: int, title: str, section: str, sentence: str, with_heading: bool
) -> SentenceDraft:
    text = sentence.strip()
    if with_heading:
        text = text_to_embed(title, section, text)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return SentenceDraft(chunk, index, text, digest)


def slices(
    sentences: Iterable[SentenceDraft], batch_size: int, at_once: int
) -> Iterator[list[SentenceDraft]]:
    """Sentences by so many as are embedded between two looks at the clock and at a wish to stop;
    `at_once` is how many batches the embedder takes together."""
    part: list[SentenceDraft] = []
    characters = 0
    for sentence in sentences:
        if part and (len(part) >= at_once * batch_size or characters >= at_once * SLICE):
            yield part
            part, characters = [], 0
        part.append(sentence)
        characters += len(sentence.text)
    if part:
        yield part


def chunk_rows(document: int, drafts: Sequence[ChunkDraft]) -> pa.Table:
    """Rows of the chunks table, numbered from 1."""
    return pa.Table.from_pylist(
        [
            {
                "document": document,
                "chunk": number,
                "source_id": draft.given.source_id if draft.given else None,
                "title": draft.title,
                "section": draft.section,
                "page": draft.page,
                "text": draft.text,
                "words": " ".join(words(draft.text)),
                "tokens": draft.tokens,
                "sentences": [
                    {"start": s.start, "end": s.end, "section": s.section, "page": s.page}
                    for s in draft.sentences
                ],
                "metadata": _own_metadata(draft),
            }
            for number, draft in enumerate(drafts, start=1)
        ],
        schema=CHUNKS,
    )


def sentence_rows(
    document: int, drafts: Sequence[SentenceDraft], vectors: Vectors, present: Sequence[bool]
) -> pa.Table:
    """Rows of the sentences table; where `present` is False the vector is null."""
    dimensions = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel(), pa.float32()),
        dimensions,
        mask=pa.array([not there for there in present], pa.bool_()),
    )
    return pa.Table.from_arrays(
        [
            pa.array([document] * len(drafts), pa.int32()),
            pa.array([draft.chunk for draft in drafts], pa.int32()),
            pa.array([draft.sentence for draft in drafts], pa.int32()),
            pa.array([draft.hash for draft in drafts], pa.binary(16)),
            column,
        ],
        schema=sentences_schema(dimensions),
    )


def _own_metadata(draft: ChunkDraft) -> str | None:
    if draft.given is None or not draft.given.metadata:
        return None
    return json.dumps(dict(draft.given.metadata), ensure_ascii=False)
