"""BM25-Extract: the sentences a question asks for, in their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.retrieval.compression import bm25_extract
from agentic_rag.text.tokens import count_tokens

TEXT = (
    "The pump was built in 1999. It stands in hall four. The fee is 12 euros a year. "
    "Visitors come on Sundays. The fee for pupils is 6 euros."
)
ZH = "泵站建于1999年。泵站每天供水三万吨。收费为每年十二元。周日开放参观。学生收费六元。"


def test_the_sentences_with_the_questions_words_stay_in_their_order() -> None:
    assert bm25_extract(TEXT, "What is the fee?", 0.5) == (
        "The fee is 12 euros a year. The fee for pupils is 6 euros."
    )
    assert bm25_extract(ZH, "收费多少？", 0.45) == "收费为每年十二元。学生收费六元。"


@pytest.mark.parametrize("rate", [0, -1, 1.5, float("nan")])
def test_a_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        bm25_extract(TEXT, "fee", rate)


def test_a_rate_of_one_changes_nothing() -> None:
    assert bm25_extract(TEXT, "fee", 1.0) == TEXT


def test_a_text_without_the_words_keeps_its_beginning() -> None:
    assert bm25_extract(TEXT, "zebra", 0.3).startswith("The pump was built in 1999.")


def test_something_is_always_kept() -> None:
    assert bm25_extract("One sentence only.", "x", 0.1) == "One sentence only."
    assert bm25_extract("A. B.", "", 0.01) != ""
    assert bm25_extract("", "x", 0.5) == ""


@given(st.text(max_size=300), st.text(max_size=40), st.floats(0.05, 1))
def test_what_is_kept_is_of_the_text_and_no_longer(text: str, query: str, rate: float) -> None:
    kept = bm25_extract(text, query, rate)
    assert count_tokens(kept) <= count_tokens(text) + 5  # tokens at the seams
    assert all(word in text for word in kept.split())
