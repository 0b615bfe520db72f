"""What score off-topic queries reach in a knowledge base, so that "nothing related" can be said.

The best of many sentences always beats a random pair, so the *best* scores of the queries are
what counts. The shipped queries are everyday matters in English and Chinese.
"""

from collections.abc import Iterable, Sequence
from importlib.resources import files

import numpy as np

from agentic_rag.knowledge_base.semantic import SemanticIndex
from agentic_rag.models.embedder import Embedder, Vectors
from agentic_rag.models.embedders.watched import WatchedEmbedder

_QUANTILE = 0.9
_GROWTH = 1.5  # measured anew when there are so many times more sentences


def is_due(sentences: int, measured_at: int) -> bool:
    """Whether the score should be measured (again) at this number of sentences."""
    return sentences > 0 and (not measured_at or sentences >= _GROWTH * measured_at)


def off_topic_score(index: SemanticIndex, embedder: Embedder) -> float | None:
    """The 0.9 quantile of the best scores of the off-topic queries; None without a vector.

    Raises EmbeddingFailed.
    """
    text = files(__package__).joinpath("off_topic_queries.txt").read_text(encoding="utf-8")
    best = [index.score(vector).chunks.max() for vector in _vectors(text.splitlines(), embedder)]
    found = [score for score in best if np.isfinite(score)]
    return float(np.quantile(found, _QUANTILE)) if found else None


def _vectors(queries: Sequence[str], embedder: Embedder) -> Iterable[Vectors]:
    if isinstance(embedder, WatchedEmbedder):  # in few requests, as they cost time each
        return embedder.embed_queries(queries)
    return (embedder.embed_query(query) for query in queries)
