"""Keyword search equals A-RAG's formula, whatever the keyword and the text."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentic_rag.knowledge_base import BadQuery, KnowledgeBase
from agentic_rag.knowledge_base import keyword as keyword_module
from agentic_rag.knowledge_base.fragments import TextPiece, key
from agentic_rag.knowledge_base.keyword import KeywordIndex, split_keywords

ALPHABET = "aAbBçİıſßΣσς的个人信息 .*+?[](){}|\\^$ＡＢ１２éé\n-_'\"%"
TEXT = st.text(alphabet=ALPHABET, max_size=40)
KEYWORD = TEXT.filter(lambda k: k.strip() != "").map(lambda k: k[:6]).filter(lambda k: k.strip())


def reference(
    texts: Sequence[str], keywords: Sequence[str], all_of: bool
) -> list[tuple[int, float]]:
    """Score(c, K) = sum over k of count(k, c) x len(k); A-RAG, eq. 1."""
    scored = []
    for number, text in enumerate(texts):
        low = text.lower()
        counts = [low.count(k.lower()) for k in keywords]
        if (all if all_of else any)(counts):
            scored.append((number, sum(n * len(k) for n, k in zip(counts, keywords, strict=True))))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def index(texts: Sequence[str]) -> KeywordIndex:
    lowered = pl.Series([text.lower() for text in texts], dtype=pl.String)
    keys = np.array([key(1, number) for number in range(len(texts))], dtype=np.int64)
    half = len(texts) // 2
    return KeywordIndex(
        [TextPiece(lowered[half:], keys[half:]), TextPiece(lowered[:half], keys[:half])]
    )


@given(st.lists(TEXT, max_size=12), st.lists(KEYWORD, min_size=1, max_size=3), st.booleans())
@settings(max_examples=300)
def test_scores_and_order_are_those_of_the_formula(
    texts: list[str], keywords: list[str], all_of: bool
) -> None:
    found = index(texts).search(keywords, 5, require_all=all_of)
    expected = reference(texts, keywords, all_of)[:5]
    assert [(k & 0xFFFFFFFF, s) for k, s in zip(found.keys, found.scores, strict=True)] == expected
    for keyword in keywords:
        assert found.counts[keyword] == sum(keyword.lower() in text.lower() for text in texts)


@pytest.mark.parametrize("few", [0, 10**9], ids=["bounded", "all counted"])
def test_the_bounds_never_hide_a_better_chunk(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_module, "_FEW", few)
    monkeypatch.setattr(keyword_module, "_BLOCK", 7)
    draw = random.Random(5)
    texts = ["".join(draw.choices("aab 的的人\n", k=draw.randrange(200))) for _ in range(600)]
    # Counts past what a bucket of the bounds can hold.
    texts += ["aa" * 500, "的" * 400, "a b" * 300]
    searched = index(texts)
    for keywords in (
        ["a"],
        ["aa"],
        ["的"],
        ["的人", "aab"],
        ["a b", "b", "a"],
        [" " + "a"],
        ["\n" + "a"],
    ):
        found = searched.search(keywords, 20)
        expected = reference(texts, keywords, False)[:20]
        assert [
            (k & 0xFFFFFFFF, s) for k, s in zip(found.keys, found.scores, strict=True)
        ] == expected


def test_asking_for_more_does_not_change_the_first_ones() -> None:
    texts = [f"{'fee ' * (i % 7)} text {i}" for i in range(50)]
    searched = index(texts)
    assert searched.search(["fee"], 20).keys[:5] == searched.search(["fee"], 5).keys


def test_whole_words_concern_scripts_that_part_words() -> None:
    texts = ["an art", "a party", "art-house", "用art做", "state_art", "部分art"]
    found = index(texts).search(["art"], 10, whole_words=True)
    assert sorted(k & 0xFFFFFFFF for k in found.keys) == [0, 2, 3, 5]
    assert found.counts == {"art": 4}
    assert index(["个人信息处理者"]).search(["信息"], 5, whole_words=True).counts == {"信息": 1}


@given(st.lists(TEXT, max_size=8), KEYWORD)
@example(["İΣ"], "ς")  # a combining mark, which lowering leaves, is no part of a word
def test_whole_words_are_counted_as_the_pattern_matches(texts: list[str], keyword: str) -> None:
    found = index(texts).search([keyword], 10, whole_words=True)
    pattern = keyword_module.word_pattern(keyword.lower())
    counts = [len(pattern.findall(text.lower())) for text in texts]
    expected = sorted((i for i, n in enumerate(counts) if n), key=lambda i: (-counts[i], i))
    assert [k & 0xFFFFFFFF for k in found.keys] == expected
    assert found.counts[keyword] == len(expected)


@pytest.mark.parametrize("keywords", [[], [""], ["fee", "  "]])
def test_an_empty_keyword_is_an_error(keywords: list[str]) -> None:
    with pytest.raises(BadQuery):
        index(["fee"]).search(keywords, 5)


def test_quotes_keep_a_phrase() -> None:
    assert split_keywords('price "late fee" “滞纳 金” 「手续费」 x') == [
        "price",
        "late fee",
        "滞纳 金",
        "手续费",
        "x",
    ]


def corpus(tmp_path: Path, items: list[dict[str, str]]) -> Path:
    path = tmp_path / "chunks.json"
    path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return path


def test_the_text_searched_is_the_text_read(kb: KnowledgeBase, tmp_path: Path) -> None:
    items = [
        {"id": "a", "title": "Hagood Mill", "text": "Hagood Mill\nIt grinds corn. HAGOOD is old."},
        {"id": "b", "text": "No title here, but Hagood once."},
        {"id": "c", "title": "Elsewhere", "text": "Nothing of the kind."},
    ]
    kb.add(corpus(tmp_path, items))
    result = kb.keyword_search(["hagood"], 5)
    assert [(hit.source_id, hit.score) for hit in result.hits] == [("a", 12.0), ("b", 6.0)]
    for hit in result.hits:
        (chunk,) = kb.read_chunk([hit.chunk_id]).chunks
        assert chunk.text.lower().count("hagood") * len("hagood") == hit.score
    assert kb.read_chunk(["1-1"]).chunks[0].text == items[0]["text"]


def test_absence_is_an_answer(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add(corpus(tmp_path, [{"id": "a", "text": "The fee is 12."}]))
    result = kb.keyword_search(["fee", "Hagood"], 5)
    assert result.counts == {"fee": 1, "Hagood": 0}
    assert kb.keyword_search("Hagood").hits == ()


def test_snippets_are_the_sentences_that_match(kb: KnowledgeBase, tmp_path: Path) -> None:
    text = "Prices\nThe fee is 12. Nobody pays. A late fee is 3. He ended. Sadly it was so."
    kb.add(corpus(tmp_path, [{"id": "a", "title": "Prices", "text": text}]))

    def snippet(*keywords: str) -> str:
        (hit,) = kb.keyword_search(keywords).hits
        return hit.snippet

    assert snippet("fee") == "The fee is 12. … A late fee is 3."
    assert snippet("prices") == "Prices"  # the title line, when only that matches
    assert snippet("ended. sadly") == "He ended. … Sadly it was so."  # both, when it spans two
    assert snippet("ended. sadly", "nobody") == "Nobody pays. … He ended. … Sadly it was so."


def test_a_keyword_search_finds_what_json_shows_for_any_keyword(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    draw = random.Random(3)
    items = [
        {"id": str(i), "title": f"T{i}", "text": f"T{i}\n" + "".join(draw.choices(ALPHABET, k=120))}
        for i in range(60)
    ]
    kb.add(corpus(tmp_path, items))
    texts = [chunk.text for chunk in kb.chunks(1)]
    for _ in range(200):
        keywords = ["".join(draw.choices(ALPHABET, k=draw.randrange(1, 4))) for _ in range(2)]
        if any(not keyword.strip() for keyword in keywords):
            continue
        found = kb.keyword_search(keywords, 10)
        expected = reference(texts, keywords, False)[:10]
        ids = [(f"1-{number + 1}", float(score)) for number, score in expected]
        assert [(hit.chunk_id, hit.score) for hit in found.hits] == ids
        assert all(re.fullmatch(r"1-\d+", hit.chunk_id) for hit in found.hits)


@pytest.mark.parametrize(
    ("name", "text", "keyword", "section", "snippet"),
    [
        ("a.md", "# Pumps\n\n## History\n\nOld.\n", "pumps", "History", "Pumps › History"),
        ("a.md", "# Pumps\n\n## History\n\nOld.\n", "history", "History", "Pumps › History"),
        (
            "a.md",
            "# Pumps\n\n## *Early* [years](x.md) {#e}\n\nOld.\n",
            "early",
            "Early years",
            "Pumps › Early years",
        ),
        ("a.md", "# 泵站\n\n## 历史\n\n很久以前。\n", "历史", "历史", "泵站 › 历史"),
        ("a.md", "# 泵站\n\n有两台水泵。\n", "泵站", "", "泵站"),
        (
            "a.md",
            "Pumps\n=====\n\nHistory\n-------\n\nOld.\n",
            "history",
            "History",
            "Pumps › History",
        ),
        (
            "a.rst",
            "Pumps\n=====\n\nHistory\n-------\n\nOld.\n",
            "pumps",
            "History",
            "Pumps › History",
        ),
        (
            "a.md",
            "# Pumps\n\n## History\n\nPumps of history.\n",
            "of history",
            "History",
            "Pumps of history.",
        ),
    ],
)
def test_a_heading_is_shown_with_its_place_and_without_its_marks(
    kb: KnowledgeBase,
    tmp_path: Path,
    name: str,
    text: str,
    keyword: str,
    section: str,
    snippet: str,
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    kb.add([tmp_path / name])

    result = kb.keyword_search([keyword], 5)

    (hit,) = result.hits
    assert (hit.section, hit.snippet) == (section, snippet)
    # What is searched and read stays as it is written.
    read = kb.read_chunk([hit.chunk_id]).chunks[0].text
    assert hit.score == read.lower().count(keyword) * len(keyword)
    assert text.splitlines()[0] in read
