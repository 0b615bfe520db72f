"""BM25 with parameters of one's own, for chunks that a search has found already.

    score(Q, c) = sum over q in Q of  idf(q) * f(q, c) * (k1 + 1) / (f(q, c) + k1 * norm(c))
    idf(q)      = ln(1 + (N - n(q) + 0.5) / (n(q) + 0.5))
    norm(c)     = 1 - b + b * |c| / mean

Robertson and Zaragoza 2009, with the idf that is never negative (Lucene). Q is a set of words,
f(q, c) how often q stands in chunk c, n(q) in how many of the N chunks it stands, |c| the length
of c in words and `mean` the mean length of all chunks. With the index's own k1 and b it comes to
the index's own ranking.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.word_statistics import WordStatistics

Floats = NDArray[np.float64]


def rescored(
    keys: Sequence[int], query_words: Sequence[str], statistics: WordStatistics, k1: float, b: float
) -> Floats:
    """The scores of the chunks with these keys for the words of a query, in the same order."""
    chunks = statistics.of_chunks(keys)
    idf = {word: _idf(statistics.frequency(word), statistics.chunks) for word in set(query_words)}
    scores = np.zeros(len(keys))
    for place, chunk_key in enumerate(keys):
        chunk = chunks[chunk_key]
        norm = k1 * (1 - b + b * chunk.total() / statistics.mean_words)
        scores[place] = sum(
            weight * frequency * (k1 + 1) / (frequency + norm)
            for word, weight in idf.items()
            if (frequency := chunk[word])
        )
    return scores


def _idf(frequency: int, chunks: int) -> float:
    return math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))
