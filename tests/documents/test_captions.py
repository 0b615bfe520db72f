"""Captions and pointers: which figure a text means, and where."""

import pytest

from agentic_rag.documents.captions import caption_of, shown
from agentic_rag.documents.document import Document, Figure


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("图1 泵站组网", ("1", "泵站组网")),
        ("图 3-2：水位曲线", ("3-2", "水位曲线")),
        ("Figure 4: Limits of the pump", ("4", "Limits of the pump")),
        ("**Fig. 2.1** Sensor", ("2.1", "Sensor")),
        ("Figure 7", ("7", "")),
        ("图1所示为泵站。", None),
        ("Figure 1 shows the pump.", None),
        ("Configure 4 pumps", None),
        ("The pump", None),
        ("地图1", None),
    ],
)
def test_a_caption_is_told_from_a_sentence(line: str, expected: tuple[str, str] | None) -> None:
    assert caption_of(line) == expected


def _shown(text: str, *figures: Figure, media_type: str = "text/html") -> list[tuple[str, str]]:
    """The number of each figure, and the text before the place it belongs to."""
    document = Document("a", "A", media_type, text, figures=figures)
    return [
        (one.number, "-" if one.at is None else text[: one.at].rstrip().rpartition("\n")[2])
        for one in shown(document, figures)
    ]


def _at(text: str, before: str, name: str = "a.png", caption: str = "") -> Figure:
    return Figure(text.index(before) + len(before) + 1, name, caption)


def test_a_figure_belongs_to_the_paragraph_that_points_to_its_number() -> None:
    text = "如图1所示，水位下降。\n\n另一段。\n\n图1 水位\n\n见图2。\n\n图2 流量"
    figures = [_at(text, "另一段。"), _at(text, "见图2。")]
    assert _shown(text, *figures) == [("1", "如图1所示，水位下降。"), ("2", "见图2。")]


def test_a_pointer_without_a_number_means_the_figure_beside_it() -> None:
    text = "The wiring is shown below:\n\nText.\n\nThe curve.\n\nThe figure above tells it."
    assert _shown(text, _at(text, "below:"), _at(text, "The curve.")) == [
        ("", "The wiring is shown below:"),
        ("", "The curve."),
    ]


def test_a_figure_that_nothing_points_to_is_nowhere() -> None:
    text = "Some text.\n\nFigure 1: Logo\n\nMore text, see Figure 12."
    assert _shown(text, _at(text, "Some text.")) == [("1", "-")]


def test_of_equal_numbers_the_nearest_pointer_counts() -> None:
    text = "See Figure 1.\n\nFigure 1: One\n\nChapter two.\n\nSee Figure 1 here.\n\nFigure 1: Two"
    figures = [_at(text, "See Figure 1."), _at(text, "See Figure 1 here.")]
    assert _shown(text, *figures) == [("1", "See Figure 1."), ("1", "See Figure 1 here.")]


def test_in_markdown_the_paragraph_ends_at_an_empty_line_and_an_image_is_no_pointer() -> None:
    text = "As Figure 1 has it,\nthe pump stops.\n\n![Figure 1: Limits](a.png)\n"
    figure = Figure(len(text), "a.png", "Figure 1: Limits")
    assert _shown(text, figure, media_type="text/markdown") == [("1", "the pump stops.")]
    assert _shown("![Figure 2](b.png)\n", Figure(18, "b.png", "Figure 2"),
                  media_type="text/markdown") == [("2", "-")]  # fmt: skip


@pytest.mark.parametrize("name", ["image001.png", "Picture 3", "图片 1", "a-b_c.JPEG"])
def test_the_name_of_a_file_is_no_caption(name: str) -> None:
    document = Document("a", "A", "text/html", "Shown below.\n")
    (one,) = shown(document, [Figure(13, "a.png", name)])
    assert one.caption == ""
