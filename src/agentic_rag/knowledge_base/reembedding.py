"""Changing the embedding model: a new table of sentences beside the one that serves.

What each sentence is embedded as is made again from the chunks. The new table fills up unseen; once
it is whole one commit of the head names it, with its model. It is bound to one model and found by
that, so an interrupted run is gone on with: a sentence is known by its place and by the hash of its
text, and only what the new table lacks is embedded, also when documents have changed meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentic_rag.config import Settings
from agentic_rag.knowledge_base.catalog import read_catalog
from agentic_rag.knowledge_base.embedding import VectorSource
from agentic_rag.knowledge_base.fragments import FragmentCache, Keys, chunk_id, key, keys_of
from agentic_rag.knowledge_base.off_topic import off_topic_score
from agentic_rag.knowledge_base.records import (
    DamagedKnowledgeBase,
    Progress,
    ReembedReport,
    SentenceWithoutVector,
)
from agentic_rag.knowledge_base.rows import SentenceDraft, sentence_rows, slices, stored_sentences
from agentic_rag.knowledge_base.semantic import SemanticIndex
from agentic_rag.knowledge_base.sentence_tables import (
    marked,
    next_table,
    touch,
    unfinished_tables,
)
from agentic_rag.knowledge_base.tables import (
    DOCUMENTS,
    Writer,
    reading,
    sentences_schema,
    table_path,
)
from agentic_rag.models.embedder import Embedder, EmbeddingFailed, Vectors
from agentic_rag.models.embedders.watched import EmbeddingStopped, Watch

_CHUNKS = 256  # looked at together
_WAITING = 64_000_000  # bytes of vectors kept in memory before they are written
_ROWS_DELETED = 10_000  # in one statement
_SHOWN = 100  # characters of a sentence that is named

Wanted = tuple[int, SentenceDraft]  # the number of its document, and the sentence


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows of a table of sentences, in order of chunks."""

    keys: Keys
    sentences: NDArray[np.int32]
    hashes: NDArray[np.void]
    row_ids: NDArray[np.uint64]

    def of_chunk(self, chunk_key: int) -> range:
        first, last = np.searchsorted(self.keys, [chunk_key, chunk_key + 1])
        return range(int(first), int(last))


