"""Two routes to candidates, wide and quick: words and vectors (EasyRAG, arXiv 2410.10315).

The sparse route is BM25 over chunks with their knowledge path before them, and a few by the
knowledge path alone; the dense one is the cosine of the best sentence. Each may be given queries of
its own, such as a hypothetical answer.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from agentic_rag.knowledge_base import EmbeddingModelMismatch, Filter, Hit, Snapshot, snippets
from agentic_rag.knowledge_base.fragments import Keys, chunk_id
from agentic_rag.knowledge_base.hybrid import fuse
from agentic_rag.knowledge_base.semantic import MeaningPool
from agentic_rag.models.embedder import EmbeddingFailed
from agentic_rag.text.words import words

if TYPE_CHECKING:
    from agentic_rag.config import Pipeline, Search

RouteName = Literal["sparse", "dense"]
_SENTENCES_A_HIT = 3  # A-RAG: the top 3 x k sentences, grouped by chunk


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk on a route, by key and id, with its score there."""

    key: int
    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Route:
    """The candidates of one route, best first, each once. `by_path` of them came by the knowledge
    path alone; finding them took `seconds`."""

    name: RouteName
    candidates: tuple[Candidate, ...]
    by_path: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Coarse:
    """The routes, and what makes hits of their candidates. `related` is False where the vectors
    found nothing clearly related."""

    routes: tuple[Route, ...]
    related: bool
    notices: tuple[str, ...]
    _snapshot: Snapshot
    _words: tuple[str, ...]
    _meaning: MeaningPool | None

    def hits(self, scored: Sequence[tuple[Candidate, float]]) -> tuple[Hit, ...]:
        """Hits of these candidates with these scores."""
        least = 0.0
        if self._meaning is not None:
            least = self._meaning.sentences.threshold(_SENTENCES_A_HIT * max(1, len(scored)))
        found = []
        for one, score in scored:
            snippet = partial(snippets.of_words, query_words=self._words)
            if self._meaning is not None:
                wanted = self._meaning.sentences.matched(one.key, least)
                snippet = partial(
                    snippets.of_sentences_and_words, wanted=wanted, query_words=self._words
                )
            found.append((one.key, score, snippet))
        return self._snapshot.hits_of(found)


def coarse(
    snapshot: Snapshot,
    sparse: Sequence[str],
    dense: Sequence[str],
    *,
    where: Filter | None,
    settings: "Pipeline",
) -> Coarse:
    """The candidates for a question, of which the first of `sparse` and of `dense` is its main
    form. Blocks. Where no query can be embedded, the dense route is empty and a notice says so.
    Raises BadQuery for a filter that is none."""
    allowed = snapshot.allowed(where)
    started = time.monotonic()
    query_words = tuple(dict.fromkeys(word for query in sparse for word in words(query)))
    keys, scores = snapshot.word_pool(query_words, settings.sparse, allowed)
    by_words = list(zip(keys.tolist(), scores.tolist(), strict=True))
    taken = {one for one, _ in by_words}
    keys, scores = snapshot.path_index.best(query_words, settings.paths, allowed)
    by_path = [
        (key, score)
        for key, score in zip(keys.tolist(), scores.tolist(), strict=True)
        if key not in taken
    ]
    words_found = time.monotonic()
    meanings: list[MeaningPool] = []
    notices: tuple[str, ...] = ()
    for query in dense:
        try:
            vector = snapshot.query_vector(query)
            meanings.append(snapshot.meaning_pool(vector, settings.dense, allowed))
        except (EmbeddingFailed, EmbeddingModelMismatch) as error:
            notices = (f"Dense recall is not available, the sparse route stands alone: {error}",)
            break
    return Coarse(
        routes=(
            Route(
                "sparse",
                _candidates([*by_words, *by_path]),
                len(by_path),
                seconds=words_found - started,
            ),
            Route(
                "dense",
                _candidates(_best_of(meanings, settings.dense)),
                seconds=time.monotonic() - words_found,
            ),
        ),
        related=any(one.related for one in meanings) if meanings else bool(by_words),
        notices=notices,
        _snapshot=snapshot,
        _words=query_words,
        _meaning=meanings[0] if meanings else None,
    )


def _best_of(meanings: Sequence[MeaningPool], count: int) -> list[tuple[int, float]]:
    """Chunks by the best score that any of the queries gives them."""
    best: dict[int, float] = {}
    for meaning in meanings:
        for key, score in zip(meaning.keys.tolist(), meaning.scores.tolist(), strict=True):
            best[key] = max(score, best.get(key, -np.inf))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:count]


def _candidates(scored: Iterable[tuple[int, float]]) -> tuple[Candidate, ...]:
    return tuple(Candidate(key, chunk_id(key), score) for key, score in scored)


def fused(routes: Sequence[Sequence[Candidate]], k: int) -> list[tuple[Candidate, float]]:
    """Reciprocal rank fusion of rankings (Cormack et al. 2009), best first, ties in reading
    order. Raises ValueError for a `k` below 1."""
    if k < 1:
        raise ValueError(f"k is {k}; it must be at least 1 (60 is usual)")
    scores: dict[int, float] = {}
    known: dict[int, Candidate] = {}
    for ranking in routes:
        for rank, one in enumerate(ranking, start=1):
            scores[one.key] = scores.get(one.key, 0.0) + 1 / (k + rank)
            known.setdefault(one.key, one)
    return [
        (known[key], scores[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))
    ]


def fused_by_score(found: Coarse, settings: "Search") -> list[tuple[Candidate, float]]:
    """The routes fused as `hybrid_search` fuses (`search.fusion`), best first. Chunks that only
    their path found come with the least score of the sparse route."""
    sparse, dense = found.routes
    by_words = len(sparse.candidates) - sparse.by_path
    least = min((one.score for one in sparse.candidates[:by_words]), default=1.0)
    scores = [
        one.score if place < by_words else least for place, one in enumerate(sparse.candidates)
    ]
    keys, values = fuse(
        (_keys(dense.candidates), np.array([one.score for one in dense.candidates])),
        (_keys(sparse.candidates), np.array(scores)),
        settings,
    )
    known = {one.key: one for route in found.routes for one in route.candidates}
    return [(known[k], v) for k, v in zip(keys.tolist(), values.tolist(), strict=True)]


def _keys(candidates: Sequence[Candidate]) -> Keys:
    return np.array([one.key for one in candidates], dtype=np.int64)


def merged(routes: Sequence[Sequence[Candidate]]) -> tuple[Candidate, ...]:
    """All candidates of the routes in one list, each once, taken in turn."""
    found: dict[int, Candidate] = {}
    for place in range(max(map(len, routes), default=0)):
        for ranking in routes:
            if place < len(ranking):
                found.setdefault(ranking[place].key, ranking[place])
    return tuple(found.values())
