"""One pinned version of a knowledge base, with its searches and reading.

A snapshot answers alike however often it is asked, whatever a writer does meanwhile. Everything
is loaded when first needed: reading a chunk never touches a vector.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

from agentic_rag.config import Search
from agentic_rag.knowledge_base import snippets
from agentic_rag.knowledge_base.bm25 import bm25
from agentic_rag.knowledge_base.catalog import Catalog, read_catalog
from agentic_rag.knowledge_base.embedding import query_vector
from agentic_rag.knowledge_base.filters import Allowed, allowed_chunks
from agentic_rag.knowledge_base.fragments import FragmentCache, Keys, chunk_id, key, keys_of
from agentic_rag.knowledge_base.head import Head
from agentic_rag.knowledge_base.hybrid import fuse
from agentic_rag.knowledge_base.keyword import KeywordIndex, split_keywords
from agentic_rag.knowledge_base.path_index import PathIndex, path_index
from agentic_rag.knowledge_base.records import (
    BadQuery,
    Chunk,
    DocumentInfo,
    EmbeddingModelMismatch,
    Filter,
    Hit,
    Mode,
    ReadResult,
    SearchResult,
)
from agentic_rag.knowledge_base.rows import document_info
from agentic_rag.knowledge_base.semantic import MeaningPool, SemanticIndex
from agentic_rag.knowledge_base.tables import open_committed, reading
from agentic_rag.knowledge_base.word_statistics import WordStatistics, word_statistics
from agentic_rag.models.embedder import Embedder, EmbeddingFailed, Vectors
from agentic_rag.text.document import Scalar
from agentic_rag.text.words import words

# Makes a snippet of a chunk's text and the places of its sentences.
Snippeter = Callable[[str, Sequence[snippets.Place]], snippets.Snippet]
Found = tuple[int, float, Snippeter]  # chunk key, score, its snippet

_SENTENCES_A_HIT = 3  # A-RAG: the top 3 x k sentences, grouped by chunk
_SHOWN = ["document", "chunk", "source_id", "title", "section", "page", "text"]
_ID = re.compile(r"\s*(\d{1,9})-(\d{1,9})\s*")


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
    def documents(self) -> Mapping[int, DocumentInfo]:
        """Every document by number, in order of numbers."""
        with self._lock:
            table = open_committed(self._directory, self.head, "documents")
            with reading(self._directory):
                rows = sorted(table.to_table().to_pylist(), key=lambda row: row["number"])
            return {row["number"]: document_info(row) for row in rows}

    @cached_property
    def _chunks(self) -> lance.LanceDataset:
        return open_committed(self._directory, self.head, "chunks")

    @cached_property
    def _catalog(self) -> Catalog:
        with self._lock:
            return read_catalog(self._chunks)

    @cached_property
    def _keyword_index(self) -> KeywordIndex:
        with self._lock, reading(self._directory):
            return KeywordIndex(self._fragments.texts(self._chunks))

    @cached_property
    def semantic_index(self) -> SemanticIndex:
        """All vectors of this version."""
        with self._lock:
            table = open_committed(self._directory, self.head, "sentences")
            keys = self._catalog.keys
            with reading(self._directory):
                return SemanticIndex(self._fragments.vectors(table), keys)

    def warm(self) -> None:
        """Load now what semantic and BM25 search and reading need, rather than at first use.

        The texts for keyword search are left to the first one, as they fill memory.
        """
        _ = self.documents, self.semantic_index

    # -- searches -----------------------------------------------------------------------------

    def search(
        self,
        query: str,
        mode: Mode = "hybrid",
        top_k: int | None = None,
        where: Filter | None = None,
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
        substring. `top_k` is `settings.search.top_k` by default, here and below. Raises BadQuery.
        """
        given = [keywords] if isinstance(keywords, str) else list(keywords)
        found = self._keyword_index.search(
            given,
            self._count(top_k),
            whole_words=whole_words,
            require_all=require_all,
            allowed=self.allowed(where),
        )
        snippet = partial(snippets.of_keywords, keywords=given, whole_words=whole_words)
        hits = self.hits_of(
            [(k, score, snippet) for k, score in zip(found.keys, found.scores, strict=True)]
        )
        return SearchResult(
            "keyword", " ".join(given), hits, tuple(given), found.counts, related=bool(hits)
        )

    def semantic_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Chunks by the cosine of their best sentence with the query.

        `related` is False where the best is no better than what off-topic queries reach here.
        Raises BadQuery, EmbeddingFailed, EmbeddingModelMismatch.
        """
        query = _asked(query)
        top_k = self._count(top_k)
        scores = self.semantic_index.score(self.query_vector(query))
        keys, best = scores.best(top_k, self.allowed(where))
        least = scores.threshold(_SENTENCES_A_HIT * top_k)
        found: list[Found] = [
            (int(k), float(s), partial(snippets.of_sentences, wanted=scores.matched(int(k), least)))
            for k, s in zip(keys, best, strict=True)
        ]
        related = self._is_related(best[0] if len(best) else None)
        return SearchResult("semantic", query, self.hits_of(found), related=related)

    def bm25_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Chunks by BM25 over their words. Raises BadQuery."""
        query = _asked(query)
        top_k = self._count(top_k)
        query_words = list(dict.fromkeys(words(query)))
        pool = max(top_k, self._settings.pool)
        keys, scores = bm25(self._chunks, query_words, pool, self.allowed(where))
        snippet = partial(snippets.of_words, query_words=query_words)
        found: list[Found] = [
            (int(k), float(s), snippet) for k, s in zip(keys[:top_k], scores[:top_k], strict=True)
        ]
        hits = self.hits_of(found)
        return SearchResult("bm25", query, hits, tuple(query_words), related=bool(hits))

    def hybrid_search(
        self, query: str, top_k: int | None = None, *, where: Filter | None = None
    ) -> SearchResult:
        """Semantic and BM25 together, by scaled scores or reciprocal ranks (settings.search).

        Where there is no vector for the query, BM25 answers alone and a notice says so. Raises
        BadQuery.
        """
        query = _asked(query)
        try:
            vector = self.query_vector(query)
        except (EmbeddingFailed, EmbeddingModelMismatch) as error:
            notice = f"Semantic search is not available, BM25 answered alone: {error}"
            result = self.bm25_search(query, top_k, where=where)
            return replace(result, mode="hybrid", notices=(notice,))
        top_k = self._count(top_k)
        allowed = self.allowed(where)
        scores = self.semantic_index.score(vector)
        query_words = list(dict.fromkeys(words(query)))
        pool = self._settings.pool
        by_meaning = scores.best(pool, allowed)
        by_words = bm25(self._chunks, query_words, pool, allowed)
        keys, fused = fuse(by_meaning, by_words, self._settings)
        if top_k > len(keys):  # past both pools, by meaning alone
            more, _ = scores.best(top_k + len(keys), allowed)
            more = more[~np.isin(more, keys)]
            keys, fused = np.concatenate([keys, more]), np.append(fused, np.zeros(len(more)))
        least = scores.threshold(_SENTENCES_A_HIT * top_k)
        found: list[Found] = [
            (
                int(k),
                float(s),
                partial(
                    snippets.of_sentences_and_words,
                    wanted=scores.matched(int(k), least),
                    query_words=query_words,
                ),
            )
            for k, s in zip(keys[:top_k], fused[:top_k], strict=True)
        ]
        related = self._is_related(by_meaning[1][0] if len(by_meaning[1]) else None)
        return SearchResult(
            "hybrid", query, self.hits_of(found), tuple(query_words), related=related
        )

    def word_pool(
        self, query_words: Sequence[str], count: int, allowed: Allowed | None = None
    ) -> tuple[Keys, NDArray[np.float64]]:
        """Keys and BM25 scores of the `count` best chunks with any of the words."""
        return bm25(self._chunks, query_words, count, allowed)

    def query_vector(self, query: str) -> Vectors:
        """The vector of a query. Raises BadQuery, EmbeddingFailed, EmbeddingModelMismatch."""
        return query_vector(self._embedder(), _asked(query), self.head.dimensions)

    def meaning_pool(
        self, vector: Vectors, count: int, allowed: Allowed | None = None
    ) -> MeaningPool:
        """The `count` best chunks by their best sentence, with the scores of all sentences."""
        scores = self.semantic_index.score(vector)
        keys, best = scores.best(count, allowed)
        return MeaningPool(keys, best, self._is_related(best[0] if len(best) else None), scores)

    @cached_property
    def word_statistics(self) -> WordStatistics:
        """How often words stand in this version's chunks, and how long those are."""
        return word_statistics(self._catalog)

    @cached_property
    def path_index(self) -> PathIndex:
        """BM25 over the knowledge paths of this version's chunks, read once."""
        with self._lock, reading(self._directory):
            columns = ["document", "chunk", "title", "section"]
            rows = self._chunks.scanner(columns=columns).to_table()
        keys = keys_of(rows)
        order = np.argsort(keys)
        titles, sections = rows["title"].to_pylist(), rows["section"].to_pylist()
        paths = [f"{titles[i] or ''}\n{sections[i] or ''}" for i in order]
        return path_index(keys[order], paths)

    # -- reading ------------------------------------------------------------------------------

    def read_chunk(
        self,
        chunk_ids: Sequence[str],
        *,
        before: int = 0,
        after: int = 0,
        where: Filter | None = None,
    ) -> ReadResult:
        """Chunks whole, in the order asked for, each once, with `before` and `after` neighbours
        of the same document around each. Those that `where` keeps out are as unknown."""
        allowed = self.allowed(where)
        wanted: dict[int, None] = {}
        unknown: dict[str, str | None] = {}
        for given in chunk_ids:
            parsed = _ID.fullmatch(given)
            chunk_key = key(int(parsed[1]), int(parsed[2])) if parsed else None
            position = None if chunk_key is None else self._catalog.position(chunk_key)
            if chunk_key is None:
                unknown[given] = None
            elif position is None:
                near = self._catalog.nearest(chunk_key)
                unknown[given] = near if near and self._passes(near, allowed) else None
            elif allowed is not None and not allowed(np.array([chunk_key]))[0]:
                unknown[given] = None
            else:
                near_keys = np.array(self._catalog.neighbours(position, before, after))
                kept = near_keys if allowed is None else near_keys[allowed(near_keys)]
                wanted.update(dict.fromkeys(kept.tolist()))
        return ReadResult(tuple(self._read(list(wanted))), unknown)

    def chunks(self, number: int, start: int = 0, end: int | None = None) -> list[Chunk]:
        """A document's chunks in order, of those places; none for a number without a document."""
        return self._read(self._catalog.of_document(number)[start:end])

    def _passes(self, given: str, allowed: Allowed | None) -> bool:
        number, place = given.split("-")
        return allowed is None or bool(allowed(np.array([key(int(number), int(place))]))[0])

    def _read(self, keys: Sequence[int]) -> list[Chunk]:
        rows = self._catalog.rows(keys, [*_SHOWN, "tokens", "metadata"])
        return [self._chunk(rows[k]) for k in keys]

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

    def allowed(self, where: Filter | None) -> Allowed | None:
        """What says which chunk keys pass a filter; None where all do. Raises BadQuery."""
        if where is None:
            return None
        return allowed_chunks(where, self.documents, self._chunks)

    def _is_related(self, best: float | None) -> bool:
        limit = self.head.off_topic_score
        return best is not None and (limit is None or bool(best > limit))

    def hits_of(self, found: Sequence[Found]) -> tuple[Hit, ...]:
        """Hits of these chunks, each with its score and what makes its snippet."""
        rows = self._catalog.rows([k for k, _, _ in found], [*_SHOWN, "sentences"])
        return tuple(self._hit(k, score, snippet, rows[k]) for k, score, snippet in found)

    def _hit(self, chunk_key: int, score: float, snippet: Snippeter, row: Mapping[str, Any]) -> Hit:
        text, title, section = row["text"], row["title"], row["section"]
        places = [
            snippets.Place(
                s["start"],
                s["end"],
                s["section"],
                s["page"],
                snippets.heading_with_place(
                    text[s["start"] : s["end"]], title, s["section"], section
                ),
            )
            for s in row["sentences"]
        ]
        shown = snippet(text, places)
        return Hit(
            chunk_id=chunk_id(chunk_key),
            source_id=row["source_id"],
            score=score,
            title=title,
            uri=self.documents[row["document"]].uri,
            page=shown.place.page if shown.place else row["page"],
            # A title stands above all sections: what is below it says where the chunk is.
            section=(shown.place.section if shown.place else "") or section,
            snippet=shown.text,
        )


def _asked(query: str) -> str:
    query = query.strip()
    if not query:
        raise BadQuery("The query is empty; say what to look for.")
    return query
