"""Arguments as models send them, and what is made of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.strategies.agent.arguments import (
    BadArguments,
    KeywordSearch,
    ReadChunk,
    SemanticSearch,
    understood,
)


@pytest.mark.parametrize(
    "sent",
    [
        {"query": "who built it"},
        {"input": {"query": "who built it"}},
        {"arguments": {"input": {"query": "who built it"}}},
        {"input": '{"query": "who built it"}'},
        '{"query": "who built it"}',
        '"{\\"query\\": \\"who built it\\"}"',
        '```json\n{"query": "who built it"}\n```',
        "{'query': 'who built it', 'top_k': None}",
        '{"query": "who built it"} and then I will read',
        [{"query": "who built it"}],
        {"name": "semantic_search", "arguments": {"query": "who built it"}},
        {"Query": "who built it", "color": "red"},
        {"question": "who built it"},
        {"query": ["who built it"]},
        {"query": {"text": "who built it"}},
        "who built it",
        {"query": "  who\n built it "},
        {"query": "who built it", "top_k": None},
        {"query": "who built it", "top_k": "null"},
        {"query": "who built it", "top_k": "many"},
    ],
)
def test_a_query_is_understood_however_it_is_wrapped(sent: object) -> None:
    assert understood("semantic_search", sent) == SemanticSearch("who built it")


@pytest.mark.parametrize(
    ("sent", "top_k"),
    [("5", 5), (5, 5), (5.0, 5), ("5.0", 5), ([5], 5), (0, 1), (-3, 1), (99, 20), (True, None)],
)
def test_a_number_is_understood_and_kept_within_bounds(sent: object, top_k: int | None) -> None:
    assert understood("semantic_search", {"query": "x", "top_k": sent}).top_k == top_k  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sent", "keywords"),
    [
        ({"keywords": ["Ada Brown", "bridge"]}, ("Ada Brown", "bridge")),
        ({"keywords": "Ada Brown, bridge"}, ("Ada Brown", "bridge")),
        ({"keywords": '["Ada Brown", "bridge"]'}, ("Ada Brown", "bridge")),
        ({"keyword": "Ada Brown"}, ("Ada Brown",)),
        (["Ada Brown", "bridge"], ("Ada Brown", "bridge")),
        ({"keywords": "王芳、泵站"}, ("王芳", "泵站")),
        ({"keywords": ["x", None, "", "null", "x", "X"]}, ("x",)),
        ({"keywords": [["Ada"], [1932]]}, ("Ada", "1932")),
        ({"keywords": [{"keyword": "Ada"}]}, ("Ada",)),
        ({"keywords": ['"Ada Brown"']}, ("Ada Brown",)),
        ({"query": ["Ada"]}, ("Ada",)),
        ({"keywords": ["None"]}, ("None",)),
    ],
)
def test_keywords_are_understood_in_any_shape(sent: object, keywords: tuple[str, ...]) -> None:
    assert understood("keyword_search", sent) == KeywordSearch(keywords)


@pytest.mark.parametrize(
    ("sent", "flag"), [("true", True), (1, True), ("no", False), (None, False)]
)
def test_a_flag_is_understood(sent: object, flag: bool) -> None:
    sent_whole = {"keywords": ["x"], "whole_words": sent, "require_all": sent}

    assert understood("keyword_search", sent_whole) == KeywordSearch(("x",), None, flag, flag)


@pytest.mark.parametrize(
    ("sent", "ids"),
    [
        ({"chunk_ids": ["12-3", "12-4"]}, ("12-3", "12-4")),
        ({"chunk_ids": "12-3"}, ("12-3",)),
        ({"chunk_ids": "[12-3], [12-4]"}, ("12-3", "12-4")),
        ({"chunk_ids": '["12-3"]'}, ("12-3",)),
        ({"ids": ["chunk 12–3", "12_3"]}, ("12-3",)),
        ({"chunk_id": "the one about bridges"}, ("the one about bridges",)),
        ({"chunk_ids": ["012-03"]}, ("12-3",)),
    ],
)
def test_ids_are_understood_in_any_shape(sent: object, ids: tuple[str, ...]) -> None:
    assert understood("read_chunk", sent) == ReadChunk(ids)


@pytest.mark.parametrize(("sent", "count"), [("1", 1), (9, 3), (-1, 0), (None, 0), ("null", 0)])
def test_neighbours_are_kept_within_bounds(sent: object, count: int) -> None:
    assert understood("read_chunk", {"chunk_ids": ["1-2"], "neighbors": sent}) == ReadChunk(
        ("1-2",), count
    )


@pytest.mark.parametrize(
    ("tool", "sent", "problem"),
    [
        ("semantic_search", {}, "`query` is missing"),
        ("semantic_search", None, "`query` is missing"),
        ("semantic_search", {"query": "null"}, "`query` is missing"),
        ("semantic_search", {"query": None}, "`query` is missing"),
        ("keyword_search", {"keywords": []}, "`keywords` is missing"),
        ("keyword_search", {"keywords": ["null", ""]}, "`keywords` is missing"),
        ("read_chunk", {"chunk_ids": "null"}, "`chunk_ids` is missing"),
        ("keyword_search", '{"keywords": ["Ada', "not a JSON object"),
        ("keyword_search", "[" * 5000, "not a JSON object"),
    ],
)
def test_what_cannot_be_understood_is_one_sentence(tool: str, sent: object, problem: str) -> None:
    with pytest.raises(BadArguments, match=problem):
        understood(tool, sent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
NAMED = st.dictionaries(
    st.sampled_from(["keywords", "query", "chunk_ids", "top_k", "neighbours", "input"]), JSON
)


@given(st.sampled_from(["keyword_search", "semantic_search", "read_chunk"]), JSON | NAMED)
def test_anything_is_either_understood_or_told(tool: str, sent: Any) -> None:
    for form in (sent, json.dumps(sent)):
        try:
            understood(tool, form)
        except BadArguments as problem:
            assert str(problem).endswith(".")
