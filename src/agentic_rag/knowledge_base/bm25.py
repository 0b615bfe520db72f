"""BM25 over the chunks' words by Lance's inverted index, whose k1 and b are fixed.

Rows added after the index was last brought up to date are scored by a scan, with the same
result; deleted rows never come back.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import lance
import numpy as np
from lance.query import MatchQuery
from numpy.typing import NDArray

from agentic_rag.knowledge_base.filters import Allowed
from agentic_rag.knowledge_base.fragments import Keys, keys_of
from agentic_rag.knowledge_base.tables import lost_word_index, reading

K1, B = 1.2, 0.75  # the index's own


def bm25(
    table: lance.LanceDataset, query_words: Sequence[str], count: int, allowed: Allowed | None
) -> tuple[Keys, NDArray[np.float64]]:
    """Keys and scores of the `count` best chunks with any of the words, ties in reading order."""
    if not query_words:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    with _searching(table):
        rows = table.scanner(
            columns=["document", "chunk", "_score"],
            full_text_query=MatchQuery(" ".join(query_words), "words"),
            # With a filter every match is fetched, so that `count` are left after it.
            limit=count if allowed is None else None,
        ).to_table()
    keys, scores = keys_of(rows), rows["_score"].to_numpy().astype(np.float64)
    if allowed is not None:
        mask = allowed(keys)
        keys, scores = keys[mask], scores[mask]
    order = np.lexsort((keys, -scores))[:count]
    return keys[order], scores[order]


def chunks_with(table: lance.LanceDataset, word: str) -> int:
    """In how many chunks `word` stands."""
    with _searching(table):
        found = table.scanner(columns=["_score"], full_text_query=MatchQuery(word, "words"))
        return int(found.to_table().num_rows)


@contextmanager
def _searching(table: lance.LanceDataset) -> Iterator[None]:
    """Tells a word index that is lost, which can be made anew, from rows that are lost."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, IndexError) as error:
        with reading(table.uri):
            for _ in table.to_batches(columns=["document", "chunk", "words"]):
                pass
        raise lost_word_index(table, error) from error
