"""Intervals and paired tests against values worked by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.evaluation.measures.intervals import Estimate, estimate, mcnemar


def test_no_values_have_no_mean() -> None:
    assert estimate([]) is None


def test_values_that_are_all_alike_have_no_spread() -> None:
    assert estimate([0.3, 0.3, 0.3]) == Estimate(0.3, 0.3, 0.3, 3)
    assert estimate([True]) == Estimate(1.0, 1.0, 1.0, 1)


def test_a_share_of_100_questions_has_about_the_interval_of_the_normal_distribution() -> None:
    found = estimate([1] * 60 + [0] * 40)
    assert found is not None
    assert found.mean == 0.6
    # sd of the mean: sqrt(.6 x .4 / 100) = 0.049; 1.96 of it is 0.096
    assert found.low == pytest.approx(0.504, abs=0.012)
    assert found.high == pytest.approx(0.696, abs=0.012)


def test_the_same_seed_gives_the_same_interval() -> None:
    chance = random.Random(3)
    values = [chance.random() for _ in range(50)]
    assert estimate(values) == estimate(values)
    assert estimate(values, seed=1) != estimate(values, seed=2)


def test_many_questions_are_drawn_in_parts() -> None:
    found = estimate([0, 1] * 2000)
    assert found is not None and (found.mean, found.n) == (0.5, 4000)
    assert found.low == pytest.approx(0.4845, abs=0.003)  # 1.96 x sqrt(.25 / 4000) = 0.0155
    assert found.high == pytest.approx(0.5155, abs=0.003)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = estimate(values)
    assert found is not None
    slack = 1e-9
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack


def pairs(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    rows = (
        [(True, True)] * both
        + [(True, False)] * first
        + [(False, True)] * second
        + [(False, False)] * neither
    )
    return [one for one, _ in rows], [other for _, other in rows]


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),  # 2 x 1/2
        (5, 0, 0.0625),  # 2 / 2^5
        (6, 0, 0.03125),
        (1, 9, 22 / 1024),  # 2 x (1 + 10) / 2^10
        (9, 1, 22 / 1024),
        (3, 3, 1.0),
        (4, 8, 2 * (1 + 12 + 66 + 220 + 495) / 4096),
    ],
)
def test_mcnemar_is_the_binomial_test_of_the_questions_that_differ(
    first: int, second: int, p: float
) -> None:
    found = mcnemar(*pairs(7, first, second, 2))
    assert (found.both, found.only_first, found.only_second, found.neither) == (7, first, second, 2)
    assert found.p == pytest.approx(p, rel=1e-12)


def test_mcnemar_of_thousands_of_questions_is_a_number() -> None:
    assert mcnemar(*pairs(0, 3000, 2500, 0)).p == pytest.approx(1.6e-11, rel=0.1)


def test_mcnemar_needs_the_same_questions() -> None:
    with pytest.raises(ValueError, match="shorter"):
        mcnemar([True], [])
