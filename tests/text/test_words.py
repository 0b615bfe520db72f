"""Words for BM25: Chinese by dictionary, other scripts by their own rules."""

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.text.words import words


def test_a_long_chinese_word_comes_with_the_words_in_it() -> None:
    assert {"个人", "信息", "处理", "信息处理"} <= set(words("个人信息处理者"))


def test_accents_and_full_width_letters_stay_whole() -> None:
    assert words("Café ＡＢＣ１２３ naïve") == ["café", "abc123", "naïve"]


def test_punctuation_parts_words_and_is_dropped() -> None:
    assert words("RFC-2616, foo_bar: don't!") == ["rfc", "2616", "foo", "bar", "don", "t"]


def test_kana_and_hangul_become_overlapping_pairs() -> None:
    assert words("がんばる") == ["がん", "んば", "ばる"]
    assert words("한국어") == ["한국", "국어"]
    assert words("の") == ["の"]


def test_scripts_in_one_text_do_not_disturb_each_other() -> None:
    found = words("用API调用GPT-4o模型")
    assert {"api", "gpt", "4o", "调用", "模型"} <= set(found)


@given(st.text(max_size=200))
def test_no_word_is_empty_or_holds_white_space(text: str) -> None:
    assert all(word and not any(c.isspace() for c in word) for word in words(text))
