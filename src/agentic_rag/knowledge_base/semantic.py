"""Exact semantic search: the cosine of the query with every sentence; a chunk scores as its best.

Vectors lie in mapped files, one a fragment, and a search is one matrix product a fragment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.filters import Allowed
from agentic_rag.knowledge_base.fragments import Keys, VectorPiece
from agentic_rag.models.embedder import Vectors

Scores = NDArray[np.float32]
Floats = NDArray[np.float64]
_NONE = np.float32(-np.inf)


@dataclass(slots=True)
class _Runs:
    """Neighbouring sentences of one chunk in a fragment: where they begin, and whose they are."""

    starts: NDArray[np.int64]
    owners: Keys


@dataclass(slots=True)
class SentenceScores:
    """Scores of all sentences of a snapshot for one query, and of all chunks in key order.

    A chunk without any vector has minus infinity.
    """

    chunks: Scores
    _index: "SemanticIndex"
    _sentences: list[Scores]

    def best(self, top_k: int, allowed: Allowed | None = None) -> tuple[Keys, Floats]:
        """Keys and scores of the `top_k` best chunks, best first, ties in reading order."""
        keys, scores = self._index.keys, self.chunks
        if allowed is not None:
            scores = np.where(allowed(keys), scores, _NONE)
        count = int(min(top_k, np.isfinite(scores).sum()))
        if not count:
            return keys[:0], np.empty(0)
        least = np.partition(scores, -count)[-count]
        positions = np.flatnonzero(scores >= least)
        order = positions[np.lexsort((positions, -scores[positions]))][:count]
        return keys[order], scores[order].astype(np.float64)

    def threshold(self, top: int) -> float:
        """The score of the `top`-th best sentence of all."""
        # So many chunks have a sentence from here up; only those need to be put in order.
        few = min(top, len(self.chunks))
        floor = np.partition(self.chunks, -few)[-few] if few else _NONE
        scores = np.concatenate(
            [np.empty(0, np.float32), *(s[s >= floor] for s in self._sentences)]
        )
        top = min(top, len(scores))
        return float(np.partition(scores, -top)[-top]) if top else float("inf")

    def matched(self, chunk_key: int, least: float) -> list[int]:
        """The sentences of a chunk from `least` up, or its best one; best first."""
        found: list[tuple[float, int]] = []
        for piece, runs, scores in zip(
            self._index.pieces, self._index.runs, self._sentences, strict=True
        ):
            for run in np.flatnonzero(runs.owners == chunk_key):
                start = runs.starts[run]
                end = runs.starts[run + 1] if run + 1 < len(runs.starts) else len(scores)
                found += zip(
                    (-scores[start:end]).tolist(), piece.sentences[start:end].tolist(), strict=True
                )
        found = sorted(pair for pair in found if np.isfinite(pair[0]))
        return [sentence for score, sentence in found if -score >= least] or [
            sentence for _, sentence in found[:1]
        ]


@dataclass(frozen=True, slots=True)
class MeaningPool:
    """Keys and scores of the best chunks for a query, best first; whether the best is clearly
    related; and the scores of all sentences."""

    keys: Keys
    scores: Floats
    related: bool
    sentences: SentenceScores


@dataclass(slots=True)
class SemanticIndex:
    """The vectors of one snapshot. `keys` are its chunk keys in ascending order."""

    pieces: Sequence[VectorPiece]
    keys: Keys
    runs: list[_Runs] = field(init=False)
    _targets: list[NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.runs = [_runs(piece.owners) for piece in self.pieces]
        self._targets = [_positions(self.keys, runs.owners) for runs in self.runs]

    def score(self, query: Vectors) -> SentenceScores:
        """Scores of a unit query vector, shape (dimensions,)."""
        chunks = np.full(len(self.keys), _NONE, dtype=np.float32)
        sentences = []
        for piece, runs, targets in zip(self.pieces, self.runs, self._targets, strict=True):
            scores = piece.vectors @ query
            if not piece.live.all():
                scores[~piece.live] = _NONE
            sentences.append(scores)
            if len(runs.starts):
                best = np.maximum.reduceat(scores, runs.starts)
                known = targets >= 0
                np.maximum.at(chunks, targets[known], best[known])
        return SentenceScores(chunks, self, sentences)


def _runs(owners: Keys) -> _Runs:
    if not len(owners):
        return _Runs(np.empty(0, np.int64), owners)
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    return _Runs(starts, owners[starts])


def _positions(keys: Keys, owners: Keys) -> NDArray[np.int64]:
    """Where each owner stands in `keys`; -1 for one that is not there."""
    if not len(keys):
        return np.full(len(owners), -1, dtype=np.int64)
    found = np.minimum(np.searchsorted(keys, owners), len(keys) - 1)
    return np.where(keys[found] == owners, found, -1)
