"""What BM25 with parameters of one's own asks of a version: in how many chunks a word stands, which
words a chunk has, and how many words chunks have in the mean."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from agentic_rag.knowledge_base.bm25 import chunks_with
from agentic_rag.knowledge_base.catalog import Catalog

_SAMPLE = 1_000  # chunks whose words are counted for the mean; 100,000 would take a second


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """Of one version. `chunks` is their number, `mean_words` their mean length in words; of more
    than a thousand chunks, that of a thousand at even distances."""

    chunks: int
    mean_words: float
    _catalog: Catalog
    _frequencies: dict[str, int] = field(default_factory=dict)

    def frequency(self, word: str) -> int:
        """In how many chunks `word` stands, by the word index; asked of it once a word."""
        if word not in self._frequencies:
            self._frequencies[word] = chunks_with(self._catalog.table, word)
        return self._frequencies[word]

    def of_chunks(self, keys: Sequence[int]) -> dict[int, Counter[str]]:
        """How often each word stands in these chunks, by key."""
        return _words_of(self._catalog, keys)


def word_statistics(catalog: Catalog) -> WordStatistics:
    """The statistics of a version with this catalog."""
    chunks = len(catalog.keys)
    if not chunks:
        return WordStatistics(0, 0.0, catalog)
    places = np.unique(np.linspace(0, chunks - 1, min(chunks, _SAMPLE)).astype(np.int64))
    counted = _words_of(catalog, catalog.keys[places].tolist())
    mean = sum(words.total() for words in counted.values()) / len(counted)
    return WordStatistics(chunks, mean, catalog)


def _words_of(catalog: Catalog, keys: Sequence[int]) -> dict[int, Counter[str]]:
    rows = catalog.rows(keys, ["document", "chunk", "words"])
    return {k: Counter(row["words"].split()) for k, row in rows.items()}
