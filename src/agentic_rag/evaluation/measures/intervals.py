"""How sure a mean and a difference are: percentile bootstrap, exact McNemar.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", ch. 13 (percentile interval);
McNemar 1947, Psychometrika 12, in its exact, binomial form.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000  # Efron & Tibshirani: 1,000 or more for the ends of a percentile interval
CONFIDENCE = 0.95
_AT_ONCE = 1_000_000  # numbers drawn at once, so that memory stays flat however many questions


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` questions, with the ends of its 95 % interval. `n` is at least 1."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Paired:
    """Two systems on the same questions: `only_first` questions are right in the first alone,
    `only_second` in the second alone; `p` is McNemar's, two-sided and exact."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float


def estimate(values: Sequence[float], *, seed: int = 0) -> Estimate | None:
    """The mean of `values` with the percentile bootstrap interval of it; None for no values.

    The questions are drawn anew with replacement `RESAMPLES` times; the interval runs from the
    2.5th to the 97.5th percentile of the means. The same seed gives the same interval.
    """
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if np.all(array == array[0]):
        same = float(array[0])
        return Estimate(same, same, same, len(array))
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // len(array))
    means = np.concatenate(
        [
            array[rng.integers(len(array), size=(min(rows, RESAMPLES - done), len(array)))].mean(1)
            for done in range(0, RESAMPLES, rows)
        ]
    )
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Estimate(mean, float(low), float(high), len(array))


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """How two systems differ on the same questions, in the same order.

    Under the null hypothesis each of the n questions that only one gets right falls to either with
    probability 1/2, so p = min(1, 2 P(X <= min(b, c))) with X ~ Binomial(n, 1/2); 1 where n is 0.
    Raises ValueError where the two are of unlike length.
    """
    pairs = list(zip(first, second, strict=True))
    only_first = sum(1 for one, other in pairs if one and not other)
    only_second = sum(1 for one, other in pairs if other and not one)
    both = sum(1 for one, other in pairs if one and other)
    return Paired(
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=len(pairs) - both - only_first - only_second,
        p=_two_sided(only_first, only_second),
    )


def _two_sided(first: int, second: int) -> float:
    n = first + second
    term = tail = 1  # n over k, and their sum from k = 0 on
    for k in range(min(first, second)):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << n))  # whole numbers: exact, and no overflow for any n
