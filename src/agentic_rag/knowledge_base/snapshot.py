"""One pinned version of a knowledge base, with its searches and reading.

A snapshot answers alike however often it is asked, whatever a writer does meanwhile. Everything
is loaded when first needed: reading a chunk never touches a vector.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lance
import numpy as np
from lance.query import MatchQuery
from numpy.typing import NDArray

from agentic_rag.config import Search
from agentic_rag.text.document import Scalar
from agentic_rag.knowledge_base import filters, hybrid, snippets
from agentic_rag.knowledge_base.fragments import FragmentCache, Keys, chunk_id, key, keys_of
from agentic_rag.knowledge_base.head import Head
from agentic_rag.knowledge_base.keyword import KeywordIndex, split_keywords
from agentic_rag.knowledge_base.records import (
    BadQuery,
    Chunk,
    DocumentInfo,
    Filter,
    Hit,
    Mode,
    ReadResult,
    SearchResult,
)
from agentic_rag.knowledge_base.rows import document_info
from agentic_rag.knowledge_base.semantic import SemanticIndex, SentenceScores
from agentic_rag.knowledge_base.tables import open_table
from agentic_rag.models.embedder import Embedder, EmbeddingFailed
from agentic_rag.text.words import words

Mask = NDArray[np.bool_]
_SENTENCES_A_HIT = 3  # A-RAG: the top 3 x k sentences, grouped by chunk
_HIT_COLUMNS = ["document", "chunk", "source_id", "title", "section", "page", "text", "sentences"]
_CHUNK_COLUMNS = ["document", "chunk", "source_id", "title", "section", "page", "text", "tokens", "metadata"]
_ID = re.compile(r"\s*(\d{1,9})-(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class _Found:
    """A chunk on the way to becoming a hit."""

    key: int
    score: float
    snippet: Callable[[str, Sequence[snippets.Place]], snippets.Snippet]


class Snapshot:
    """A version of a knowledge base; made by `KnowledgeBase.snapshot`. Safe in several threads."""

    def __init__(
        self,
        directory: Path,
        head: Head,
        fragments: FragmentCache,
        embedder: Callable[[], Embedder],
        settings: Search,
    ) -> None:
        self.head = head
        self._directory = directory
        self._fragments = fragments
        self._embedder = embedder
        self._settings = settings
        self._lock = threading.RLock()

    # -- what is loaded, each at its first use ------------------------------------------------

    @cached_property
    def _chunks(self) -> lance.LanceDataset:
        return open_table(self._directory, "chunks", self.head.chunks)

    @cached_property
    def documents(self) -> Mapping[int, DocumentInfo]:
        """Every document by number, in order of numbers."""
        with self._lock:
            table = open_table(self._directory, "documents", self.head.documents)
            rows = sorted(table.to_table().to_pylist(), key=lambda row: row["number"])
            return {row["number"]: document_info(row) for row in rows}

    @cached_property
    def _catalog(self) -> tuple[Keys, NDArray[np.uint64]]:
        """Keys of all chunks in ascending order, and their row ids."""
        with self._lock:
            rows = self._chunks.scanner(columns=["document", "chunk"], with_row_id=True).to_table()
            keys = keys_of(rows)
            order = np.argsort(keys)
            return keys[order], rows["_rowid"].to_numpy()[order]

    @cached_property
    def _keyword_index(self) -> KeywordIndex:
        with self._lock:
            return KeywordIndex(self._fragments.texts(self._chunks))

    @cached_property
    def _semantic_index(self) -> SemanticIndex:
        with self._lock:
            table = open_table(self._directory, "sentences", self.head.sentences)
            return SemanticIndex(self._fragments.vectors(table), self._catalog[0])

    def warm(self) -> None:
        """Load now what searches need, rather than at the first of each kind."""
        _ = self.documents, self._keyword_index, self._semantic_index

    # -- searches -----------------------------------------------------------------------------

    def search(
        self, query: str, mode: Mode = "hybrid", top_k: int | None = None, where: Filter | None = None
    ) -> SearchResult:
        """Search in one of four modes. In keyword mode the words of `query` are the keywords,
        and quotes keep a phrase. Raises BadQuery."""
        if mode == "keyword":
            return self.keyword_search(split_keywords(query), top_k, where=where)
        if mode == "semantic":
            return self.semantic_search(query, top_k, where=where)
        if mode == "bm25":
            return self.bm25_search(query, top_k, where=where)
        if mode == "hybrid":
            return self.hybrid_search(query, top_k, where=where)
        raise BadQuery(f"There is no search mode '{mode}'; use keyword, semantic, bm25 or hybrid.")

    def keyword_search(
        self,
        keywords: Sequence[str] | str,
        top_k: int | None = None,
        *,
        whole_words: bool = False,
        require_all: bool = False,
        where: Filter | None = None,
    ) -> SearchResult:
        """Chunks by exact keywords: sum of count x length over the keywords (A-RAG, eq. 1).

        Case is ignored. `whole_words` concerns scripts that part words; Han text stays
        substring. Raises BadQuery.
        """
        given = [keywords] if isinstance(keywords, str) else list(keywords)
        found = self._keyword_index.search(
            given,
            self._count(top_k),
            whole_words=whole_words,
            require_all=require_all,
            allowed=self._allowed(where),
        )
        hits = self._hits(
            [
                _Found(k, s, lambda text, places: snippets.of_keywords(text, places, given, whole_words))
                for k, s in zip(found.keys, found.scores, strict=True)
            ]
        )
        return SearchResult(
            "keyword", " ".join(given), hits, tuple(given), found.counts, related=bool(hits)
        )

    def semantic_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Chunks by the cosine of their best sentence with the query.

        `related` is False where the best is no better than what off-topic queries reach here.
        Raises BadQuery, EmbeddingFailed.
        """
        query = _asked(query)
        top_k = self._count(top_k)
        scores = self._semantic_index.score(self._embedder().embed_query(query))
        found = self._semantic(scores, top_k, self._allowed_in_order(where))
        hits = self._hits(found)
        return SearchResult("semantic", query, hits, related=self._related(hits))

    def bm25_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Chunks by BM25 over their words (Lance: k1 = 1.2, b = 0.75). Raises BadQuery."""
        query = _asked(query)
        query_words = list(dict.fromkeys(words(query)))
        top_k = self._count(top_k)
        keys, scores = self._bm25(query_words, max(top_k, self._settings.pool), where)
        hits = self._hits(
            [
                _Found(int(k), float(s), lambda t, p: _lexical(t, p, query_words))
                for k, s in zip(keys[:top_k], scores[:top_k], strict=True)
            ]
        )
        return SearchResult("bm25", query, hits, tuple(query_words), related=bool(hits))

    def hybrid_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Semantic and BM25 together, by scaled scores or reciprocal ranks (settings.search).

        Where the embedder fails, BM25 answers alone and a notice says so. Raises BadQuery.
        """
        query = _asked(query)
        try:
            vector = self._embedder().embed_query(query)
        except EmbeddingFailed as error:
            result = self.bm25_search(query, top_k, where=where)
            notice = f"Semantic search is not available, BM25 answered alone: {error}"
            return SearchResult(
                "hybrid", query, result.hits, result.terms, related=result.related, notices=(notice,)
            )
        top_k = self._count(top_k)
        scores = self._semantic_index.score(vector)
        query_words = list(dict.fromkeys(words(query)))
        allowed = self._allowed_in_order(where)
        keys = self._catalog[0]
        bm25_keys, bm25_scores = self._bm25(query_words, self._settings.pool, where)
        semantic_pool = scores.best(self._settings.pool, allowed)
        bm25_pool = np.searchsorted(keys, bm25_keys)
        pool = np.union1d(semantic_pool, bm25_pool)
        fused = self._fused(scores, pool, semantic_pool, bm25_pool, bm25_scores)
        order = pool[np.lexsort((pool, -fused))]
        fused_by_position = dict(zip(pool.tolist(), fused.tolist(), strict=True))
        if top_k > len(order):  # past the pools, by meaning alone
            rest = scores.best(top_k + len(order), allowed)
            order = np.concatenate([order, rest[~np.isin(rest, pool)]])
        least = scores.threshold(_SENTENCES_A_HIT * top_k)
        found = [
            self._hybrid_found(int(keys[at]), fused_by_position.get(int(at), 0.0), scores, least, query_words)
            for at in order[:top_k]
        ]
        best = float(scores.chunks[semantic_pool[0]]) if len(semantic_pool) else None
        return SearchResult(
            "hybrid", query, self._hits(found), tuple(query_words), related=self._is_related(best)
        )

    # -- reading ------------------------------------------------------------------------------

    def read_chunk(
        self, chunk_ids: Sequence[str], *, before: int = 0, after: int = 0
    ) -> ReadResult:
        """Chunks whole, in the order asked for, each once, with `before` and `after` neighbours
        of the same document around each."""
        wanted: dict[int, None] = {}
        unknown: dict[str, str | None] = {}
        keys, _ = self._catalog
        for given in chunk_ids:
            parsed = _ID.fullmatch(given)
            chunk_key = key(int(parsed[1]), int(parsed[2])) if parsed else -1
            at = int(np.searchsorted(keys, chunk_key))
            if at == len(keys) or keys[at] != chunk_key:
                unknown[given] = self._nearest(chunk_key)
                continue
            near = keys[max(0, at - max(0, before)) : at + max(0, after) + 1]
            wanted.update(dict.fromkeys(int(k) for k in near if k >> 32 == chunk_key >> 32))
        rows = self._rows(list(wanted), _CHUNK_COLUMNS)
        return ReadResult(tuple(self._chunk(rows[k]) for k in wanted), unknown)

    def chunks(self, number: int) -> list[Chunk]:
        """Every chunk of a document, in order."""
        keys, _ = self._catalog
        first, last = np.searchsorted(keys, [key(number, 0), key(number + 1, 0)])
        wanted = [int(k) for k in keys[first:last]]
        rows = self._rows(wanted, _CHUNK_COLUMNS)
        return [self._chunk(rows[k]) for k in wanted]

    def _nearest(self, chunk_key: int) -> str | None:
        keys, _ = self._catalog
        if chunk_key < 0 or not len(keys):
            return None
        at = int(np.searchsorted(keys, chunk_key))
        near = [int(k) for k in keys[max(0, at - 1) : at + 1]]
        same = [k for k in near if k >> 32 == chunk_key >> 32]
        return chunk_id(min(same or near, key=lambda k: abs(k - chunk_key)))

    def _chunk(self, row: Mapping[str, Any]) -> Chunk:
        document = self.documents[row["document"]]
        own: dict[str, Scalar] = json.loads(row["metadata"]) if row["metadata"] else {}
        return Chunk(
            chunk_id=chunk_id(key(row["document"], row["chunk"])),
            source_id=row["source_id"],
            title=row["title"],
            uri=document.uri,
            page=row["page"],
            section=row["section"],
            text=row["text"],
            tokens=row["tokens"],
            metadata={**document.metadata, **own},
        )

    # -- parts of the searches ----------------------------------------------------------------

    def _count(self, top_k: int | None) -> int:
        top_k = self._settings.top_k if top_k is None else top_k
        if top_k < 1:
            raise BadQuery(f"{top_k} hits were asked for; ask for at least 1.")
        return top_k

    def _rows(self, keys: Sequence[int], columns: list[str]) -> dict[int, dict[str, Any]]:
        if not keys:
            return {}
        all_keys, row_ids = self._catalog
        wanted = row_ids[np.searchsorted(all_keys, keys)]
        taken = self._chunks._take_rows([int(row) for row in wanted], columns=columns)
        return {key(row["document"], row["chunk"]): row for row in taken.to_pylist()}

    def _hits(self, found: Sequence[_Found]) -> tuple[Hit, ...]:
        rows = self._rows([f.key for f in found], _HIT_COLUMNS)
        return tuple(self._hit(f, rows[f.key]) for f in found)

    def _hit(self, found: _Found, row: Mapping[str, Any]) -> Hit:
        places = [
            snippets.Place(s["start"], s["end"], s["section"], s["page"]) for s in row["sentences"]
        ]
        snippet = found.snippet(row["text"], places)
        place = snippet.place
        return Hit(
            chunk_id=chunk_id(found.key),
            source_id=row["source_id"],
            score=found.score,
            title=row["title"],
            uri=self.documents[row["document"]].uri,
            page=place.page if place else row["page"],
            section=place.section if place else row["section"],
            snippet=snippet.text,
        )

    def _semantic(self, scores: SentenceScores, top_k: int, allowed: Mask | None) -> list[_Found]:
        keys = self._catalog[0]
        least = scores.threshold(_SENTENCES_A_HIT * top_k)
        found = []
        for at in scores.best(top_k, allowed):
            matched = [sentence for sentence, _ in scores.matched(int(keys[at]), least)]
            found.append(
                _Found(
                    int(keys[at]),
                    float(scores.chunks[at]),
                    lambda t, p, matched=matched: snippets.of_sentences(t, p, matched),
                )
            )
        return found

    def _hybrid_found(
        self, chunk_key: int, score: float, scores: SentenceScores, least: float, query_words: list[str]
    ) -> _Found:
        matched = [sentence for sentence, _ in scores.matched(chunk_key, least)]

        def snippet(text: str, places: Sequence[snippets.Place]) -> snippets.Snippet:
            by_words = snippets.sentences_with_words(text, places, query_words, most=1)
            return snippets.of_sentences(text, places, list(dict.fromkeys(matched[:3] + by_words)))

        return _Found(chunk_key, score, snippet)

    def _bm25(
        self, query_words: Sequence[str], count: int, where: Filter | None
    ) -> tuple[Keys, NDArray[np.float64]]:
        """Keys and scores, best first, ties in reading order."""
        if not query_words:
            return np.empty(0, np.int64), np.empty(0, np.float64)
        allowed = self._allowed(where)
        rows = self._chunks.scanner(
            columns=["document", "chunk", "_score"],
            full_text_query=MatchQuery(" ".join(query_words), "words"),
            # With a filter every match is fetched, so that the pool is full after it.
            limit=count if allowed is None else None,
        ).to_table()
        keys, scores = keys_of(rows), rows["_score"].to_numpy().astype(np.float64)
        if allowed is not None:
            mask = allowed(keys)
            keys, scores = keys[mask], scores[mask]
        order = np.lexsort((keys, -scores))[:count]
        return keys[order], scores[order]

    def _fused(
        self,
        scores: SentenceScores,
        pool: NDArray[np.int64],
        semantic_pool: NDArray[np.int64],
        bm25_pool: NDArray[np.int64],
        bm25_scores: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        settings = self._settings
        semantic = scores.chunks[pool].astype(np.float64)
        # What only BM25 found has a cosine too, but no place in the semantic pool.
        semantic[~np.isin(pool, semantic_pool)] = -np.inf
        bm25 = np.full(len(pool), -np.inf)
        bm25[np.searchsorted(pool, bm25_pool)] = bm25_scores
        if settings.fusion == "rrf":
            k = settings.rrf_k
            return hybrid.reciprocal_ranks(semantic, k) + hybrid.reciprocal_ranks(bm25, k)
        return settings.semantic_weight * hybrid.scaled(semantic) + settings.bm25_weight * hybrid.scaled(
            bm25
        )

    def _related(self, hits: Sequence[Hit]) -> bool:
        return self._is_related(hits[0].score if hits else None)

    def _is_related(self, best: float | None) -> bool:
        limit = self.head.off_topic_score
        return best is not None and (limit is None or best > limit)

    def _allowed(self, where: Filter | None) -> Callable[[Keys], Mask] | None:
        """A function that says which chunk keys pass the filter; None where all do."""
        if where is None or not (where.paths or where.metadata):
            return None
        numbers = self._allowed_documents(where)
        by_document = np.zeros(self.head.next_number + 1, dtype=np.bool_)
        by_document[list(numbers)] = True
        if not where.metadata:
            return lambda keys: by_document[keys >> 32]
        own = self._chunks_with_metadata(where, numbers)
        return lambda keys: np.isin(keys, own)

    def _allowed_in_order(self, where: Filter | None) -> Mask | None:
        allowed = self._allowed(where)
        return None if allowed is None else allowed(self._catalog[0])

    def _allowed_documents(self, where: Filter) -> set[int]:
        if not where.paths:
            return set(self.documents)
        matcher = filters.path_matcher(where.paths)
        return {n for n, d in self.documents.items() if matcher.match_file(d.uri)}

    def _chunks_with_metadata(self, where: Filter, numbers: set[int]) -> Keys:
        rows = self._chunks.to_table(columns=["document", "chunk", "metadata"])
        documents = {n: self.documents[n].metadata for n in numbers}
        fitting = {n for n, m in documents.items() if filters.fits(m, where.metadata)}
        keep = [
            filters.fits({**documents[number], **json.loads(own)}, where.metadata)
            if own and number in documents
            else number in fitting
            for number, own in zip(
                rows["document"].to_pylist(), rows["metadata"].to_pylist(), strict=True
            )
        ]
        return keys_of(rows)[np.array(keep, dtype=np.bool_)]


def _asked(query: str) -> str:
    query = query.strip()
    if not query:
        raise BadQuery("The query is empty; say what to look for.")
    return query


def _lexical(
    text: str, places: Sequence[snippets.Place], query_words: Sequence[str]
) -> snippets.Snippet:
    wanted = snippets.sentences_with_words(text, places, query_words)
    if wanted:
        return snippets.of_sentences(text, places, wanted)
    return snippets.of_keywords(text, places, query_words)
