"""Thoughts never reach the answer, however their tags come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.strategies.thoughts import ThoughtSplitter


def told(pieces: list[str]) -> tuple[str, str, bool]:
    """Text, thoughts, and whether the thoughts were never closed."""
    splitter = ThoughtSplitter()
    text = thoughts = ""
    found = [piece for fed in pieces for piece in splitter.feed(fed)] + splitter.finish()
    for piece in found:
        if piece.kind == "restart":
            text = ""
        elif piece.kind == "text":
            text += piece.text
        else:
            thoughts += piece.text
    return text, thoughts, splitter.unclosed


CASES = [
    ("<think>So: 1933?</think>It was 1932.", "It was 1932.", "So: 1933?", False),
    ("\n<think>\nhm\n</think>\n\nIt was 1932.", "It was 1932.", "\nhm\n", False),
    ("So it is 1933.</think>It was 1932.", "It was 1932.", "So it is 1933.", False),
    ("<think>So it is 19", "", "So it is 19", True),
    ("<think>a</think>One. <think>b</think>Two.", "One. Two.", "ab", False),
    ("<THINK>a</Think>One.", "One.", "a", False),
    ("It says `<think>plan</think>` here.", "It says `<think>plan</think>` here.", "", False),
    ('It quotes "</think>" once.', 'It quotes "</think>" once.', "", False),
    ("```\n<think>\n```\ndone", "```\n<think>\n```\ndone", "", False),
    ("1 < 2 and <thin air>", "1 < 2 and <thin air>", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "text", "thoughts", "unclosed"), CASES)
def test_thoughts_are_told_from_text(raw: str, text: str, thoughts: str, unclosed: bool) -> None:
    assert told([raw]) == (text, thoughts, unclosed)


@given(st.sampled_from(CASES), st.lists(st.integers(1, 4), min_size=1, max_size=40))
def test_tags_split_over_pieces_are_still_tags(
    case: tuple[str, str, str, bool], sizes: list[int]
) -> None:
    raw, *expected = case
    pieces, at = [], 0
    while at < len(raw):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(raw[at : at + size])
        at += size

    assert told(pieces) == tuple(expected)
