"""The obvious ways to do what the searches do, to be timed beside them."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import polars as pl
from numpy.typing import NDArray

from agentic_rag.knowledge_base.fragments import chunk_id, keys_of
from agentic_rag.knowledge_base.head import Head
from agentic_rag.knowledge_base.tables import open_table

Ranked = list[tuple[str, float]]  # chunk ids with scores, best first


@dataclass(frozen=True, slots=True)
class PlainTexts:
    """All chunks in reading order, in lists."""

    ids: list[str]
    texts: list[str]
    words: list[str]

    @classmethod
    def read(cls, directory: Path, head: Head) -> "PlainTexts":
        table = open_table(directory, "chunks", head.chunks)
        rows = table.to_table(columns=["document", "chunk", "text", "words"])
        keys = keys_of(rows)
        order = np.argsort(keys)
        rows = rows.take(order)
        ids = [chunk_id(int(key)) for key in keys[order]]
        return cls(ids, rows["text"].to_pylist(), rows["words"].to_pylist())

    def keyword_loop(self, keywords: Sequence[str], top_k: int = 5) -> Ranked:
        """A-RAG's way: every text is lowered and counted in, query after query."""
        lowered = [keyword.lower() for keyword in keywords]
        scored = []
        for identity, text in zip(self.ids, self.texts, strict=True):
            low = text.lower()
            score = sum(low.count(keyword) * len(keyword) for keyword in lowered)
            if score:
                scored.append((identity, float(score)))
        return sorted(scored, key=lambda pair: -pair[1])[:top_k]

    def chunks_with(self, keyword: str) -> int:
        """How many chunks contain a keyword."""
        lowered = keyword.lower()
        return sum(lowered in text.lower() for text in self.texts)


@dataclass(frozen=True, slots=True)
class PolarsTexts:
    """The lowered texts as one polars column; every row is counted in."""

    ids: list[str]
    lowered: pl.Series

    @classmethod
    def of(cls, plain: PlainTexts) -> "PolarsTexts":
        return cls(plain.ids, pl.Series([text.lower() for text in plain.texts]))

    def keyword_count(self, keywords: Sequence[str], top_k: int = 5) -> Ranked:
        scores = np.zeros(len(self.ids), dtype=np.int64)
        for keyword in keywords:
            counts = self.lowered.str.count_matches(keyword.lower(), literal=True)
            scores += counts.to_numpy().astype(np.int64) * len(keyword)
        best = np.lexsort((np.arange(len(scores)), -scores))[:top_k]
        return [(self.ids[i], float(scores[i])) for i in best if scores[i]]


@dataclass(frozen=True, slots=True)
class PlainVectors:
    """All sentence vectors in one array in memory, with the chunk of each."""

    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]

    @classmethod
    def read(cls, directory: Path, head: Head) -> "PlainVectors":
        table = open_table(directory, "sentences", head.sentences)
        rows = table.to_table(columns=["document", "chunk", "vector"], filter="vector IS NOT NULL")
        size = table.schema.field("vector").type.list_size
        parts = [
            part.flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
            for part in rows["vector"].chunks
        ]
        return cls(np.concatenate(parts), keys_of(rows))

    def nearest(self, query: NDArray[np.float32], top_k: int = 5) -> Ranked:
        """The chunks of the nearest sentences: one product, one partition."""
        scores = self.vectors @ query
        nearest = np.argpartition(-scores, 20 * top_k)[: 20 * top_k]
        best: dict[int, float] = {}
        for row in nearest[np.argsort(-scores[nearest])]:
            best.setdefault(int(self.owners[row]), float(scores[row]))
        return [(chunk_id(key), score) for key, score in list(best.items())[:top_k]]


class SqliteText:
    """SQLite's full text search (FTS5, bm25) over the same words; the file is made once."""

    def __init__(self, path: Path, plain: PlainTexts) -> None:
        if not path.exists():
            draft = path.with_suffix(".draft")
            draft.unlink(missing_ok=True)
            with closing(sqlite3.connect(draft)) as made, made:
                made.execute("CREATE VIRTUAL TABLE chunks USING fts5(words, content='')")
                made.executemany(
                    "INSERT INTO chunks(rowid, words) VALUES (?, ?)", enumerate(plain.words)
                )
            draft.replace(path)
        self._connection = sqlite3.connect(path)

    def best(self, words: Sequence[str], top_k: int = 100) -> list[tuple[int, float]]:
        wanted = " OR ".join('"' + word.replace('"', "") + '"' for word in words)
        return self._connection.execute(
            "SELECT rowid, rank FROM chunks WHERE chunks MATCH ? ORDER BY rank LIMIT ?",
            (wanted, top_k),
        ).fetchall()


def read_by_scan(table: lance.LanceDataset, document: int, chunk: int) -> str:
    """One chunk's text by a filter over the whole table."""
    rows = table.to_table(columns=["text"], filter=f"document = {document} AND chunk = {chunk}")
    return str(rows["text"][0])