class Reembedding:
    """One run of a writer, which holds the lock and has put leftovers aside. Call `run` once."""

    def __init__(
        self,
        writer: Writer,
        embedder: Embedder,
        settings: Settings,
        on_progress: Callable[[Progress], None],
        stop: threading.Event,
    ) -> None:
        self._writer = writer
        self._embedder = embedder
        self._settings = settings
        self._on_progress = on_progress
        self._stop = stop
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._done = self._total = 0  # sentences
        self._written = time.monotonic()

    def run(self, *, force: bool) -> ReembedReport:
        """Fill the new table and switch to it. `stop` ends it after the work in hand.

        Raises EmbeddingFailed; what was embedded until then is kept.
        """
        began = time.monotonic()
        before, wanted = self._writer.head.embedding_model, self._embedder.name
        dimensions = self._embedder.dimensions
        table = self._unfinished()
        if (before, self._writer.head.dimensions) == (wanted, dimensions) and not (force or table):
            return ReembedReport(before, wanted, dimensions, changed=False)
        if table is None:
            table = self._new_table()
        with reading(self._writer.directory):
            old = _stored(self._writer.committed("sentences"))
        watch = Watch(self._stop, lambda waiting: self._progress(waiting=waiting))
        vectors = VectorSource(self._embedder, self._writer.table(table), watch=watch)
        with suppress(EmbeddingStopped):
            self._fill(table, old, vectors)
        stopped = self._stop.is_set()
        lost: tuple[SentenceWithoutVector, ...] = ()
        if not stopped:
            lost = self._settle(table, old, vectors.failed)
            self._switch(table)
        return ReembedReport(
            before,
            wanted,
            dimensions,
            changed=not stopped,
            sentences=len(old.keys),
            embedded=vectors.embedded,
            without_vector=lost,
            stopped=stopped,
            seconds=time.monotonic() - began,
        )

    # -- the new table ------------------------------------------------------------------------

    def _unfinished(self) -> str | None:
        """The table that an interrupted run with this embedder left."""
        wanted = (self._embedder.name, self._embedder.dimensions)
        tables = unfinished_tables(self._writer.directory, self._writer.head.sentences_table)
        found = [t.table for t in tables if (t.embedding_model, t.dimensions) == wanted]
        return found[-1] if found else None

    def _new_table(self) -> str:
        directory = self._writer.directory
        name = next_table(directory, self._writer.head.sentences_table)
        dimensions = self._embedder.dimensions
        schema = marked(sentences_schema(dimensions), self._embedder.name, dimensions)
        lance.write_dataset(schema.empty_table(), table_path(directory, name))
        return name

    def _fill(self, name: str, old: _Stored, source: VectorSource) -> None:
        """Embed every sentence that the new table lacks, as far as `stop` lets it."""
        table = self._writer.table(name)
        if table.count_rows("vector IS NULL"):  # they are tried again, once a run
            table.delete("vector IS NULL")
        there = _stored(self._writer.table(name))
        self._total = sum(len(batch) for batch in self._missing(old, there))
        self._progress()
        batch_size, at_once = self._settings.embedding.batch_size, source.batches_at_once
        try:
            for batch in self._missing(old, there):
                owners = {id(draft): document for document, draft in batch}
                for part in slices([draft for _, draft in batch], batch_size, at_once):
                    if self._stop.is_set():
                        return
                    try:
                        vectors, present = source.vectors(part)
                    except Exception:  # what was embedded of this part is kept too
                        self._take(owners, *source.at_hand(part))
                        raise
                    self._take(owners, part, vectors, present)
                    if self._is_due():
                        self._write(name, source)
                    self._done += len(part)
                    self._progress()
        finally:
            self._write(name, source)

    def _take(
        self,
        owners: Mapping[int, int],
        drafts: Sequence[SentenceDraft],
        vectors: Vectors,
        present: Sequence[bool],
    ) -> None:
        at = 0
        for document, group in groupby(drafts, lambda draft: owners[id(draft)]):
            end = at + len(list(group))
            rows = sentence_rows(document, drafts[at:end], vectors[at:end], present[at:end])
            self._waiting.append(rows)
            self._waiting_bytes += rows.nbytes
            at = end

    def _is_due(self) -> bool:
        late = time.monotonic() - self._written >= self._settings.index.batch_seconds
        return late or self._waiting_bytes >= _WAITING

    def _write(self, name: str, source: VectorSource) -> None:
        if self._waiting:
            self._writer.append(name, pa.concat_tables(self._waiting))
            self._waiting, self._waiting_bytes = [], 0
            touch(self._writer.directory, name)
            source.committed(self._writer.table(name))
        self._written = time.monotonic()

    # -- what it should hold ------------------------------------------------------------------

    def _wanted(self, old: _Stored) -> Iterator[list[Wanted]]:
        """The sentences that have a row in the table that serves, by a number of chunks."""
        columns = ["document", "chunk", "title", "text", "sentences"]
        scanner = self._writer.committed("chunks").scanner(columns=columns, batch_size=_CHUNKS)
        with_heading = self._writer.head.with_heading
        with reading(self._writer.directory):
            for batch in scanner.to_batches():
                yield [
                    (row["document"], draft)
                    for row in batch.to_pylist()
                    for rows in [old.of_chunk(key(row["document"], row["chunk"]))]
                    for draft in stored_sentences(
                        row, old.sentences[rows.start : rows.stop], with_heading
                    )
                ]

    def _compared(
        self, old: _Stored, new: _Stored
    ) -> Iterator[tuple[list[Wanted], list[int | None]]]:
        """Wanted sentences, and where in `new` the row of each is."""
        for batch in self._wanted(old):
            places: list[int | None] = []
            for chunk_key, group in groupby(batch, lambda w: key(w[0], w[1].chunk)):
                rows = new.of_chunk(chunk_key)
                known = {(int(new.sentences[r]), new.hashes[r].tobytes()): r for r in rows}
                places += [known.get((draft.sentence, draft.hash)) for _, draft in group]
            yield batch, places

    def _missing(self, old: _Stored, new: _Stored) -> Iterator[list[Wanted]]:
        for batch, places in self._compared(old, new):
            yield [one for one, place in zip(batch, places, strict=True) if place is None]

    def _settle(
        self, name: str, old: _Stored, why: Mapping[bytes, str]
    ) -> tuple[SentenceWithoutVector, ...]:
        """Leave in the new table one row a sentence and no other; name those without vector."""
        table = self._writer.table(name)
        new = _stored(table)
        null = table.scanner(columns=["hash"], filter="vector IS NULL", with_row_id=True).to_table()
        without = np.isin(new.row_ids, null["_rowid"].to_numpy())
        if len(without) and without.all():
            raise EmbeddingFailed(
                f"The embedder '{self._embedder.name}' gave no usable vector for any of "
                f"{len(old.keys):,} sentences, so nothing was changed; check the model."
            )
        found = np.zeros(len(new.keys), dtype=np.bool_)
        lost: list[Wanted] = []
        for batch, places in self._compared(old, new):
            there = [place for place in places if place is not None]
            if len(there) < len(batch):
                raise DamagedKnowledgeBase(
                    f"The new table of sentences in {self._writer.directory} is not whole, so "
                    "nothing was changed; run 'arag doctor', which says what is damaged."
                )
            found[there] = True
            lost += [w for w, p in zip(batch, places, strict=True) if p is not None and without[p]]
        stale = new.row_ids[~found].tolist()
        for start in range(0, len(stale), _ROWS_DELETED):
            listed = ", ".join(map(str, stale[start : start + _ROWS_DELETED]))
            self._writer.table(name).delete(f"_rowid IN ({listed})")
        return self._named(lost, why)

    def _named(
        self, lost: Sequence[Wanted], why: Mapping[bytes, str]
    ) -> tuple[SentenceWithoutVector, ...]:
        if not lost:
            return ()
        columns = ["number", "uri"]
        rows = self._writer.committed("documents").to_table(columns=columns).to_pylist()
        uris = {row["number"]: row["uri"] for row in rows}
        return tuple(
            SentenceWithoutVector(
                chunk_id(key(document, draft.chunk)),
                uris[document],
                draft.text[:_SHOWN],
                why.get(draft.hash, ""),
            )
            for document, draft in lost
        )

    # -- the switch ---------------------------------------------------------------------------

    def _switch(self, name: str) -> None:
        """Make the new table the one that serves."""
        writer = self._writer
        writer.compact_table(name)
        writer.table(name).cleanup_old_versions(older_than=timedelta(0))  # nobody reads it yet
        table = writer.table(name)
        sentences = table.count_rows()
        # This also makes the derived files, so that the first search afterwards is a quick one.
        pieces = FragmentCache(writer.directory).vectors(table)
        index = SemanticIndex(pieces, read_catalog(writer.committed("chunks")).keys)
        score = off_topic_score(index, self._embedder) if sentences else None
        self._count_without_vector(table)
        touch(writer.directory, writer.head.sentences_table)  # its time of grace begins
        writer.commit(
            sentences_table=name,
            embedding_model=self._embedder.name,
            dimensions=self._embedder.dimensions,
            off_topic_score=score,
            off_topic_sentences=sentences,
        )
        writer.clean()

    def _count_without_vector(self, table: lance.LanceDataset) -> None:
        rows = table.to_table(columns=["document"], filter="vector IS NULL")
        numbers, counts = np.unique(rows["document"].to_numpy(), return_counts=True)
        count = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        documents = self._writer.committed("documents").to_table().to_pylist()
        changed = [
            {**row, "without_vector": count.get(row["number"], 0)}
            for row in documents
            if row["without_vector"] != count.get(row["number"], 0)
        ]
        if changed:
            self._writer.put_documents(pa.Table.from_pylist(changed, schema=DOCUMENTS))

    def _progress(self, waiting: str = "") -> None:
        self._on_progress(
            Progress("embed", self._done, self._total, "sentences", waiting, exact=True)
        )


def _stored(table: lance.LanceDataset) -> _Stored:
    columns = ["document", "chunk", "sentence", "hash"]
    rows = table.scanner(columns=columns, with_row_id=True).to_table()
    keys, sentences = keys_of(rows), rows["sentence"].to_numpy()
    order = np.lexsort((sentences, keys))
    hashes = np.frombuffer(b"".join(rows["hash"].to_pylist()), dtype="V16")
    return _Stored(keys[order], sentences[order], hashes[order], rows["_rowid"].to_numpy()[order])
