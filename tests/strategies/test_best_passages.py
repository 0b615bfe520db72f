"""Passages in the place of an answer, and the words before them where there are none."""

import pytest

from agentic_rag.strategies.best_passages import list_passages


@pytest.mark.parametrize(
    ("lead", "text"),
    [
        ("The passages nearest to the question:", "No passage was found."),
        ("与问题最接近的段落：", "没有找到任何段落。"),
        ("The model could not answer. The passages nearest:", "The model could not answer."),
        ("模型未能作答。与问题最接近的段落：", "模型未能作答。"),
        ("Not there.\n\nThe nearest passages, though unrelated:", "Not there."),
        ("None of them passes the filter.", "None of them passes the filter."),
    ],
)
def test_without_passages_no_words_lead_to_them(lead: str, text: str) -> None:
    assert list_passages(lead, ()).text == text
