"""Cutting a page to what fits a query, in both languages."""

import time

import pytest

from agentic_rag.text.tokens import count_tokens
from agentic_rag.web_search.cutting import GAP, fair_share, scored, within

FILLER_ZH = "本市的公园在春天开放，游客可以在湖边散步，也可以租船。" * 40
FILLER_EN = "The park is open in spring, and visitors walk along the lake or hire a boat. " * 40
WAGES_ZH = "用人单位不得克扣劳动者的工资。"
WAGES_EN = "An employer must not make unlawful deductions from wages."


@pytest.mark.parametrize(
    ("text", "query", "sentence"),
    [
        (FILLER_ZH + WAGES_ZH + FILLER_ZH, "老板克扣工资怎么办", WAGES_ZH),
        (FILLER_EN + WAGES_EN + " " + FILLER_EN, "Can my boss make deductions?", WAGES_EN),
    ],
)
def test_the_sentence_that_fits_is_kept_with_its_neighbours(
    text: str, query: str, sentence: str
) -> None:
    cut = within(scored(text, query), 150)
    assert sentence in cut
    assert 75 < count_tokens(cut) <= 150
    assert GAP not in cut  # its neighbours, and theirs, are one piece of the page
    assert cut in text


def test_sentences_far_apart_stand_in_reading_order_with_a_mark_between() -> None:
    text = f"{FILLER_EN}{WAGES_EN} {FILLER_EN}Deductions for a loan need consent. {FILLER_EN}"
    cut = within(scored(text, "unlawful deductions consent"), 40)
    first, second = cut.split(GAP)
    assert first == WAGES_EN
    assert second.startswith("Deductions for a loan need consent.")


def test_a_rare_word_of_the_query_counts_more_than_one_that_stands_everywhere() -> None:
    text = f"{FILLER_EN}Herons nest there. {FILLER_EN}"
    assert "Herons" in within(scored(text, "do visitors of the park see herons"), 60)


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert within(scored(f"  {WAGES_ZH}\n\n{WAGES_EN}\n", "x"), 100) == f"{WAGES_ZH}\n\n{WAGES_EN}"
    assert within(scored(" \n", "工资"), 100) == ""


def test_without_a_word_of_the_query_the_snippet_says_where_else_the_beginning() -> None:
    text = f"# 公园\n{FILLER_ZH}{WAGES_ZH}{FILLER_ZH}"
    found = scored(text, "may my boss keep my pay", "不得克扣劳动者的工资")
    assert not found.fits
    assert WAGES_ZH in within(found, 120)
    assert within(scored(text, "zzz"), 120).startswith("# 公园")


def test_a_sentence_longer_than_the_limit_is_cut_and_not_left_out() -> None:
    for text in ("工资" * 2_000, "wages " * 2_000, "x" * 50_000):
        cut = within(scored(text, "工资 wages"), 50)
        assert 0 < count_tokens(cut) <= 50


def test_a_page_of_one_endless_line_is_cut_in_seconds() -> None:
    line = FILLER_ZH * 300
    began = time.monotonic()
    cut = within(scored(f"{line}{WAGES_ZH}{line}", "克扣工资"), 200)
    assert time.monotonic() - began < 15  # without windows it takes half a minute
    assert WAGES_ZH in cut


@pytest.mark.parametrize(
    ("sizes", "total", "share"),
    [
        ([1200, 1200], 4000, 1200),
        ([2000, 2000, 2000, 2000], 4000, 1000),
        ([100, 100, 3000, 3000, 3000], 4000, 1200),
        ([100, 700, 3000, 3000, 3000], 3200, 800),
        ([], 4000, 1200),
    ],
)
def test_what_short_texts_leave_goes_to_the_long_ones(
    sizes: list[int], total: int, share: int
) -> None:
    assert fair_share(sizes, 1200, total) == share
    assert sum(min(size, share) for size in sizes) <= total
