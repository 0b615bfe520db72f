"""Several queries, each by BM25 and by vectors, fused into one ranking.

Every list of a query and a route counts with a weight: the route's by the type of the query, the
query's by its place. Lists are fused as `search.fusion` says: by their scores, scaled to 0-1, or by
reciprocal ranks (Cormack et al. 2009). Each gives a pool of fixed size, so that asking for more
hits never reorders the first ones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base import (
    BadQuery,
    EmbeddingModelMismatch,
    Filter,
    Hit,
    Snapshot,
    snippets,
)
from agentic_rag.knowledge_base.bm25 import K1, B
from agentic_rag.knowledge_base.filters import Allowed
from agentic_rag.knowledge_base.fragments import Keys
from agentic_rag.knowledge_base.hybrid import reciprocal_ranks, scaled
from agentic_rag.knowledge_base.semantic import MeaningPool
from agentic_rag.knowledge_base.snapshot import Snippeter
from agentic_rag.models.embedder import EmbeddingFailed, Vectors
from agentic_rag.retrieval.bm25 import rescored
from agentic_rag.retrieval.query_type import QueryType, query_type
from agentic_rag.text.words import words

if TYPE_CHECKING:
    from agentic_rag.config import Search, Settings

Floats = NDArray[np.float64]
_AT_ONCE = 4  # queries embedded at the same time, which matters where a server does it
_SENTENCES_A_HIT = 3  # A-RAG: the top 3 x k sentences, grouped by chunk


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A hit with its score of every route, the best over the queries; None where a route did not
    find it. `search_type` is that of the query that ranked it best, `queries` are the places of
    those that found it."""

    hit: Hit
    vector_score: float | None
    keyword_score: float | None
    fused_score: float
    rerank_score: float | None
    search_type: QueryType
    queries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """Hits, best first. `related` is False where no query found anything clearly related;
    `notices` are sentences for a person about how the search was done."""

    hits: tuple[ScoredHit, ...]
    related: bool
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Query:
    """One query and what its routes found; `meaning` is None where there is no vector for it."""

    text: str
    type: QueryType
    words: tuple[str, ...]
    by_words: tuple[Keys, Floats]
    meaning: MeaningPool | None

    def routes(self, settings: "Search") -> Iterator[tuple[float, Keys, Floats]]:
        """The weight of each route with its keys and scores."""
        semantic, bm25 = route_weights(self.type, settings)
        if self.meaning is None:
            bm25 = 1.0
        elif semantic:
            yield semantic, self.meaning.keys, self.meaning.scores
        if bm25:
            yield bm25, *self.by_words


@dataclass(frozen=True, slots=True)
class _Fused:
    """All keys found, ascending; what each query gives each of them, and whether it found it, both
    (queries, keys)."""

    keys: Keys
    shares: Floats
    finders: NDArray[np.bool_]

    def best(self, count: int) -> "_Fused":
        """The best keys, best first, ties in reading order."""
        order = np.lexsort((self.keys, -self.shares.sum(axis=0)))[:count]
        return _Fused(self.keys[order], self.shares[:, order], self.finders[:, order])


def recall(
    snapshot: Snapshot,
    queries: Sequence[str],
    *,
    top_k: int,
    where: Filter | None,
    settings: "Settings",
) -> Recalled:
    """The `top_k` best chunks for all of `queries`, of which the first is the main one.

    Blocks. Where no query can be embedded BM25 answers alone, and a notice says so. Raises BadQuery
    for no query at all, no hits, or a filter that is none.
    """
    asked = list(dict.fromkeys(stripped for query in queries if (stripped := query.strip())))
    if not asked:
        raise BadQuery("The query is empty; say what to look for.")
    if top_k < 1:
        raise BadQuery(f"{top_k} hits were asked for; ask for at least 1.")
    allowed = snapshot.allowed(where)
    found, notices = _found(snapshot, asked, allowed, settings)
    hits = _scored_hits(snapshot, found, _fused(found, settings).best(top_k))
    meanings = [query.meaning for query in found if query.meaning is not None]
    related = any(meaning.related for meaning in meanings) if meanings else bool(hits)
    return Recalled(hits, related, notices)


def route_weights(kind: QueryType, settings: "Search") -> tuple[float, float]:
    """The weights of the vectors and of BM25: as set for a meaning, the greater for BM25 for exact
    things, both alike for a mixture. A route that is off stays off."""
    semantic, bm25 = settings.semantic_weight, settings.bm25_weight
    if not semantic or not bm25:
        return semantic, bm25
    if kind == "exact":
        return min(semantic, bm25), max(semantic, bm25)
    if kind == "mixed":
        return (semantic + bm25) / 2, (semantic + bm25) / 2
    return semantic, bm25


