"""A reply let through by whole sentences."""

import pytest

from agentic_rag.strategies.sentence_gate import SentenceGate


def through(text: str, size: int, *, cut_off: bool) -> str:
    gate = SentenceGate(open=False)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(map(gate.feed, pieces)) + gate.finish(cut_off=cut_off)


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "It opened in 1932. Dr. Brown made it, 1.5 m of it. It is",
            "It opened in 1932. Dr. Brown made it, 1.5 m of it.",
        ),
        ("It opened in 1932. It is old.", "It opened in 1932. It is old."),
        ("It opened in the", "It opened in the"),
        ("桥于1932年建成。它不通", "桥于1932年建成。"),
    ],
)
def test_of_a_reply_that_was_cut_off_the_whole_sentences_stay(
    text: str, kept: str, size: int
) -> None:
    assert through(text, size, cut_off=True).rstrip() == kept
    assert through(text, size, cut_off=False) == text


def test_an_open_gate_holds_nothing_back() -> None:
    gate = SentenceGate(open=True)
    assert gate.feed("half a sen") == "half a sen"
    assert gate.finish(cut_off=True) == ""
