"""Which queries ask for something to the letter, which for a meaning, which for both."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag.retrieval import query_type


@pytest.mark.parametrize(
    "query",
    [
        "第三十八条",
        "第38条",
        "第一百二十条之一",
        "个人信息保护法第三十八条第二款",
        "《个人信息保护法》第三十八条",
        "Article 12",
        "article 12",
        "Articles 12 and 13",
        "Art. 6(1)(f)",
        "GDPR Art. 6(1)(f)",
        "§5",
        "§ 5",
        "“敏感个人信息”",
        "「数据处理者」",
        '"joint controller"',
        "ISO 9001",
        "ＩＳＯ　９００１",
        "GB/T 22239-2019",
        "E-0423",
        "CVE-2024-1234",
        "MH370",
        "foo_bar()",
        "foo_bar",
        "getUserName",
        "--no-cache",
        "v2.3.1",
        "10.0.12",
    ],
)
def test_what_is_named_to_the_letter_is_exact(query: str) -> None:
    assert query_type(query) == "exact"


@pytest.mark.parametrize(
    "query",
    [
        "第三十八条规定了什么？",
        "什么是“敏感个人信息”？",
        "《三体》讲的是什么故事",
        "企业通过ISO 9001认证要准备哪些材料",
        "What does Article 12 say about transparency?",
        "What does ISO 9001 require of small firms?",
        "the machine shows E-0423 after every restart",
        "why does foo_bar() raise an error when the list is empty",
        'Who directed the film "Heat" and what else?',
        "what changed for users in v2.3.1",
    ],
)
def test_an_exact_thing_within_a_sentence_makes_it_mixed(query: str) -> None:
    assert query_type(query) == "mixed"


@pytest.mark.parametrize(
    "query",
    [
        "公司想把中国顾客的名单发给国外总部，要先办什么手续？",
        "Who wrote the novel that the film is based on?",
        "a 10-year loan",
        "state-of-the-art methods",
        "In 1990 the US won; who lost?",
        "the price was 3.14 dollars",
        "it's the boss's plan",
        'a 5" pipe',
        "",
        "？",
    ],
)
def test_all_else_is_semantic(query: str) -> None:
    assert query_type(query) == "semantic"


_PIECES = st.sampled_from(
    [*"第三十条§6()_-.v“”《》Aa ？\0", '"', "--", "Art. ", "ISO ", "\ud800", "\u0301"]
)


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=300).map("".join)))
@example("a_" * 5_000)
@example("第一" * 5_000)
@example("6(1)" * 3_000)
@example('"' * 9_999)
def test_any_text_has_a_type(text: str) -> None:
    assert query_type(text) in ("exact", "mixed", "semantic")
