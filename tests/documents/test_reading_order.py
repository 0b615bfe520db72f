"""Lines of a picture in the order in which they are read."""

import math
from collections.abc import Sequence

from agentic_rag.documents.reading_order import TextLine, rows


def _line(text: str, left: float, top: float, width: float = 400, slope: float = 0) -> TextLine:
    corners = [(left, top), (left + width, top), (left + width, top + 20), (left, top + 20)]
    cosine, sine = math.cos(slope), math.sin(slope)
    box = tuple((x * cosine - y * sine, x * sine + y * cosine) for x, y in corners)
    return TextLine(text, 1.0, box)


def _column(name: str, left: float, top: float, count: int = 6, slope: float = 0) -> list[TextLine]:
    return [
        _line(f"{name} running text, line {n}", left, top + 30 * n, slope=slope)
        for n in range(count)
    ]


def _names(found: Sequence[str]) -> list[str]:
    return [row.split()[0] if row else "" for row in found]


def test_columns_are_read_one_after_the_other_and_a_title_across_them_first() -> None:
    title = _line("Title across both columns", 100, 10, 800)
    lines = [*_column("right", 500, 60), title, *_column("left", 50, 60)]
    assert _names(rows(lines)) == ["Title", "", *["left"] * 6, *["right"] * 6]


def test_a_heading_between_parts_both_columns_in_two() -> None:
    lines = [
        *_column("one", 50, 0),
        *_column("two", 500, 0),
        _line("Heading across", 50, 220, 850),
        *_column("three", 50, 280),
        *_column("four", 500, 280),
    ]
    order = _names(rows(lines))
    assert [name for name, before in zip(order, ["", *order], strict=False) if name != before] == [
        "one", "two", "", "Heading", "", "three", "four",
    ]  # fmt: skip


def test_three_columns() -> None:
    lines = [*_column("c", 900, 0), *_column("a", 0, 0), *_column("b", 450, 0)]
    assert _names(rows(lines)) == [*"aaaaaabbbbbbcccccc"]


def test_a_table_is_read_row_by_row() -> None:
    cells = [["项目", "单价"], ["水泵", "12,500"], ["阀门", "320"], ["电缆", "45"], ["箱", "9"]]
    lines = [
        _line(cell, 60 + 300 * column, 40 * row, 60)
        for row, line in enumerate(cells)
        for column, cell in enumerate(line)
    ]
    assert rows(lines[::-1]) == ["项目 单价", "水泵 12,500", "阀门 320", "电缆 45", "箱 9"]


def test_the_rows_of_a_page_that_was_laid_on_askew() -> None:
    lines = [
        _line(f"{side}{n}", left, 100 + 30 * n, 300, slope=math.radians(-3))
        for n in range(3)
        for side, left in (("left", 0), ("right", 1200))
    ]
    assert rows(lines) == ["left0 right0", "left1 right1", "left2 right2"]


def test_a_high_gap_ends_a_paragraph() -> None:
    lines = [_line(f"line{n}", 0, top) for n, top in enumerate((0, 30, 60, 140, 170))]
    assert rows(lines) == ["line0", "line1", "line2", "", "line3", "line4"]


def test_chinese_that_was_found_in_two_pieces_beside_a_comma_is_one() -> None:
    pieces = [_line("泵站位于北岸，", 0, 0, 150), _line("每天供水。", 155, 0, 100)]
    assert rows(pieces) == ["泵站位于北岸，每天供水。"]


def test_no_lines() -> None:
    assert rows([]) == []
