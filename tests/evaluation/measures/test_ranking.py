"""Measures of a ranking, by hand and over all rankings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.evaluation.measures.gold import named, ranked
from agentic_rag.evaluation.measures.ranking import (
    ndcg_at,
    precision_at,
    recall_at,
    reciprocal_rank,
)
from agentic_rag.strategies.trace import HitRecord

_GOLDS = st.sets(st.sampled_from("abcde"), min_size=1)
_RANKINGS = st.lists(st.sets(st.sampled_from("abcdexyz"), max_size=3), max_size=12)


def ranking(*ids: str) -> list[set[str]]:
    return [{one} for one in ids]


def test_two_hits_in_one_document_are_one_find() -> None:
    hits = ranking("d1", "d1")
    assert recall_at(hits, {"d1"}, 2) == 1.0
    assert precision_at(hits, {"d1"}, 2) == 0.5  # of two places, one finds something new
    assert ndcg_at(hits, {"d1"}, 2) == 1.0
    assert reciprocal_rank(hits, {"d1"}) == 1.0


def test_the_reciprocal_rank_is_that_of_the_first_right_hit() -> None:
    assert reciprocal_rank(ranking("x", "a", "b"), {"a", "b"}) == 0.5
    assert reciprocal_rank(ranking("x", "y"), {"a"}) == 0.0
    assert reciprocal_rank([], {"a"}) == 0.0


def test_a_ranking_worked_by_hand() -> None:
    hits, golds = ranking("x", "a", "y", "b"), {"a", "b", "c"}
    assert [recall_at(hits, golds, k) for k in (1, 2, 4, 10)] == [0, 1 / 3, 2 / 3, 2 / 3]
    assert [precision_at(hits, golds, k) for k in (1, 2, 4, 10)] == [0, 1 / 2, 2 / 4, 2 / 10]
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(hits, golds, 4) == pytest.approx(gain / ideal)
    assert ndcg_at(hits, golds, 2) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))


@given(_RANKINGS, _GOLDS, st.integers(1, 15))
def test_nothing_is_below_0_or_above_1(hits: list[set[str]], golds: set[str], k: int) -> None:
    for value in (
        recall_at(hits, golds, k),
        precision_at(hits, golds, k),
        ndcg_at(hits, golds, k),
        reciprocal_rank(hits, golds),
    ):
        assert 0 <= value <= 1 + 1e-12


@given(_RANKINGS, _GOLDS, st.integers(1, 14))
def test_more_places_never_lower_recall(hits: list[set[str]], golds: set[str], k: int) -> None:
    assert recall_at(hits, golds, k) <= recall_at(hits, golds, k + 1)


def hit(chunk_id: str, source_id: str | None = None, uri: str = "") -> HitRecord:
    return HitRecord(chunk_id=chunk_id, score=1, source_id=source_id, uri=uri)


@pytest.mark.parametrize(
    ("found", "gold", "is_it"),
    [
        (hit("1-5", "9", "/data/chunks.json"), "9", True),
        (hit("1-5", "9", "/data/chunks.json"), "1-5", False),  # its own id goes before ours
        (hit("12-3", None, "/docs/agent.md"), "12-3", True),
        (hit("12-3", None, "/docs/agent.md"), "2-3", False),
        (hit("12-3", None, "/docs/agent.md"), "/docs/agent.md", True),
        (hit("12-3", None, "/docs/agent.md"), "docs/agent.md", True),
        (hit("12-3", None, "/docs/agent.md"), "./agent.md", True),
        (hit("12-3", None, "/docs/agent.md"), "docs\\agent.md", True),
        (hit("12-3", None, "/docs/agent.md"), "gent.md", False),  # names, not endings of names
        (hit("12-3", None, "/制度/差旅.md"), "差旅.md", True),
        (hit("12-3", None, "/docs/Zu\u0308rich.md"), "Zürich.md", True),
        (hit("", None, "https://example.org/a"), "https://example.org/a", True),
        (hit("", None, ""), "", False),
    ],
)
def test_gold_ids_name_given_chunks_then_chunks_then_documents(
    found: HitRecord, gold: str, is_it: bool
) -> None:
    assert (named(found, [gold]) == {gold}) is is_it


def test_hits_of_one_document_come_to_recall_1() -> None:
    hits = [hit("3-1", uri="/k/d1.md"), hit("3-2", uri="/k/d1.md")]
    assert recall_at(ranked(hits, ["d1.md"]), {"d1.md"}, 2) == 1.0
