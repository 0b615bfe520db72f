"""Two rankings made one: scaled scores with weights, or reciprocal rank fusion.

Each route gives a pool of fixed size, so asking for more hits never reorders the first ones.
"""

import numpy as np
from numpy.typing import NDArray

from agentic_rag.config import Search
from agentic_rag.knowledge_base.fragments import Keys

Floats = NDArray[np.float64]


def fuse(
    semantic: tuple[Keys, Floats], bm25: tuple[Keys, Floats], settings: Search
) -> tuple[Keys, Floats]:
    """Keys of both pools with their fused scores, best first, ties in reading order."""
    pool = np.union1d(semantic[0], bm25[0])
    routes = []
    for keys, scores in (semantic, bm25):
        route = np.full(len(pool), -np.inf)  # what a route did not find
        route[np.searchsorted(pool, keys)] = scores
        routes.append(route)
    if settings.fusion == "rrf":
        fused = sum(reciprocal_ranks(route, settings.rrf_k) for route in routes)
    else:
        weights = (settings.semantic_weight, settings.bm25_weight)
        fused = sum(w * scaled(route) for w, route in zip(weights, routes, strict=True))
    scores = np.asarray(fused, dtype=np.float64)
    order = np.lexsort((pool, -scores))
    return pool[order], scores[order]


def scaled(scores: Floats) -> Floats:
    """Scores moved to 0-1 by their least and greatest; all 1 where they are equal.

    Minus infinity (not found) becomes 0.
    """
    found = np.isfinite(scores)
    if not found.any():
        return np.zeros_like(scores)
    low, high = scores[found].min(), scores[found].max()
    if high == low:
        return found.astype(np.float64)
    return np.where(found, (np.maximum(scores, low) - low) / (high - low), 0.0)


def reciprocal_ranks(scores: Floats, k: int) -> Floats:
    """1 / (k + rank) of each score, rank from 1; 0 for what was not found (Cormack et al. 2009)."""
    order = np.argsort(-scores, kind="stable")
    ranks = np.empty(len(scores), dtype=np.float64)
    ranks[order] = np.arange(1, len(scores) + 1)
    return np.where(np.isfinite(scores), 1.0 / (k + ranks), 0.0)
