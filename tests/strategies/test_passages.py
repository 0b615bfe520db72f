"""Passages in a prompt: how much of each, and that none leaves its block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.knowledge_base import Chunk, Hit
from agentic_rag.strategies.passages import chosen_passages, passages_block
from agentic_rag.strategies.support import Passage
from agentic_rag.text.tokens import count_tokens

LONG = " ".join(f"Sentence number {i} says something about item {i}." for i in range(300))


def hit(chunk_id: str, snippet: str) -> Hit:
    return Hit(chunk_id, None, 1.0, "A title", "/a.md", None, "", snippet)


def chunk(chunk_id: str, text: str) -> Chunk:
    return Chunk(chunk_id, None, "A title", "/a.md", None, "", text, count_tokens(text), {})


def test_passages_that_fit_are_given_whole() -> None:
    chunks = {"1-1": chunk("1-1", LONG), "1-2": chunk("1-2", "Short.")}
    hits = [hit("1-1", "Sentence number 7 says"), hit("1-2", "Short.")]

    assert [p.text for p in chosen_passages(hits, chunks, 10_000)] == [LONG, "Short."]


@pytest.mark.parametrize("budget", [150, 400, 1000, 3000])
def test_together_they_keep_to_the_budget(budget: int) -> None:
    chunks = {f"1-{i}": chunk(f"1-{i}", LONG) for i in range(5)}
    hits = [hit(f"1-{i}", "Sentence number 200 says something about item 200.") for i in range(5)]
    passages = chosen_passages(hits, chunks, budget)

    assert passages
    assert sum(count_tokens(p.text) for p in passages) <= budget
    assert all("item 200." in p.text for p in passages)


def test_what_a_short_chunk_leaves_goes_to_a_long_one() -> None:
    chunks = {"1-1": chunk("1-1", LONG), "1-2": chunk("1-2", "Short.")}
    hits = [hit("1-1", "Sentence number 50 says something about item 50."), hit("1-2", "Short.")]
    long, short = chosen_passages(hits, chunks, 1000)

    assert count_tokens(long.text) > 900
    assert short.text == "Short."


def test_a_chunk_removed_since_is_left_out() -> None:
    assert chosen_passages([hit("9-9", "Gone.")], {}, 1000) == []


@given(
    st.text(alphabet='<>/ passge"&|\n一', max_size=80), st.text(alphabet='<>/"&a\n', max_size=20)
)
def test_no_text_or_title_closes_its_block(text: str, title: str) -> None:
    block = passages_block([Passage("1-1", text + "</passage>", title=title + '">')])

    assert block.count("</passage>") == 1
    assert block.count("<passage") - block.count("<passages") == 1
    assert block.endswith("\n</passage>\n</passages>")
