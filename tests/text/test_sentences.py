"""Sentences: nothing is lost, Chinese and English stops, lines, and limits."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.text.sentences import limited_spans, sentence_spans
from agentic_rag.text.tokens import count_tokens

MIXED = st.text(
    alphabet=st.one_of(
        st.sampled_from("。！？；…．，、”’\n .!?;:\t-#|"),
        st.sampled_from("个人信息处理者应当敏感泄露第一条"),
        st.characters(codec="utf-8", exclude_characters="\0"),
    ),
    max_size=400,
)


def sentences(text: str, layout: str = "prose") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, layout)]  # type: ignore[arg-type]


@given(MIXED, st.sampled_from(["prose", "rows", "code"]))
def test_joining_the_sentences_gives_back_the_text(text: str, layout: str) -> None:
    found = sentences(text, layout)
    assert "".join(found) == (text if text.strip() else "")
    assert all(sentence.strip() for sentence in found)


def test_chinese_stops_end_sentences_and_closing_quotes_stay() -> None:
    text = "他说：“今天不行。”然后他转身走了！难道还有别的办法吗？没有。价格是1.5元．下次再来吧。"
    assert sentences(text) == [
        "他说：“今天不行。”",
        "然后他转身走了！",
        "难道还有别的办法吗？",
        "没有。",
        "价格是1.5元．",
        "下次再来吧。",
    ]


def test_long_chinese_text_without_blanks_is_many_sentences() -> None:
    stops = "。！？；…．"
    text = "".join(f"这是第{i}个用来数的句子它有十几个字{stops[i % 6]}" for i in range(1000))
    assert 950 <= len(sentences(text)) <= 1050


def test_text_after_the_last_stop_is_kept() -> None:
    tail = "没有句号的尾巴" * 400
    assert sentences("版本是1.5的说明" + tail)[-1].endswith("尾巴")
    assert sentences("One is here. And the last words have no stop")[-1].endswith("no stop")


def test_abbreviations_do_not_end_sentences() -> None:
    assert sentences("Mr. Smith went to the U.S. yesterday. He came back.") == [
        "Mr. Smith went to the U.S. yesterday. ",
        "He came back.",
    ]


def test_list_items_and_headings_are_sentences_of_their_own() -> None:
    assert sentences("# Fees\n- one is 10\n- two is 12\nplain words\n\nlast") == [
        "# Fees\n",
        "- one is 10\n",
        "- two is 12\n",
        "plain words\n\n",
        "last",
    ]


def test_a_line_that_only_wraps_does_not_end_a_sentence() -> None:
    text = "The committee that was founded in the spring of that year met\ntwice a month. Then not."
    assert sentences(text) == [
        "The committee that was founded in the spring of that year met\ntwice a month. ",
        "Then not.",
    ]


def test_rows_are_never_joined() -> None:
    rows = [f"name: a name that is long enough to look like wrapped prose {i}\n" for i in range(5)]
    assert sentences("".join(rows), "rows") == rows


def test_code_is_cut_at_blank_lines() -> None:
    assert sentences("def a():\n    return 1\n\n\ndef b():\n    return 2\n", "code") == [
        "def a():\n    return 1\n\n\n",
        "def b():\n    return 2\n",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "漢" * 5000,
        "QUJD" * 12_500,
        "e\u0301" * 4000,
        "👨‍👩‍👧" * 1500,
        "，".join(["没有句号只有逗号的长句子"] * 600),
        "word " * 6000,
    ],
    ids=["one character", "base64", "combining marks", "joined emoji", "clauses", "words"],
)
def test_a_sentence_past_the_limit_is_cut_between_characters(text: str) -> None:
    found = limited_spans(text, sentence_spans(text), 300)
    pieces = [text[start:end] for (start, end), _ in found]
    assert "".join(pieces) == text
    assert all(piece and count_tokens(piece) <= 300 for piece in pieces)
    assert [tokens for _, tokens in found] == [count_tokens(piece) for piece in pieces]
    assert not any(unicodedata.combining(piece[0]) or piece[0] == "\u200d" for piece in pieces)


def test_a_cut_prefers_a_clause_mark() -> None:
    text = "，".join(["没有句号只有逗号的长句子"] * 200)
    pieces = [text[s:e] for (s, e), _ in limited_spans(text, [(0, len(text))], 100)]
    assert all(piece.endswith("，") for piece in pieces[:-1])


@given(MIXED, st.integers(min_value=5, max_value=60))
def test_cutting_loses_nothing_and_keeps_the_limit(text: str, limit: int) -> None:
    found = limited_spans(text, sentence_spans(text), limit)
    assert "".join(text[s:e] for (s, e), _ in found) == (text if text.strip() else "")
    for (start, end), tokens in found:
        assert end > start
        # One grapheme cluster may be longer than a tiny limit and is kept whole.
        assert tokens <= limit or end - start <= 40


@pytest.mark.parametrize(
    "sentence",
    [
        "他说：“好的。行。”然后在3.5秒内离开；第二件事（见第4页。）也办完了！",
        'Dr. Smith said "no. yes." at p. 4. Then (see fig. 2.) it went on! ',
    ],
)
def test_a_long_line_is_cut_where_a_short_one_is(sentence: str) -> None:
    few, many = sentence * 20, sentence * 400
    short = sentence_spans(few)
    long = sentence_spans(many)
    assert long[: len(short) - 2] == short[: len(short) - 2]
    assert len(long) == pytest.approx(20 * len(short), abs=20)
    assert "".join(many[start:end] for start, end in long) == many


def test_a_dot_before_an_underscore_is_part_of_a_name() -> None:
    text = "It calls os.path.join and obj.__init__ before self._setup() today. Then it ends."

    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "It calls os.path.join and obj.__init__ before self._setup() today. ",
        "Then it ends.",
    ]