def _found(
    snapshot: Snapshot, asked: Sequence[str], allowed: Allowed | None, settings: "Settings"
) -> tuple[list[_Query], tuple[str, ...]]:
    # No narrower than what is asked for reranking, which would go without candidates.
    pool = max(settings.search.pool, settings.rerank.candidates)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        vectors = list(threads.map(partial(_vector, snapshot), asked))
    problems = [one for one in vectors if isinstance(one, Exception)]
    found = []
    for text, vector in zip(asked, vectors, strict=True):
        query_words = tuple(dict.fromkeys(words(text)))
        by_words = _by_words(snapshot, pool, allowed, query_words, settings)
        meaning = None
        if not isinstance(vector, Exception):
            meaning = snapshot.meaning_pool(vector, pool, allowed)
        found.append(_Query(text, query_type(text), query_words, by_words, meaning))
    return found, _told(problems, len(asked))


def _vector(snapshot: Snapshot, text: str) -> Vectors | EmbeddingFailed | EmbeddingModelMismatch:
    try:
        return snapshot.query_vector(text)
    except (EmbeddingFailed, EmbeddingModelMismatch) as error:
        return error


def _by_words(
    snapshot: Snapshot,
    pool: int,
    allowed: Allowed | None,
    query_words: Sequence[str],
    settings: "Settings",
) -> tuple[Keys, Floats]:
    keys, scores = snapshot.word_pool(query_words, pool, allowed)
    k1, b = settings.workflow.bm25_k1, settings.workflow.bm25_b
    if (k1, b) != (K1, B):
        scores = rescored(keys.tolist(), query_words, snapshot.word_statistics, k1, b)
    return keys, scores


def _told(problems: Sequence[Exception], asked: int) -> tuple[str, ...]:
    if not problems:
        return ()
    if len(problems) == asked:
        return (f"Semantic search is not available, BM25 answered alone: {problems[0]}",)
    return (
        f"Semantic search failed for {len(problems)} of {asked} queries, BM25 answered those "
        f"alone: {problems[0]}",
    )


def _fused(found: Sequence[_Query], settings: "Settings") -> _Fused:
    """Weights are made to sum to 1, so that scores do not grow with the number of queries."""
    search = settings.search
    ranks = partial(reciprocal_ranks, k=search.rrf_k)
    fuse: Callable[[Floats], Floats] = ranks if search.fusion == "rrf" else scaled
    weights = [settings.workflow.main_query_weight, *[1.0] * (len(found) - 1)]
    lists = [(i, *route) for i, query in enumerate(found) for route in query.routes(search)]
    pool = np.unique(np.concatenate([keys for _, _, keys, _ in lists]))
    shares = np.zeros((len(found), len(pool)))
    finders = np.zeros(shares.shape, dtype=np.bool_)
    whole = sum(weights[i] * weight for i, weight, _, _ in lists)
    for i, weight, keys, scores in lists:
        placed = np.full(len(pool), -np.inf)  # what a list does not hold
        placed[np.searchsorted(pool, keys)] = scores
        shares[i] += weights[i] * weight / whole * fuse(placed)
        finders[i] |= np.isfinite(placed)
    return _Fused(pool, shares, finders)


def _scored_hits(
    snapshot: Snapshot, found: Sequence[_Query], ranked: _Fused
) -> tuple[ScoredHit, ...]:
    """Hits of these chunks, each with the sentences that the query which ranked it best found."""
    keys = ranked.keys.tolist()
    leaders = [found[place] for place in ranked.shares.argmax(axis=0)]
    fused = ranked.shares.sum(axis=0).tolist()
    least = {
        query.text: query.meaning.sentences.threshold(_SENTENCES_A_HIT * len(keys))
        for query in leaders
        if query.meaning is not None
    }
    hits = snapshot.hits_of(
        [
            (key, score, _snippeter(query, key, least))
            for key, score, query in zip(keys, fused, leaders, strict=True)
        ]
    )
    return tuple(
        ScoredHit(
            hit=hit,
            vector_score=_best(
                key, [(q.meaning.keys, q.meaning.scores) for q in found if q.meaning]
            ),
            keyword_score=_best(key, [query.by_words for query in found]),
            fused_score=hit.score,
            rerank_score=None,
            search_type=leader.type,
            queries=tuple(np.flatnonzero(ranked.finders[:, place]).tolist()),
        )
        for place, (hit, key, leader) in enumerate(zip(hits, keys, leaders, strict=True))
    )


def _snippeter(query: _Query, key: int, least: Mapping[str, float]) -> Snippeter:
    if query.meaning is None:
        return partial(snippets.of_words, query_words=query.words)
    wanted = query.meaning.sentences.matched(key, least[query.text])
    return partial(snippets.of_sentences_and_words, wanted=wanted, query_words=query.words)


def _best(key: int, lists: Iterable[tuple[Keys, Floats]]) -> float | None:
    """The best score that a chunk has in lists of one route."""
    found = [float(scores[keys == key][0]) for keys, scores in lists if key in keys]
    return max(found, default=None)
