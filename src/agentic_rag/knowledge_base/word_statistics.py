"""What BM25 with parameters of one's own asks of a version: in how many chunks a word stands, which
words a chunk has, and how long chunks are."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag.knowledge_base.bm25 import chunks_with
from agentic_rag.knowledge_base.catalog import Catalog
from agentic_rag.knowledge_base.records import DocumentInfo


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """How often each word stands in a chunk, and the chunk's length in o200k tokens."""

    counts: Counter[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """Of one version. `chunks` is their number, `mean_tokens` their mean length in o200k tokens."""

    chunks: int
    mean_tokens: float
    _catalog: Catalog
    _frequencies: dict[str, int] = field(default_factory=dict)

    def frequency(self, word: str) -> int:
        """In how many chunks `word` stands, by the word index; asked of it once a word."""
        if word not in self._frequencies:
            self._frequencies[word] = chunks_with(self._catalog.table, word)
        return self._frequencies[word]

    def of_chunks(self, keys: Sequence[int]) -> dict[int, ChunkWords]:
        """The words of these chunks by key."""
        rows = self._catalog.rows(keys, ["document", "chunk", "words", "tokens"])
        return {
            k: ChunkWords(Counter(row["words"].split(" ")), row["tokens"])
            for k, row in rows.items()
        }


def word_statistics(catalog: Catalog, documents: Iterable[DocumentInfo]) -> WordStatistics:
    """The statistics of a version with this catalog and these documents."""
    chunks = len(catalog.keys)
    tokens = sum(document.tokens for document in documents)
    return WordStatistics(chunks, tokens / chunks if chunks else 0.0, catalog)
