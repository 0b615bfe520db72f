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

from agentic_rag.knowledge_base.rows import SentenceDraft
from agentic_rag.models.embedder import Embedder, EmbeddingFailed, Vectors

_TAKE = 10_000  # rows fetched at once


@dataclass(slots=True)
class VectorSource:
    """Gives vectors for sentences and counts where they came from.

    `table` is the sentences table as last committed, `fresh` holds this run's vectors that no
    commit has yet, `leftovers` those that an interrupted run computed and never committed.
    """

    embedder: Embedder
    table: lance.LanceDataset
    leftovers: Mapping[bytes, NDArray[np.float32]] = field(default_factory=dict)
    fresh: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)
    embedded: int = 0
    reused: int = 0
    _stored: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None

    def vectors(self, drafts: Sequence[SentenceDraft]) -> tuple[Vectors, list[bool]]:
        """Vectors, (len(drafts), dimensions), and whether each is there: a vector that is not
        finite, is all zero or has the wrong length is never stored. Raises EmbeddingFailed."""
        out = np.zeros((len(drafts), self.embedder.dimensions), dtype=np.float32)
        present = [True] * len(drafts)
        known = self._known(drafts)
        missing: dict[bytes, str] = {}
        for draft in drafts:
            if draft.hash not in known:
                missing.setdefault(draft.hash, draft.text)
        # Length counts for the speed of most models; the order is put right by the hash.
        order = sorted(missing, key=lambda hash: len(missing[hash]))
        if order:
            self._embed(order, [missing[h] for h in order], known)
        self.embedded += len(order)
        self.reused += len(drafts) - len(order)
        for index, draft in enumerate(drafts):
            vector = known.get(draft.hash)
            if vector is None:
                present[index] = False
            else:
                out[index] = vector
        return out, present

    def committed(self, table: lance.LanceDataset) -> None:
        """A commit was made: look stored vectors up in `table` from now on."""
        self.table = table
        self._stored = None
        self.fresh = {}

    def _embed(
        self, hashes: Sequence[bytes], texts: Sequence[str], known: dict[bytes, NDArray[np.float32]]
    ) -> None:
        vectors = np.asarray(self.embedder.embed_passages(texts), dtype=np.float32)
        if vectors.shape != (len(texts), self.embedder.dimensions):
            raise EmbeddingFailed(
                f"The embedder '{self.embedder.name}' gave vectors of shape {vectors.shape} for "
                f"{len(texts)} texts of {self.embedder.dimensions} dimensions; check the model."
            )
        usable = [bool(np.isfinite(v).all() and v.any()) for v in vectors]
        for hash, vector, good in zip(hashes, vectors, usable, strict=True):
            if good:
                known[hash] = self.fresh[hash] = vector

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
            self._stored = _first_halves(rows["hash"]), rows["_rowid"].to_numpy()
        halves, row_ids = self._stored
        wanted = np.array([int.from_bytes(h[:8], sys.byteorder) for h in hashes], dtype=np.uint64)
        matches = np.flatnonzero(np.isin(halves, wanted))
        # A text that stands in many places needs one of its rows.
        _, first = np.unique(halves[matches], return_index=True)
        return [int(row) for row in row_ids[matches[first]]]


def _first_halves(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=np.uint64).reshape(-1, 2)[
            chunk.offset : chunk.offset + len(chunk), 0
        ]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate([np.empty(0, np.uint64), *parts])
