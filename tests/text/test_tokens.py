"""Token counts in the o200k vocabulary."""

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.text.tokens import count_tokens, prefix_of_tokens


def test_counts_are_those_of_o200k() -> None:
    # As tiktoken's o200k_base counts them.
    assert count_tokens("hello world") == 2
    assert count_tokens("") == 0


def test_more_tokens_than_the_encoder_takes_at_once_are_counted() -> None:
    # Each of these is several tokens: 600,000 characters, far past 200,000 tokens.
    assert count_tokens("𠮷" * 600_000) > 600_000


@given(st.text(max_size=300), st.integers(min_value=1, max_value=50))
def test_a_prefix_is_a_prefix_of_whole_characters(text: str, limit: int) -> None:
    prefix = prefix_of_tokens(text, limit)
    assert text.startswith(prefix)
    assert count_tokens(prefix) <= limit + 2 or prefix == text
