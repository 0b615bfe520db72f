"""BM25 over knowledge paths alone: the title, folders and headings above a chunk, not its text.

A question often names the place of its answer (EasyRAG, arXiv 2410.10315, takes six chunks so).
Chunks of one path share a score, so each path is indexed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.filters import Allowed
from agentic_rag.knowledge_base.fragments import Keys
from agentic_rag.text.words import words

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PathIndex:
    """The different paths of a version, and which of them each chunk has; `keys` ascend."""

    keys: Keys
    path_of: NDArray[np.int64]
    _index: Any  # bm25s.BM25, None where no path has a word

    def best(
        self, query_words: Sequence[str], count: int, allowed: Allowed | None = None
    ) -> tuple[Keys, Floats]:
        """Keys and scores of the `count` chunks whose paths fit best, ties in reading order; none
        whose path holds no word of the query."""
        known = [word for word in query_words if self._index and word in self._index.vocab_dict]
        if not known:
            return self.keys[:0], np.empty(0)
        scores = self._index.get_scores(known).astype(np.float64)[self.path_of]
        if allowed is not None:
            scores = np.where(allowed(self.keys), scores, 0.0)
        found = np.flatnonzero(scores > 0)
        order = found[np.lexsort((found, -scores[found]))][:count]
        return self.keys[order], scores[order]


def path_index(keys: Keys, paths: Sequence[str]) -> PathIndex:
    """The index of chunks with these keys, ascending, and these paths."""
    import bm25s

    distinct, path_of = np.unique(np.asarray(paths, dtype=object), return_inverse=True)
    tokens = [words(path) for path in distinct]
    index = None
    if any(tokens):
        index = bm25s.BM25(k1=1.5, b=0.75)
        index.index(tokens, show_progress=False)
    return PathIndex(keys, path_of.astype(np.int64), index)
