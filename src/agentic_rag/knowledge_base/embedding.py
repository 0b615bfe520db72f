"""Vectors for sentences: each text embedded once per knowledge base, however often it stands.

A vector is looked for among those of this run, then in the committed sentences table by the
hash of its text; only what neither has goes to the embedder.
"""

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentic_rag.knowledge_base.records import EmbeddingModelMismatch, IndexReport
from agentic_rag.knowledge_base.rows import SentenceDraft
from agentic_rag.models.embedder import Embedder, EmbeddingFailed, Vectors
from agentic_rag.models.embedders.watched import (
    EmbedderUnavailable,
    EmbeddingStopped,
    Outcome,
    Watch,
    WatchedEmbedder,
    WrongWidth,
    usable,
)

_TAKE = 10_000  # rows fetched at once

# What is no fault of the document in hand, and would meet the next one too.
ENDS_THE_RUN = (EmbedderUnavailable, EmbeddingModelMismatch, EmbeddingStopped)


class IndexingEnded(EmbedderUnavailable):
    """The embedder is of no use any more, so indexing ended; `report` is what was done and kept."""

    def __init__(self, message: str, report: IndexReport) -> None:
        super().__init__(message)
        self.report = report


def embed_all(
    embedder: Embedder,
    texts: Sequence[str],
    dimensions: int,
    outcome: Outcome,
    watch: Watch | None = None,
) -> None:
    """Embed passages into `outcome`, which holds what was done also when this raises.

    A vector that is not finite, is all zero or has the wrong length is asked for once more, by
    itself, and then left out. Raises EmbeddingFailed (EmbedderUnavailable where no text at all
    can be embedded), EmbeddingModelMismatch where the model's vectors do not have `dimensions`,
    and EmbeddingStopped.
    """
    if isinstance(embedder, WatchedEmbedder):
        try:
            embedder.embed_watched(texts, dimensions, outcome, watch or Watch())
        except WrongWidth as error:
            raise EmbeddingModelMismatch(str(error)) from None
        return
    if embedder.dimensions != dimensions:
        raise EmbeddingModelMismatch(
            f"The embedder '{embedder.name}' gives vectors of {embedder.dimensions} dimensions "
            f"and the knowledge base holds vectors of {dimensions}; set embedding.model back, or "
            "change the knowledge base to that one with 'arag reembed'."
        )
    for place, vector in enumerate(_passages(embedder, texts)):
        unit, wrong = usable(vector, dimensions)
        if unit is None:
            unit, wrong = usable(_passages(embedder, [texts[place]])[0], dimensions)
        if unit is None:
            outcome.failed[place] = wrong
        else:
            outcome.vectors[place] = unit


