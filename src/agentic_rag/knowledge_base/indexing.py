"""Bringing documents in: scan, parse, cut, embed, commit; one document after another."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from agentic_rag.config import Settings
from agentic_rag.documents import (
    Problem,
    ReadingStopped,
    Source,
    UnsupportedDocument,
    find_sources,
    parse,
)
from agentic_rag.documents.reading import ImageCounts
from agentic_rag.knowledge_base import content_hash
from agentic_rag.knowledge_base.ahead import Ahead, Parsed
from agentic_rag.knowledge_base.batches import Batches, Entry, Row
from agentic_rag.knowledge_base.embedding import ENDS_THE_RUN, IndexingEnded, VectorSource
from agentic_rag.knowledge_base.missing_vectors import embed_missing
from agentic_rag.knowledge_base.reading import failure_reason, knowledge_path, reading_for
from agentic_rag.knowledge_base.records import DocumentOutcome, IndexReport, Progress, Stage, Unit
from agentic_rag.knowledge_base.rows import (
    chunk_rows,
    document_row,
    failed_row,
    sentence_rows,
    sentences_to_embed,
    slices,
)
from agentic_rag.knowledge_base.scanning import KnowledgeBases, gone_uris
from agentic_rag.knowledge_base.tables import Writer
from agentic_rag.knowledge_base.wishes import Kind, Wishes
from agentic_rag.models.embedder import Embedder
from agentic_rag.models.embedders.watched import EmbedderUnavailable, EmbeddingStopped, Watch
from agentic_rag.text.chunking import ChunkDraft, chunk_document
from agentic_rag.text.document import Document

# A file written this shortly before it was indexed may change again under the same time stamp.
_RACY_NS = 2_000_000_000


class Indexing:
    """One run of a writer, which holds the lock. Call `run` once.

    `leftovers` are vectors by hash that an interrupted run never committed.
    """

    def __init__(
        self,
        writer: Writer,
        leftovers: Mapping[bytes, Sequence[float]],
        embedder: Embedder,
        settings: Settings,
        wishes: Wishes,
    ) -> None:
        self._writer = writer
        self._settings = settings
        self._wishes = wishes
        self._outcomes: dict[Kind, list[DocumentOutcome]] = {}
        self._vectors = VectorSource(
            embedder,
            writer.table("sentences"),
            {hash: np.asarray(vector, np.float32) for hash, vector in leftovers.items()},
            Watch(wishes.stop, lambda waiting: self._count(0, waiting)),
        )
        rows = writer.table("documents").to_table().to_pylist()
        self._known: dict[str, Row] = {row["uri"]: row for row in rows}
        self._batches = Batches(writer, settings.index)
        batch_size = settings.embedding.batch_size
        self._ahead = Ahead(self._vectors, batch_size, self._finish, self._put_aside)
        self._images = ImageCounts()
        self._reading = reading_for(settings, self._page_read, self._stopped, self._images_met)
        self._pages_read = 0
        self._sentences_done = 0
        self._sentences_met = 0
        self._bytes_parsed = 0
        self._bytes_total = 0

    def run(self, paths: Sequence[Path | Source]) -> IndexReport:
        """Index files, folders and other sources. `stop` ends it after the work in hand.

        Raises IndexingEnded where the embedder is of no use any more.
        """
        began = time.monotonic()
        self._tell_of_chunking()
        sources = self._scan(paths)
        self._bytes_total = sum(source.size for source in sources)
        try:
            self._take_all(sources)
        except EmbedderUnavailable as error:
            raise IndexingEnded(str(error), self._made_report(began)) from error
        if not self._stopped():
            self._progress("parse", len(sources), len(sources), "documents")
        gone = gone_uris(self._known, paths, sources)
        if self._wishes.sync and not self._stopped():
            self._remove(gone)
            gone = []
        if self._writer.index_words():
            self._writer.commit()
        self._writer.clean()
        return self._made_report(began, gone)

    def _take_all(self, sources: Sequence[Source]) -> None:
        try:
            for done, source in enumerate(sources):
                if self._stopped():
                    break
                self._progress("parse", done, len(sources), "documents", source.name)
                self._take(source)
                if self._batches.is_full():
                    self._commit()
            self._ahead.flush()
            if self._wishes.retry_failed and not self._stopped():
                self._commit()
                self._embed_missing()
        except EmbeddingStopped:
            pass  # as `stop` asked
        finally:
            self._commit()

    def _made_report(self, began: float, gone: Sequence[str] = ()) -> IndexReport:
        return IndexReport(
            **{kind: tuple(found) for kind, found in self._outcomes.items()},
            gone=tuple(gone),
            stopped=self._stopped(),
            sentences_embedded=self._vectors.embedded,
            sentences_reused=self._vectors.reused,
            seconds=time.monotonic() - began,
            images=self._images,
        )

    # -- scanning -----------------------------------------------------------------------------

    def _scan(self, paths: Sequence[Path | Source]) -> list[Source]:
        exclude = (*self._settings.index.exclude, *self._wishes.exclude)
        sources = [path for path in paths if isinstance(path, Source)]
        named = [path for path in paths if isinstance(path, Path)]
        skipped = KnowledgeBases(self._writer.directory, named)
        for found in find_sources(named, exclude):
            if self._stopped():
                break
            if isinstance(found, Problem):
                self._problem(found)
            elif found.path is None or not skipped.holds(found.path):
                sources.append(found)
                if len(sources) % 100 == 0:
                    self._progress("scan", len(sources), None, "documents")
        self._progress("scan", len(sources), len(sources), "documents")
        return sources

    def _problem(self, found: Problem) -> None:
        inside = f"{found.uri.rstrip('/')}/"
        within = [row for uri, row in self._known.items() if uri.startswith(inside)]
        if found.of_version:
            if not any(row["mtime_ns"] == found.of_version for row in within):  # else told then
                self._tell("warnings", found.uri, reason=found.reason)
            return
        known = found.uri in self._known or bool(within)
        if self._wishes.sync and known and not Path(found.uri).exists():
            return  # what was indexed there is removed, and told so
        kind: Kind = "unsupported" if found.skipped else "failed"
        self._tell(kind, found.uri, reason=found.reason, explicit=not found.skipped)

    # -- one document -------------------------------------------------------------------------

    def _take(self, source: Source) -> None:
        if self._ahead.holds(source.uri):  # it is met a second time
            self._ahead.flush()
        known = self._known.get(source.uri)
        if known and self._looks_unchanged(source, known):
            self._keep(source, known)
            return
        try:
            content = source.read(self._settings.index.max_file_mb * 1_000_000)
            source = replace(source, size=len(content.data))
            digest = content_hash.digest(content.data, source.place)
            if known and content_hash.is_known(digest, known, self._reading):
                self._keep(source, known, touched=True)
                return
            folders = knowledge_path(source, known)
            reading = replace(self._reading, beside=source.beside)
            document = parse(source.uri, content.data, folders, content.media_type, reading)
            document = source.finish(document)
            digest = content_hash.content_hash(digest, document.media_type, self._reading)
            drafts = self._cut(document)
            self._bytes_parsed += source.size
            sentences = sentences_to_embed(drafts, self._writer.head.with_heading)
        except ReadingStopped:
            return
        except UnsupportedDocument as error:
            self._tell("unsupported", source.uri, reason=str(error), explicit=source.explicit)
        except Exception as error:  # one document never stops the others
            self._fail(source, known, failure_reason(error))
        else:
            self._sentences_met += len(sentences)
            number = int(known["number"]) if known else self._batches.new_number()
            self._ahead.put(Parsed(source, known, number, digest, document, drafts, sentences))

    def _finish(self, parsed: Parsed) -> None:
        try:
            self._embed(parsed)
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            self._fail(parsed.source, parsed.known, failure_reason(error), parsed.number)

    def _looks_unchanged(self, source: Source, known: Row) -> bool:
        if self._wishes.retry_failed and known["status"] == "failed":
            return False
        if not source.mtime_ns:
            return False
        same = known["size"] == source.size and known["mtime_ns"] == source.mtime_ns
        same = same and content_hash.is_read_as_now(known, self._reading)
        return same and bool(known["indexed_ns"] - source.mtime_ns > _RACY_NS)

    def _keep(self, source: Source, known: Row, *, touched: bool = False) -> None:
        """Nothing to parse; a new time stamp or new metadata are remembered all the same."""
        self._bytes_total -= source.size
        metadata = json.loads(known["metadata"])
        described = {**metadata, **self._wishes.metadata}
        given = {**json.loads(known["given_metadata"]), **self._wishes.metadata}
        if touched or described != metadata:
            row = {
                **known,
                "mtime_ns": source.mtime_ns,
                "indexed_ns": time.time_ns(),
                "metadata": json.dumps(described, ensure_ascii=False),
                "given_metadata": json.dumps(given, ensure_ascii=False),
            }
            self._known[source.uri] = row
            self._batches.put(Entry(row, lambda: None))
        reason = known["reason"]
        if known["status"] == "failed":
            reason += " (as before; 'arag index --retry-failed' tries again)"
        kinds: dict[str, Kind] = {"failed": "failed", "empty": "empty"}
        kind = kinds.get(known["status"], "updated" if described != metadata else "unchanged")
        self._tell(kind, source.uri, known["number"], reason, known["chunks"], source.explicit)

    def _cut(self, document: Document) -> list[ChunkDraft]:
        # The way a knowledge base cuts was fixed when it was made.
        chunking = self._writer.head.chunking
        return chunk_document(
            document, chunking["size"], chunking["overlap_tokens"], chunking["overlap_sentences"]
        )

    def _embed(self, parsed: Parsed) -> None:
        source, known, number = parsed.source, parsed.known, parsed.number
        document, drafts, sentences = parsed.document, parsed.drafts, parsed.sentences
        parts: list[pa.Table] = []
        missing = 0
        spilled = False
        done = 0
        batch_size, at_once = self._settings.embedding.batch_size, self._vectors.batches_at_once
        for part in slices(sentences, batch_size, at_once):
            done += len(part)
            try:
                vectors, present = self._vectors.vectors(part)
            except ENDS_THE_RUN:
                parts.append(sentence_rows(number, *self._vectors.at_hand(part)))
                self._spill(number, parts, first=not spilled)
                raise
            except Exception:
                if spilled:
                    self._writer.sweep()
                raise
            self._count(len(part))
            parts.append(sentence_rows(number, part, vectors, present))
            missing += len(part) - sum(present)
            if done < len(sentences) and (self._stopped() or self._batches.is_full()):
                self._spill(number, parts, first=not spilled)
                spilled, parts = True, []
                if self._stopped():
                    return
        given = {**(json.loads(known["given_metadata"]) if known else {}), **self._wishes.metadata}
        row = document_row(number, source, parsed.digest, document, drafts, given)
        row["sentences"], row["without_vector"] = len(sentences), missing
        self._known[source.uri] = row
        kind: Kind = "empty" if not drafts else "updated" if known else "added"
        warnings = (*document.warnings, *self._vectors.told_of(sentences))
        report = partial(self._report, row, kind, source.explicit, warnings)
        entry = Entry(row, report, chunk_rows(number, drafts), parts)
        if spilled:
            self._batches.put_spilled(entry)
        else:
            self._batches.put(entry)

    def _embed_missing(self) -> None:
        """Try sentences again that an earlier run could not embed, whatever document has them."""
        rows = [row for row in self._known.values() if row["without_vector"]]
        size = self._settings.embedding.batch_size
        for one in embed_missing(self._writer, self._vectors, rows, size):
            told: list[tuple[Kind, str]] = [("updated", "")] if one.found else []
            told += [("warnings", warning) for warning in self._vectors.told_of(one.drafts)]
            for kind, reason in told:
                self._tell(kind, one.row["uri"], one.row["number"], reason, one.row["chunks"])

    def _put_aside(self, documents: Sequence[Parsed]) -> None:
        """`_spill` for several documents: the vectors of theirs that are at hand."""
        parts = [
            (one.number, [sentence_rows(one.number, *self._vectors.at_hand(one.sentences))])
            for one in documents
        ]
        for number, rows in parts:
            self._spill(number, rows, first=True)

    def _spill(self, number: int, parts: list[pa.Table], *, first: bool) -> None:
        """Put vectors of a document that is not whole where the next run finds them; the documents
        before it are, so they are committed."""
        self._commit()
        self._batches.spill(number, parts, first=first)

    def _fail(
        self, source: Source, known: Row | None, reason: str, number: int | None = None
    ) -> None:
        """Record a failure. An earlier version of the document goes on serving."""
        if number is None:
            number = int(known["number"]) if known else self._batches.new_number()
        row = failed_row(number, source, known, reason)
        self._known[source.uri] = row
        self._batches.put(Entry(row, partial(self._report, row, "failed", source.explicit, ())))

    def _commit(self) -> None:
        waiting = len(self._batches)
        if self._batches.commit():
            self._vectors.committed(self._writer.table("sentences"))
            self._progress("write", waiting, waiting, "documents")

    def _remove(self, uris: Sequence[str]) -> None:
        rows = [self._known.pop(uri) for uri in uris]
        if not rows:
            return
        self._writer.delete_rows(row["number"] for row in rows)
        self._writer.commit()
        for row in rows:
            self._tell("removed", row["uri"], row["number"], "no longer on disk", row["chunks"])

    # -- telling ------------------------------------------------------------------------------

    def _report(self, row: Row, kind: Kind, explicit: bool, warnings: Sequence[str]) -> None:
        self._tell(kind, row["uri"], row["number"], row["reason"], row["chunks"], explicit)
        told = list(warnings) if kind != "empty" else []
        for warning in told:
            self._tell("warnings", row["uri"], row["number"], warning, row["chunks"], explicit)

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

    def _tell_of_chunking(self) -> None:
        wanted, made = self._settings.chunking.sizes, self._writer.head.chunking
        other = [f"{n} {made[n]}, not {v}" for n, v in wanted.items() if made[n] != v]
        if other:
            reason = (
                f"a knowledge base goes on cutting as it was made ({', '.join(other)}); for other "
                "chunking settings make a new one with --kb"
            )
            self._tell("warnings", str(self._writer.directory), reason=reason)

    def _images_met(self, counts: ImageCounts) -> None:
        self._images += counts

    def _page_read(self, done: int, total: int) -> None:
        before = self._pages_read
        self._progress("ocr", before + done, before + total, "pages")
        if done == total:
            self._pages_read += total
        if self._batches.is_full():
            self._commit()  # a scan takes long; the documents before it are whole

    def _count(self, sentences: int, detail: str = "") -> None:
        self._sentences_done += sentences
        # What is still to come is guessed from the bytes that are still to be parsed.
        share = self._bytes_parsed / self._bytes_total if self._bytes_total else 1.0
        total = round(self._sentences_met / share) if 0 < share < 1 else self._sentences_met
        self._progress("embed", self._sentences_done, total, "sentences", detail)

    def _progress(
        self, stage: Stage, done: int, total: int | None, unit: Unit, detail: str = ""
    ) -> None:
        self._wishes.on_progress(Progress(stage, done, total, unit, detail))

    def _stopped(self) -> bool:
        return self._wishes.stop.is_set()
