"""Bringing documents in: scan, parse, cut, embed, write, commit; batch after batch.

A batch ends by bytes or seconds and is committed whole, so an interrupted run keeps every batch
before it. The vectors of a document too long for one batch are written as they come, unseen
until the document is whole, and a later run takes them up again.
"""

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from agentic_rag.config import Settings
from agentic_rag.documents.discover import Problem, Source, find_sources
from agentic_rag.text.document import Document, Scalar
from agentic_rag.documents.parse import PARSER_VERSION, UnsupportedDocument, parse
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.embedding import VectorSource
from agentic_rag.knowledge_base.records import DocumentOutcome, IndexReport, Progress
from agentic_rag.knowledge_base.rows import (
    SentenceDraft,
    chunk_rows,
    sentence_rows,
    sentences_to_embed,
)
from agentic_rag.knowledge_base.tables import DOCUMENTS, Writer
from agentic_rag.models.embedder import Embedder
from agentic_rag.text.chunking import ChunkDraft, chunk_document

_SLICE = 256  # sentences embedded between two looks at the clock and at `stop`
# A file written this shortly before it was indexed may change again under the same time stamp.
_RACY_NS = 2_000_000_000

Kind = Literal["added", "updated", "unchanged", "removed", "empty", "failed", "unsupported", "warnings"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller of a run asked for."""

    sync: bool = False
    retry_failed: bool = False
    exclude: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    on_progress: Callable[[Progress], None] = lambda progress: None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class _Ready:
    """A document waiting for its batch's commit: its row, and its rows in the other tables."""

    row: Row
    kind: Kind
    explicit: bool
    warnings: tuple[str, ...]
    chunks: pa.Table | None
    sentences: list[pa.Table]


class Indexing:
    """One run of a writer. Use `run` once; the lock is the caller's business."""

    def __init__(self, writer: Writer, embedder: Embedder, settings: Settings, wishes: Wishes) -> None:
        self._writer = writer
        self._settings = settings
        self._wishes = wishes
        self._outcomes: dict[str, list[DocumentOutcome]] = {}
        leftovers = writer.leftovers()
        writer.sweep()
        self._vectors = VectorSource(
            embedder,
            writer.table("sentences"),
            {h: np.asarray(v, dtype=np.float32) for h, v in leftovers.items()},
        )
        rows = writer.table("documents").to_table().to_pylist()
        self._known: dict[str, Row] = {row["uri"]: row for row in rows}
        self._next_number = writer.head.next_number
        self._batch: list[_Ready] = []
        self._batch_bytes = 0
        self._batch_began = time.monotonic()
        self._sentences_done = 0
        self._sentences_met = 0
        self._bytes_parsed = 0
        self._bytes_total = 0

    def run(self, paths: Sequence[Path]) -> IndexReport:
        """Index files and folders. Stops after the work in hand once `stop` is set."""
        began = time.monotonic()
        sources = self._scan(paths)
        self._bytes_total = sum(source.size for source in sources)
        for done, source in enumerate(sources):
            if self._stopped():
                break
            self._progress("parse", done, len(sources), "documents", source.path.name)
            self._take(source)
            if self._batch_is_full():
                self._commit()
        self._commit()
        if not self._stopped():
            self._progress("parse", len(sources), len(sources), "documents")
        gone = self._gone(paths, sources)
        if self._wishes.sync and not self._stopped():
            self._remove(gone)
            gone = []
        self._tidy()
        return IndexReport(
            **{kind: tuple(found) for kind, found in self._outcomes.items()},
            gone=tuple(gone),
            stopped=self._stopped(),
            sentences_embedded=self._vectors.embedded,
            sentences_reused=self._vectors.reused,
            seconds=time.monotonic() - began,
        )

    # -- scanning -----------------------------------------------------------------------------

    def _scan(self, paths: Sequence[Path]) -> list[Source]:
        exclude = (*self._settings.index.exclude, *self._wishes.exclude)
        own = self._writer.directory.resolve()
        sources = []
        for found in find_sources(paths, exclude):
            if self._stopped():
                break
            if isinstance(found, Problem):
                if not (self._wishes.sync and found.uri in self._known):
                    self._tell("failed", found.uri, reason=found.reason, explicit=True)
            elif own not in found.path.resolve().parents:
                sources.append(found)
                if len(sources) % 100 == 0:
                    self._progress("scan", len(sources), None, "documents")
        return sources

    def _gone(self, paths: Sequence[Path], sources: Sequence[Source]) -> list[str]:
        """Indexed files under `paths` that are no longer on disk."""
        seen = {source.uri for source in sources}
        roots = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  keeps symlinks
        candidates = [uri for uri in self._known if uri not in seen]
        return sorted(
            uri
            for uri in candidates
            if any(Path(uri) == root or root in Path(uri).parents for root in roots)
            and not Path(uri).exists()
        )

    # -- one document -------------------------------------------------------------------------

    def _take(self, source: Source) -> None:
        known = self._known.get(source.uri)
        if known and self._looks_unchanged(source, known):
            self._keep(source, known)
            return
        try:
            data = self._read(source)
            digest = self._hash(data)
            if known and known["content_hash"] == digest and not self._retries(known):
                self._touch(source, known)
                self._keep(source, known)
                return
            document = parse(source.uri, data, source.folders)
            drafts = self._cut(document)
        except UnsupportedDocument as error:
            self._tell("unsupported", source.uri, reason=str(error), explicit=source.explicit)
            return
        except Exception as error:  # one document never stops the others
            self._fail(source, known, _reason(error))
            return
        self._bytes_parsed += source.size
        self._embed(source, known, digest, document, drafts)

    def _looks_unchanged(self, source: Source, known: Row) -> bool:
        if self._retries(known):
            return False
        same = known["size"] == source.size and known["mtime_ns"] == source.mtime_ns
        return same and known["indexed_ns"] - source.mtime_ns > _RACY_NS

    def _retries(self, known: Row) -> bool:
        return bool(self._wishes.retry_failed and known["status"] == "failed")

    def _keep(self, source: Source, known: Row) -> None:
        self._bytes_total -= source.size
        if known["status"] == "failed":
            reason = f"{known['reason']} (as before; 'arag index --retry-failed' tries again)"
            self._tell("failed", source.uri, known["number"], reason, explicit=source.explicit)
        elif known["status"] == "empty":
            self._tell("empty", source.uri, known["number"], known["reason"], explicit=source.explicit)
        else:
            self._tell("unchanged", source.uri, known["number"], chunks=known["chunks"])

    def _touch(self, source: Source, known: Row) -> None:
        """Same content under a new time stamp: remember the stamp, to skip the file next time."""
        row = {**known, "mtime_ns": source.mtime_ns, "indexed_ns": time.time_ns()}
        self._known[source.uri] = row
        self._batch.append(_Ready(row, "unchanged", False, (), None, []))

    def _read(self, source: Source) -> bytes:
        limit = self._settings.index.max_file_mb
        if source.size > limit * 1_000_000:
            raise AragError(
                f"the file is larger than {limit} MB; raise index.max_file_mb to take it"
            )
        return source.path.read_bytes()

    def _hash(self, data: bytes) -> str:
        version = f"{PARSER_VERSION}\n".encode()
        return hashlib.blake2b(version + data, digest_size=16).hexdigest()

    def _cut(self, document: Document) -> list[ChunkDraft]:
        # The way a knowledge base cuts was fixed when it was made.
        chunking = self._writer.head.chunking
        return chunk_document(
            document, chunking["size"], chunking["overlap_tokens"], chunking["overlap_sentences"]
        )

    def _embed(
        self,
        source: Source,
        known: Row | None,
        digest: str,
        document: Document,
        drafts: Sequence[ChunkDraft],
    ) -> None:
        number = self._number(known)
        sentences = sentences_to_embed(drafts, self._writer.head.with_heading)
        self._sentences_met += len(sentences)
        parts: list[pa.Table] = []
        missing = 0
        spilled = False
        for start in range(0, len(sentences), _SLICE):
            part = sentences[start : start + _SLICE]
            try:
                vectors, present = self._vectors.vectors(part, self._count)
            except Exception as error:
                if spilled:
                    self._writer.sweep()
                self._fail(source, known, _reason(error))
                return
            parts.append(sentence_rows(number, part, vectors, present))
            missing += len(part) - sum(present)
            last = start + _SLICE >= len(sentences)
            if not last and (self._stopped() or self._batch_is_full()):
                # Documents before this one are whole: commit them, then put this one's vectors
                # where the next run finds them.
                self._commit()
                self._spill(known, parts, spilled)
                spilled, parts = True, []
                if self._stopped():
                    return
        row = self._row(source, number, digest, document, drafts, len(sentences), missing)
        chunks = chunk_rows(number, drafts)
        if spilled:
            self._writer.append("sentences", pa.concat_tables(parts))
            parts = []
        self._queue(source, known, row, document, chunks, parts, spilled)

    def _queue(
        self,
        source: Source,
        known: Row | None,
        row: Row,
        document: Document,
        chunks: pa.Table,
        parts: list[pa.Table],
        spilled: bool,
    ) -> None:
        kind: Kind = "empty" if row["status"] == "empty" else "updated" if known else "added"
        self._known[source.uri] = row
        ready = _Ready(row, kind, source.explicit, document.warnings, chunks, parts)
        self._batch.append(ready)
        self._batch_bytes += source.size
        if spilled:
            self._write([ready], already_deleted=True)

    def _number(self, known: Row | None) -> int:
        if known:
            return int(known["number"])
        self._next_number += 1
        return self._next_number - 1

    def _row(
        self,
        source: Source,
        number: int,
        digest: str,
        document: Document,
        drafts: Sequence[ChunkDraft],
        sentences: int,
        missing: int,
    ) -> Row:
        reason = "" if drafts else "; ".join(document.warnings) or "the file has no text"
        return {
            "number": number,
            "uri": source.uri,
            "title": document.title,
            "media_type": document.media_type,
            "status": "ready" if drafts else "empty",
            "reason": reason,
            "content_hash": digest,
            "size": source.size,
            "mtime_ns": source.mtime_ns,
            "indexed_ns": time.time_ns(),
            "chunks": len(drafts),
            "sentences": sentences,
            "without_vector": missing,
            "tokens": sum(draft.tokens for draft in drafts),
            "metadata": json.dumps(
                {**document.metadata, **self._wishes.metadata}, ensure_ascii=False
            ),
        }

    def _fail(self, source: Source, known: Row | None, reason: str) -> None:
        """Record a failure. An earlier version of the document goes on serving."""
        row = {
            **(known or _no_row(source)),
            "number": self._number(known),
            "status": "failed",
            "reason": reason,
            "content_hash": "",
            "size": source.size,
            "mtime_ns": source.mtime_ns,
            "indexed_ns": time.time_ns(),
        }
        self._known[source.uri] = row
        self._batch.append(_Ready(row, "failed", source.explicit, (), None, []))

    # -- committing ---------------------------------------------------------------------------

    def _batch_is_full(self) -> bool:
        index = self._settings.index
        return (
            self._batch_bytes >= index.batch_mb * 1_000_000
            or time.monotonic() - self._batch_began >= index.batch_seconds
        )

    def _commit(self) -> None:
        """Write the batch and make it visible."""
        batch, self._batch = self._batch, []
        self._batch_bytes, self._batch_began = 0, time.monotonic()
        if not batch:
            return
        self._progress("write", 0, len(batch), "documents")
        self._write([ready for ready in batch if ready.chunks is not None])
        self._writer.put_documents(pa.Table.from_pylist([r.row for r in batch], schema=DOCUMENTS))
        if self._writer.index_words():
            self._progress("index", 1, 1, "rows")
        self._writer.compact()
        self._writer.commit(next_number=self._next_number)
        self._vectors.committed(self._writer.table("sentences"))
        self._progress("write", len(batch), len(batch), "documents")
        for ready in batch:
            self._report(ready)

    def _write(self, batch: Sequence[_Ready], *, already_deleted: bool = False) -> None:
        if not already_deleted:
            self._writer.delete_rows((r.row["number"] for r in batch), ("sentences", "chunks"))
        for name in ("sentences", "chunks"):
            tables = [t for r in batch for t in (r.sentences if name == "sentences" else [r.chunks])]
            if tables:
                self._writer.append(name, pa.concat_tables(tables))
        for ready in batch:
            ready.chunks, ready.sentences = None, []

    def _spill(self, known: Row | None, parts: list[pa.Table], spilled: bool) -> None:
        if not spilled and known:
            self._writer.delete_rows([known["number"]], ("sentences", "chunks"))
        self._writer.append("sentences", pa.concat_tables(parts))
        self._batch_began = time.monotonic()

    def _remove(self, uris: Sequence[str]) -> None:
        rows = [self._known.pop(uri) for uri in uris]
        if not rows:
            return
        self._writer.delete_rows(row["number"] for row in rows)
        self._writer.commit()
        for row in rows:
            self._tell("removed", row["uri"], row["number"], "no longer on disk", row["chunks"])

    def _tidy(self) -> None:
        """At the end of a run: an index over every row, and no version older than the grace."""
        if self._writer.index_words(at_least=1):
            self._writer.commit()
        self._writer.clean()

    # -- telling ------------------------------------------------------------------------------

    def _report(self, ready: _Ready) -> None:
        row = ready.row
        if ready.kind == "unchanged":
            return  # told when it was met
        self._tell(
            ready.kind, row["uri"], row["number"], row["reason"], row["chunks"], ready.explicit
        )
        if ready.kind != "empty":
            for warning in ready.warnings:
                self._tell("warnings", row["uri"], row["number"], warning, row["chunks"])
        if row["without_vector"]:
            warning = f"{row['without_vector']} sentences could not be embedded; keyword search finds them"
            self._tell("warnings", row["uri"], row["number"], warning, row["chunks"])

    def _tell(
        self,
        kind: Kind,
        uri: str,
        number: int | None = None,
        reason: str = "",
        chunks: int = 0,
        explicit: bool = False,
    ) -> None:
        outcome = DocumentOutcome(uri, number, reason, chunks, explicit)
        self._outcomes.setdefault(kind, []).append(outcome)

    def _count(self, sentences: int) -> None:
        self._sentences_done += sentences
        share = self._bytes_parsed / self._bytes_total if self._bytes_total else 1.0
        total = max(self._sentences_met, round(self._sentences_met / share) if share else 0)
        self._progress("embed", self._sentences_done, total, "sentences")

    def _progress(
        self,
        stage: Literal["scan", "parse", "embed", "write", "index"],
        done: int,
        total: int | None,
        unit: Literal["documents", "sentences", "rows"],
        detail: str = "",
    ) -> None:
        self._wishes.on_progress(Progress(stage, done, total, unit, detail))

    def _stopped(self) -> bool:
        return self._wishes.stop.is_set()


def _no_row(source: Source) -> Row:
    return {
        "uri": source.uri,
        "title": source.path.name,
        "media_type": "",
        "chunks": 0,
        "sentences": 0,
        "without_vector": 0,
        "tokens": 0,
        "metadata": "{}",
    }


def _reason(error: Exception) -> str:
    if isinstance(error, AragError):
        return str(error)
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror or error})"
    return f"it cannot be parsed ({type(error).__name__}: {error})"


__all__ = ["Indexing", "SentenceDraft", "Wishes"]
