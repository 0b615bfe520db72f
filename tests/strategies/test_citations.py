"""Citations in a model's text: what is a mark, what it becomes, what is matched afterwards."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.strategies.citations import CitationWriter, Cited, cite
from agentic_rag.strategies.support import Passage

BRIDGE = Passage(
    "12-3",
    "The Oriole Bridge crosses the river Tamar. It was opened in 1932 by Ada Brown. "
    "It does not carry trains.",
    title="Oriole Bridge",
    uri="/docs/bridge.md",
    page=4,
    section="History",
)
CLOCKS = Passage(
    "12-4",
    "The company was founded by Carl Meyer in Ulm. It made 1,200 clocks a year.",
    title="Meyer Clocks",
)
PUMPS = Passage(
    "7-1",
    "蓝桥泵站于1999年在青岛建成，由王芳主持设计。拒不改正的，处五万元以下罚款。",
    title="泵站",
)
PASSAGES = [BRIDGE, CLOCKS, PUMPS]


def made(raw: str) -> Cited:
    return cite(raw, PASSAGES)


def ids(cited: Cited) -> list[str]:
    return [citation.chunk_id for citation in cited.citations]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Opened in 1932 [12-3].", "Opened in 1932 [1]."),
        ("Opened in 1932 [^12-3].", "Opened in 1932 [1]."),
        ("Opened in 1932【12-3】.", "Opened in 1932[1]."),
        ("Opened in 1932 ［12－3］.", "Opened in 1932 [1]."),
        ("Opened in 1932 [[12-3]].", "Opened in 1932 [1]."),
        ("Opened in 1932 [chunk 12-3, p. 4].", "Opened in 1932 [1]."),
        ("Opened in 1932 [12-3†L1-L4].", "Opened in 1932 [1]."),
        ("Opened in 1932 [12–3].", "Opened in 1932 [1]."),
        ("Opened in 1932 [12-3](#12-3).", "Opened in 1932 [1]."),
        ("Bridges and clocks [12-3, 12-4].", "Bridges and clocks [1][2]."),
        ("Bridges and clocks [12-3; 12-4].", "Bridges and clocks [1][2]."),
        ("Bridges and clocks [12-3][12-4].", "Bridges and clocks [1][2]."),
        ("建成于1999年[来源：7-1]。", "建成于1999年[1]。"),
        ("建成于1999年【7-1、12-3】。", "建成于1999年[1][2]。"),
    ],
)
def test_ids_in_any_usual_bracket_become_numbers(raw: str, text: str) -> None:
    assert made(raw).text == text


def test_numbers_follow_the_order_of_first_appearance() -> None:
    cited = made("Clocks [12-4]. Bridge [12-3]. Clocks again [12-4]. 泵站 [7-1]。")

    assert cited.text == "Clocks [1]. Bridge [2]. Clocks again [1]. 泵站 [3]。"
    assert ids(cited) == ["12-4", "12-3", "7-1"]


@pytest.mark.parametrize(
    ("raw", "text", "removed"),
    [
        ("Bananas are blue [1].", "Bananas are blue.", ("1",)),
        ("Bananas are blue [1], [5], [7].", "Bananas are blue.", ("1", "5", "7")),
        ("Bananas are blue [1, 3].", "Bananas are blue.", ("1", "3")),
        ("香蕉是蓝色的【2】。", "香蕉是蓝色的。", ("2",)),
        ("Bananas are blue [^4] today.", "Bananas are blue today.", ("4",)),
        ("Bananas are blue [2-4].", "Bananas are blue.", ("2-4",)),
        ("Bananas are blue [99-1].", "Bananas are blue.", ("99-1",)),
        ("Bananas are blue [5](http://made.up/x).", "Bananas are blue.", ("5",)),
    ],
)
def test_marks_that_name_nothing_shown_are_removed_and_reported(
    raw: str, text: str, removed: tuple[str, ...]
) -> None:
    cited = made(raw)

    assert cited.text == text
    assert cited.removed == removed
    assert cited.citations == ()


def test_a_known_id_beside_an_unknown_one_is_kept() -> None:
    cited = made("Opened in 1932 [12-3, 99-9].")

    assert cited.text == "Opened in 1932 [1]."
    assert cited.removed == ("99-9",)


@pytest.mark.parametrize(
    "raw",
    [
        "He wrote opend [sic] there",
        "The [2024 edition] of it",
        "See [the page](http://example.org/a_(b)) there",
        "In 2-4 weeks, scores of 12-3",
        "On [2024-05-01] and at [10:30]",
        "- [ ] a box and [x] another",
        "Call `rows[12]` or `a[1]`",
        "```\nvalue = rows[1]\n```",
        "国发〔2024〕5号",
    ],
)
def test_brackets_that_are_text_stay(raw: str) -> None:
    cited = made(raw)

    assert re.sub(r" ?\[1\]$", "", cited.text) == raw
    assert cited.removed == ()


def test_the_year_of_a_chinese_ruling_keeps_the_brackets_it_is_printed_with() -> None:
    assert made("依据国发[2024]5号文件。").text == "依据国发〔2024〕5号文件。"


def test_a_sentence_without_a_citation_is_matched_and_marked_as_made_afterwards() -> None:
    cited = made("The Oriole Bridge was opened in 1932. It made clocks [12-4].")

    assert cited.text == "The Oriole Bridge was opened in 1932. [1] It made clocks [2]."
    first, second = cited.citations
    assert (first.chunk_id, first.made_by) == ("12-3", "matched")
    assert first.matched_sentences == ("The Oriole Bridge was opened in 1932.",)
    assert (second.made_by, second.matched_sentences) == ("model", ())


def test_chinese_sentences_are_matched_too() -> None:
    cited = made("蓝桥泵站1999年建成于青岛。拒不改正的，处五万元以下的罚款。")

    assert cited.text == "蓝桥泵站1999年建成于青岛。[1]拒不改正的，处五万元以下的罚款。[1]"
    assert len(cited.citations[0].matched_sentences) == 2


@pytest.mark.parametrize(
    "sentence",
    [
        "The Oriole Bridge was opened in 1933.",  # another number
        "Bob Brown opened the bridge in 1932.",  # another name
        "Carl Meyer founded the company in Bern.",
        "The Oriole Bridge carries trains.",  # the contrary
        "Bananas are yellow fruits.",
        "李明主持设计了蓝桥泵站。",
        "蓝桥泵站于1998年在青岛建成。",
        "拒不改正的，处五百万元以下罚款。",
    ],
)
def test_a_sentence_no_passage_bears_out_is_listed_as_unsupported(sentence: str) -> None:
    cited = made(sentence)

    assert cited.text == sentence
    assert cited.unsupported == (sentence,)


def test_the_snippet_is_the_sentence_that_bears_the_answer_out() -> None:
    citation = made("Ada Brown opened it in 1932 [12-3].").citations[0]

    assert citation.snippet == "It was opened in 1932 by Ada Brown."
    assert (citation.title, citation.page, citation.section) == ("Oriole Bridge", 4, "History")
    assert citation.uri == "/docs/bridge.md"


def test_a_citation_after_the_full_stop_belongs_to_the_sentence_before_it() -> None:
    cited = made("Bananas are yellow. [12-3] Carl Meyer founded the company in Ulm. [12-4]")

    assert cited.text == "Bananas are yellow. [1] Carl Meyer founded the company in Ulm. [2]"
    assert cited.unsupported == ()


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    assert made("Mr. Meyer of St. Ulm made 1.5 clocks, e.g. one [12-4].").unsupported == ()


def test_headings_and_lead_ins_need_no_source() -> None:
    assert made("## Answer\nHere is what is known:\n").unsupported == ()


def test_list_items_are_sentences_and_tables_stay_tables() -> None:
    cited = made(
        "- Opened in 1932 by Ada Brown\n- Bananas\n\n| Opened in 1932 by Ada Brown |\n|---|"
    )

    assert cited.text == (
        "- Opened in 1932 by Ada Brown [1]\n- Bananas\n\n| Opened in 1932 by Ada Brown [1] |\n|---|"
    )
    assert cited.unsupported == ("Bananas",)


_FRAGMENTS = st.sampled_from(
    [
        *("[", "]", "【", "】", "[[", "]]", "(", ")", "`", "```", "\n", " ", ". ", "。", "|", "^"),
        *(
            "[12-3]",
            "[7-1, 12-4]",
            "[9-9]",
            "[3]",
            "[sic]",
            "12-3",
            "1",
            "42",
            ",",
            "、",
            "http://x",
        ),
        *("The bridge opened in 1932", "蓝桥泵站建成", "Bananas", "Mr.", "#", "-", "[1", "9]"),
    ]
)
_TEXTS = st.lists(_FRAGMENTS | st.text(max_size=4), max_size=25).map("".join)


@given(_TEXTS)
def test_list_and_marks_always_agree(raw: str) -> None:
    cited = made(raw)
    prose = re.sub(r"```.*?(?:```|\Z)|(`+)(?!`).+?(?<!`)\1(?!`)", "", cited.text, flags=re.DOTALL)
    found = [int(n) for n in re.findall(r"\[([0-9]+)\]", prose)]

    assert [citation.number for citation in cited.citations] == list(
        range(1, len(cited.citations) + 1)
    )
    if "`" not in raw:
        assert list(dict.fromkeys(found)) == [c.number for c in cited.citations]
    assert set(cited.removed).isdisjoint(p.chunk_id for p in PASSAGES)


@given(_TEXTS, st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_the_pieces_it_comes_in_change_nothing(raw: str, sizes: list[int]) -> None:
    writer = CitationWriter(PASSAGES)
    shown, at, turn = "", 0, 0
    while at < len(raw):
        size = sizes[turn % len(sizes)]
        shown += writer.feed(raw[at : at + size])
        at, turn = at + size, turn + 1
    shown += writer.finish()

    assert shown == made(raw).text == writer.result().text


@given(st.text(alphabet="abc de.fg 。中文\n", max_size=60))
def test_text_without_marks_stays_as_it_was(raw: str) -> None:
    assert cite(raw, []).text == raw.rstrip(" \t\n")
