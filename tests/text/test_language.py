"""The language of a text decides its prompt."""

import pytest

from agentic_rag.text.language import is_chinese, language_code


@pytest.mark.parametrize(
    "text", ["什么是敏感个人信息？", "RAG 是什么", "API 的默认 timeout 是多少？"]
)
def test_a_question_in_chinese_with_foreign_names_is_chinese(text: str) -> None:
    assert is_chinese(text)


@pytest.mark.parametrize("text", ["What does 道 mean?", "who?", "1 + 1", "", "日本語とは何ですか"])
def test_other_questions_are_not(text: str) -> None:
    assert not is_chinese(text)


def test_kana_means_japanese() -> None:
    assert [language_code(t) for t in ("日本語です。", "中文。", "English.")] == ["ja", "zh", "en"]
