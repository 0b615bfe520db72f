"""What a ranking is worth: recall, precision, reciprocal rank and nDCG. All are 0 to 1.

A ranking is a list of hits, best first, each given as the set of gold ids that it names
(`gold.ranked`): none for a wrong hit. The unit is the gold id: where it is a document, the
second hit in it is a hit, but finds nothing new.
"""

import math
from collections.abc import Sequence, Set

Ranking = Sequence[Set[str]]


def recall_at(ranking: Ranking, golds: Set[str], k: int) -> float:
    """Share of the gold ids that are among the first `k` hits. `golds` is not empty."""
    return len(_named(ranking[:k]) & golds) / len(golds)


def precision_at(ranking: Ranking, golds: Set[str], k: int) -> float:
    """Share of `k` places that hold a hit which names a gold id for the first time."""
    return sum(_gains(ranking[:k], golds)) / k


def reciprocal_rank(ranking: Ranking, golds: Set[str]) -> float:
    """1 / the place of the first right hit; 0 where there is none. (Voorhees 1999, TREC-8; its mean
    over questions is the MRR. Later right hits do not count.)"""
    places = (place for place, named in enumerate(ranking, start=1) if named & golds)
    return 1 / next(places, math.inf)


def ndcg_at(ranking: Ranking, golds: Set[str], k: int) -> float:
    """Normalised discounted cumulative gain (Järvelin & Kekäläinen 2002) with gain 1 for a hit
    that names a gold id for the first time, and discount log2(place + 1). The ideal ranking has as
    many right hits as there are gold ids, at most `k`, at its top."""
    found = sum(_discounted(_gains(ranking[:k], golds)))
    return found / sum(_discounted([1] * min(k, len(golds))))


def _named(ranking: Ranking) -> set[str]:
    return {one for named in ranking for one in named}


def _gains(ranking: Ranking, golds: Set[str]) -> list[int]:
    gains: list[int] = []
    seen: set[str] = set()
    for named in ranking:
        new = (named & golds) - seen
        gains.append(1 if new else 0)
        seen |= new
    return gains


def _discounted(gains: Sequence[int]) -> list[float]:
    return [gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1)]
