"""Matching answers with gold answers, on cases worked by hand."""

import pytest

from agentic_rag.evaluation.measures.matching import (
    contains,
    exact_match,
    f1,
    normalised,
    without_marks,
)


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        ("The Oriole Bridge.", "oriole bridge"),  # case, article, full stop
        ("an apple, a pear and the plum!", "apple pear and plum"),
        ("Theatre and Anna", "theatre and anna"),  # articles are words, not beginnings
        ("1,200", "1200"),  # as SQuAD: punctuation goes, nothing takes its place
        ("well-known", "wellknown"),
        ("U.S.", "us"),
        ("a spirit", "spirit"),
        ("“Ada” – ‘Brown’…", "ada brown"),  # punctuation beyond ASCII
        ("\uff21\uff44\uff41\u3000\uff11\uff19\uff13\uff12\u5e74", "ada 1932年"),
        ("Zürich", "zürich"),
        ("Zu\u0308rich", "zürich"),  # two ways to write it, one text
        ("王芳，青岛。", "王芳青岛"),
        ("使用 Python 3 编写", "使用python 3编写"),  # no space beside Han
        ("  two\t words\n", "two words"),
        ("The", ""),
        ("?!", ""),
        ("", ""),
    ],
)
def test_a_text_is_compared_without_case_articles_punctuation_and_width(
    text: str, compared: str
) -> None:
    assert normalised(text) == compared


@pytest.mark.parametrize(
    ("prediction", "golds", "held"),
    [
        ("It was opened in 1932 by Ada Brown.", ["Ada Brown"], True),
        ("It was opened by ADA, BROWN", ["the Ada Brown"], True),
        ("Ada only", ["Ada Brown"], False),
        ("Stanley Hall was the first.", ["G. Stanley Hall", "Stanley Hall"], True),  # an alias
        ("the artist", ["art"], True),  # as published: a substring, not a word
        ("about 1,200 clocks", ["1200"], True),
        ("anything", ["The"], False),  # nothing is left of the gold
        ("anything", [], False),
        ("", ["Ada"], False),
        ("泵站由王 芳主持设计。", ["王芳"], True),
        ("建于\uff11\uff19\uff19\uff19年", ["1999 年"], True),
    ],
)
def test_an_answer_holds_the_gold_answer(prediction: str, golds: list[str], held: bool) -> None:
    assert contains(prediction, golds) is held


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "value"),
    [
        ("The Ada Brown!", ["ada brown"], True, 1.0),
        ("Ada Brown", ["Ada Lovelace", "Brown, Ada"], False, 1.0),  # F1 knows no order
        ("by Ada Brown in 1932", ["Ada Brown"], False, 4 / 7),  # P 2/5, R 1
        ("Ada", ["Ada Brown"], False, 2 / 3),  # P 1, R 1/2
        ("yes yes", ["yes"], False, 2 / 3),  # a token counts as often as it stands: P 1/2, R 1
        ("no", ["yes"], False, 0.0),
        ("", ["yes"], False, 0.0),
        ("", ["The"], False, 0.0),  # an empty answer is never right
        ("a", ["The"], True, 1.0),  # both are empty once normalised, as published
        ("the", ["yes"], False, 0.0),
        ("青岛", ["青岛"], True, 1.0),
        ("在青岛市", ["青岛"], False, 2 / 3),  # by character: P 2/4, R 1
        ("1999年", ["1999 年"], True, 1.0),
        ("使用 Python", ["Python"], False, 0.5),  # 使, 用, python: P 1/3, R 1
    ],
)
def test_exact_match_and_f1_as_squad_has_them(
    prediction: str, golds: list[str], exact: bool, value: float
) -> None:
    assert exact_match(prediction, golds) is exact
    assert f1(prediction, golds) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("In 1932 [1]. It is long [2][3].", "In 1932 . It is long ."),
        ("In 1932 [12-3, 12-4].", "In 1932 ."),
        ("建于1999年【1】。", "建于1999年。"),
        ("She wrote [sic] and [2024 edition].", "She wrote [sic] and [2024 edition]."),
        ("An open [ bracket", "An open [ bracket"),
        ("[" * 400, "[" * 400),
        ("", ""),
    ],
)
def test_citation_marks_are_no_words_of_the_answer(text: str, words: str) -> None:
    assert without_marks(text) == words


def test_a_mark_does_not_part_the_words_of_an_answer_from_the_gold() -> None:
    assert contains(without_marks("Ada [1] Brown [2-3]"), ["Ada Brown"])
    assert not contains(without_marks("It is unknown [7]."), ["7"])
