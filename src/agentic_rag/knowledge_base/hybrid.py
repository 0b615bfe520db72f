"""Two rankings made one: scaled scores with weights, or reciprocal rank fusion.

Each route gives a pool of fixed size, so asking for more hits never reorders the first ones.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def scaled(scores: Floats) -> Floats:
    """Scores moved to 0-1 by their least and greatest; all 1 where they are equal.

    Minus infinity (no score) becomes 0.
    """
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return np.zeros_like(scores)
    low, high = finite.min(), finite.max()
    if high == low:
        return np.where(np.isfinite(scores), 1.0, 0.0)
    return np.where(np.isfinite(scores), (np.maximum(scores, low) - low) / (high - low), 0.0)


def reciprocal_ranks(scores: Floats, k: int) -> Floats:
    """1 / (k + rank) of each score, rank from 1; 0 without one (Cormack et al. 2009)."""
    order = np.argsort(-scores, kind="stable")
    ranks = np.empty(len(scores), dtype=np.float64)
    ranks[order] = np.arange(1, len(scores) + 1)
    return np.where(np.isfinite(scores), 1.0 / (k + ranks), 0.0)