def _passages(embedder: Embedder, texts: Sequence[str]) -> Sequence[NDArray[np.float64]]:
    vectors = np.asarray(embedder.embed_passages(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise EmbeddingFailed(
            f"The embedder '{embedder.name}' gave vectors of shape {vectors.shape} for "
            f"{len(texts)} texts; check the model."
        )
    return list(vectors)


def query_vector(embedder: Embedder, text: str, dimensions: int) -> Vectors:
    """The unit vector of a question. Raises EmbeddingFailed, EmbeddingModelMismatch."""
    vector = np.asarray(embedder.embed_query(text), dtype=np.float64)
    if vector.shape != (dimensions,):
        raise EmbeddingModelMismatch(
            f"The embedder '{embedder.name}' gives vectors of {vector.size} dimensions and the "
            f"knowledge base holds vectors of {dimensions}; set embedding.model back, or change "
            "the knowledge base to that one with 'arag reembed'."
        )
    unit, wrong = usable(vector, dimensions)
    if unit is None:
        raise EmbeddingFailed(
            f"The embedder '{embedder.name}' gave no usable vector for the query ({wrong}); try "
            "other words, or check the model."
        )
    return unit


@dataclass(slots=True)
class VectorSource:
    """Gives vectors for sentences and counts where they came from.

    `table` is the sentences table as last committed, `fresh` holds this run's vectors that no
    commit has yet, `leftovers` those that an interrupted run computed and never committed.
    `failed` says of hashes why they have no vector, and `shortened` are those of texts of which
    only the beginning was embedded.
    """

    embedder: Embedder
    table: lance.LanceDataset
    leftovers: Mapping[bytes, NDArray[np.float32]] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)
    fresh: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)
    failed: dict[bytes, str] = field(default_factory=dict)
    shortened: set[bytes] = field(default_factory=set)
    embedded: int = 0
    reused: int = 0
    _ahead: set[bytes] = field(default_factory=set)  # embedded, and not asked for yet
    _stored: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None

    @property
    def dimensions(self) -> int:
        """Length of the vectors in the table."""
        return int(self.table.schema.field("vector").type.list_size)

    @property
    def batches_at_once(self) -> int:
        """How many batches the embedder is best given in one call."""
        embedder = self.embedder
        return embedder.batches_at_once if isinstance(embedder, WatchedEmbedder) else 1

    def vectors(self, drafts: Sequence[SentenceDraft]) -> tuple[Vectors, list[bool]]:
        """Vectors, (len(drafts), dimensions), and whether each is there.

        Raises as `embed_all`; what was embedded until then is in `fresh`, and `at_hand` gives it.
        """
        known = self._known(drafts)
        asked = self._embed_missing(drafts, known)
        ahead = self._ahead & {draft.hash for draft in drafts}
        self._ahead -= ahead
        self.reused += len(drafts) - asked - len(ahead)
        return self._joined(drafts, known)

    def embed_ahead(self, drafts: Sequence[SentenceDraft]) -> None:
        """Embed now what `vectors` will be asked for before the next commit. Raises as it does."""
        before = set(self.fresh) | set(self.failed)
        self._embed_missing(drafts, self._known(drafts))
        self._ahead |= (set(self.fresh) | set(self.failed)) - before

    def has_all(self, drafts: Sequence[SentenceDraft]) -> bool:
        """Whether `vectors` would embed nothing."""
        known = self._known(drafts)
        return all(draft.hash in known or draft.hash in self.failed for draft in drafts)

    def at_hand(
        self, drafts: Sequence[SentenceDraft]
    ) -> tuple[list[SentenceDraft], Vectors, list[bool]]:
        """Those of `drafts` whose vector is there without embedding anything, as in `vectors`."""
        vectors, present = self._joined(drafts, self._known(drafts))
        there = [index for index, is_there in enumerate(present) if is_there]
        return [drafts[index] for index in there], vectors[there], [True] * len(there)

    def told_of(self, drafts: Sequence[SentenceDraft]) -> list[str]:
        """Warnings about the sentences of a document that have no vector, or of a beginning."""
        told = []
        failed = [draft.hash for draft in drafts if draft.hash in self.failed]
        if failed:
            told.append(
                f"{len(failed)} sentences could not be embedded ({self.failed[failed[0]]}); "
                "keyword search finds them, and 'arag index --retry-failed' tries them again"
            )
        shortened = sum(draft.hash in self.shortened for draft in drafts)
        if shortened:
            told.append(
                f"{shortened} sentences are longer than the embedder takes, so their vectors are "
                "of their beginnings; keyword search finds all of them"
            )
        return told

    def committed(self, table: lance.LanceDataset) -> None:
        """A commit was made: look stored vectors up in `table` from now on."""
        self.table = table
        self._stored = None
        self.fresh = {}

    def _embed_missing(
        self, drafts: Sequence[SentenceDraft], known: Mapping[bytes, NDArray[np.float32]]
    ) -> int:
        """Embed what is not `known`; how many texts that were."""
        missing: dict[bytes, str] = {}
        for draft in drafts:
            if draft.hash not in known and draft.hash not in self.failed:
                missing.setdefault(draft.hash, draft.text)
        # Length counts for the speed of most models; the order is put right by the hash.
        order = sorted(missing, key=lambda hash: len(missing[hash]))
        if order:
            self._embed(order, [missing[h] for h in order])
        self.embedded += len(order)
        return len(order)

    def _embed(self, hashes: Sequence[bytes], texts: Sequence[str]) -> None:
        outcome = Outcome()
        try:
            embed_all(self.embedder, texts, self.dimensions, outcome, self.watch)
        finally:
            self.fresh.update((hashes[place], v) for place, v in outcome.vectors.items())
            self.failed.update((hashes[place], why) for place, why in outcome.failed.items())
            self.shortened.update(hashes[place] for place in outcome.shortened)

    def _joined(
        self, drafts: Sequence[SentenceDraft], known: Mapping[bytes, NDArray[np.float32]]
    ) -> tuple[Vectors, list[bool]]:
        out = np.zeros((len(drafts), self.dimensions), dtype=np.float32)
        present = [True] * len(drafts)
        for index, draft in enumerate(drafts):
            vector = known.get(draft.hash, self.fresh.get(draft.hash))
            if vector is None:
                present[index] = False
            else:
                out[index] = vector
        return out, present

    def _known(self, drafts: Sequence[SentenceDraft]) -> dict[bytes, NDArray[np.float32]]:
        known = {
            d.hash: source[d.hash]
            for source in (self.leftovers, self.fresh)
            for d in drafts
            if d.hash in source
        }
        unknown = {d.hash for d in drafts} - known.keys()
        rows = self._rows_that_may_have(unknown)
        for start in range(0, len(rows), _TAKE):
            # A version cleaned away meanwhile only costs embedding again.
            with contextlib.suppress(OSError):
                found = self.table._take_rows(
                    rows[start : start + _TAKE], columns=["hash", "vector"]
                )
                pairs = zip(found["hash"].to_pylist(), found["vector"].to_pylist(), strict=True)
                known.update(
                    (hash, np.asarray(vector, np.float32))
                    for hash, vector in pairs
                    if hash in unknown
                )
        return known

    def _rows_that_may_have(self, hashes: Iterable[bytes]) -> list[int]:
        """Row ids by the first half of the hash; a handful of Python objects, not one a row."""
        if self._stored is None:
            rows = self.table.scanner(
                columns=["hash"], filter="vector IS NOT NULL", with_row_id=True
            ).to_table()
            # A text that stands in many places needs one of its rows.
            halves, first = np.unique(_first_halves(rows["hash"]), return_index=True)
            self._stored = halves, rows["_rowid"].to_numpy()[first]
        halves, row_ids = self._stored
        if not len(halves):
            return []
        wanted = np.array([int.from_bytes(h[:8], sys.byteorder) for h in hashes], dtype=np.uint64)
        at = np.minimum(np.searchsorted(halves, wanted), len(halves) - 1)
        return [int(row) for row in row_ids[at[halves[at] == wanted]]]


def _first_halves(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=np.uint64).reshape(-1, 2)[
            chunk.offset : chunk.offset + len(chunk), 0
        ]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate([np.empty(0, np.uint64), *parts])
