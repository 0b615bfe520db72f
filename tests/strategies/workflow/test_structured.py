"""Objects read from replies: the one after the thoughts, the last that fits, or none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.strategies.structured import read_object
from agentic_rag.strategies.thoughts import ThoughtSplitter
from agentic_rag.strategies.workflow.quality import Quality
from agentic_rag.strategies.workflow.rewriting import Rewritten

EIGHTS = {name: 8 for name in ("relevance", "completeness", "accuracy", "coverage")}
ZEROS = dict.fromkeys(EIGHTS, 0)


def said(reply: str) -> str:
    """The text of a reply without its thoughts, as the stages get it."""
    splitter = ThoughtSplitter()
    pieces = [*splitter.feed(reply), *splitter.finish()]
    text = ""
    for piece in pieces:
        text = "" if piece.kind == "restart" else text + piece.text * (piece.kind == "text")
    return text


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>Draft: {json.dumps(ZEROS)}</think>\n```json\n{json.dumps(EIGHTS)}\n```",
        f"Draft {json.dumps(ZEROS)} no, better:\n{json.dumps(EIGHTS)}\nDone.",
        f'{{"result": {json.dumps(EIGHTS)}}}',
        f"Thinking aloud {json.dumps(ZEROS)}</think>{json.dumps(EIGHTS)}",
        f"{{not json}} {json.dumps(EIGHTS)} {{also not",
        json.dumps({**EIGHTS, "extra": {"relevance": 0}}),
    ],
)
def test_the_object_that_counts_is_the_last_one_that_fits(reply: str) -> None:
    quality = read_object(said(reply), Quality)
    assert quality is not None
    assert quality.total == 32


@pytest.mark.parametrize(
    "reply", ["", "{}", "[8, 8, 8, 8]", "no object", f"<think>{json.dumps(EIGHTS)}</think>"]
)
def test_without_an_object_that_fits_there_is_none(reply: str) -> None:
    assert read_object(said(reply), Quality) is None


@given(st.text(alphabet='{}[]":,aé中1 \n\\', max_size=200))
def test_no_text_breaks_the_reading(text: str) -> None:
    assert read_object(text, Quality) is None
    read_object(text, Rewritten)


@pytest.mark.parametrize(
    ("score", "read"),
    [
        (8, 8),
        (7.5, 7.5),
        ("8", 8),
        ("8/10", 8),
        ({"score": 8, "reason": "r"}, 8),
        ({"score": "9/10"}, 9),
        (0, 0),
        (10, 10),
    ],
)
def test_a_score_is_read_on_its_scale(score: object, read: float) -> None:
    quality = read_object(json.dumps({**EIGHTS, "accuracy": score}), Quality)
    assert quality is not None
    assert quality.accuracy.score == read


@pytest.mark.parametrize(
    "score",
    [
        "Of 5 points, 3 are met: score 9/10",
        "not excellent",
        "85%",
        "八分",
        "3/5",
        11,
        -1,
        True,
        None,
        [8],
        "nan",
        {"reason": "8"},
    ],
)
def test_a_score_without_its_scale_is_no_score(score: object) -> None:
    assert read_object(json.dumps({**EIGHTS, "accuracy": score}), Quality) is None


def test_a_bare_number_or_a_missing_dimension_is_no_evaluation() -> None:
    assert read_object("8", Quality) is None
    assert read_object(json.dumps({"relevance": 8, "accuracy": 8, "coverage": 8}), Quality) is None


def test_suggestions_are_kept_when_they_are_text() -> None:
    quality = read_object(json.dumps({**EIGHTS, "suggestions": ["a", 3, "", " b "]}), Quality)
    assert quality is not None
    assert quality.suggestions == ("a", "b")


def test_a_rewriting_needs_a_query_and_takes_the_rest_as_it_comes() -> None:
    whole = read_object('{"query": " a\\n b ", "variants": "c", "keywords": [1, "d"]}', Rewritten)
    assert whole is not None
    assert (whole.query, whole.variants, whole.keywords) == ("a b", ("c",), ("d",))
    assert read_object('{"query": ""}', Rewritten) is None
    assert read_object('{"query": 3}', Rewritten) is None
