"""What a ranking is worth: recall of the chunks that hold the answer."""

from collections.abc import Sequence, Set


def recall(ranked: Sequence[str], right: Set[str], k: int) -> float:
    """Share of the right ids among the first `k` of `ranked`; an id counts once. 0 to 1."""
    return len(right & set(ranked[:k])) / len(right)


def mean(values: Sequence[float]) -> float:
    """The mean; 0 for nothing."""
    return sum(values) / len(values) if values else 0.0


def rank_of(ranked: Sequence[str], right: Set[str]) -> int | None:
    """The rank, from 1, of the first right id; None where there is none."""
    return next((rank for rank, one in enumerate(ranked, start=1) if one in right), None)
