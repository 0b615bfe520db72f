"""A sheet of a spreadsheet as text: blocks of rows parted by empty rows, each row of a table a line
`heading: value; heading: value` that stands by itself.

Which rows are headings nobody says; the rules are in `_heading_rows`. Cells are sparse, so that
one value in the last corner of a sheet costs nothing.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agentic_rag.documents.delimited import row_line
from agentic_rag.documents.lines import Lines, row_of_cells, shown_line

# The value of a merged cell is shown in each row it covers, but no text without end.
_MOST_MERGES_AT_ONCE = 1_000
_LONGEST_FILL = 200
_MOST_FILLED = 20_000_000  # characters in a sheet
_MOST_HEADING_ROWS = 4
_LONGEST_NAME = 120
_VALUE = re.compile(
    r"[-+(]?\W{0,3}\d[\d.,\s]*\W{0,3}\w{0,3}\)?\Z|\d{4}-\d\d-\d\d.*|\d\d:\d\d.*|TRUE\Z|FALSE\Z"
)
_LABEL_END = (":", "：")


@dataclass(frozen=True, slots=True)
class Merge:
    """Cells that are one, by the first and last row and column, counted from 0; the value stands
    in the first."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(slots=True)
class Sheet:
    """A sheet as read: `rows` hold what each cell shows by row and column, counted from 0, in any
    order; `asides` are comments and text boxes."""

    name: str
    hidden: bool = False
    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)


def write_sheet(sheet: Sheet, lines: Lines) -> None:
    """Append a sheet under a heading with its name; nothing where it is empty."""
    rows = {
        number: {column: text for column, text in cells.items() if text.strip()}
        for number, cells in sheet.rows.items()
    }
    numbers = sorted(number for number, cells in rows.items() if cells)
    if not numbers and not sheet.asides:
        return
    name = shown_line(sheet.name) or "Sheet"
    lines.heading(1, f"{name} (hidden sheet)" if sheet.hidden else name)
    merges = _Merges(sheet.merges)
    for block in _blocks(numbers):
        _write_block(block, rows, merges, lines)
    for aside in sheet.asides:
        lines.paragraph(aside)


class _Merges:
    """The merged cells of a sheet by the row in which they begin."""

    def __init__(self, merges: Iterable[Merge]) -> None:
        self._by_top: dict[int, list[Merge]] = {}
        for merge in merges:
            self._by_top.setdefault(merge.top, []).append(merge)
        self._open: list[tuple[Merge, str]] = []
        self._filled = 0

    def beginning_in(self, row: int) -> Sequence[Merge]:
        """The merged cells whose first row this is."""
        return self._by_top.get(row, ())

    def fill(self, row: int, cells: Mapping[int, str]) -> Mapping[int, str]:
        """The cells of a row with the values of the merged cells that reach into it from above,
        each in its first column. Rows are asked for in order."""
        begin = self._by_top.get(row, ())
        if not begin and not self._open:
            return cells
        self._open = [(merge, text) for merge, text in self._open if merge.bottom >= row]
        filled = {merge.left: text for merge, text in self._open} | dict(cells)
        self._filled += sum(len(text) for _, text in self._open)
        if self._filled > _MOST_FILLED:
            return cells
        for merge in begin:
            text = cells.get(merge.left, "")
            if merge.bottom > row and text and len(text) <= _LONGEST_FILL:
                self._open.append((merge, text))
        del self._open[_MOST_MERGES_AT_ONCE:]
        return filled


def _blocks(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Runs of rows without an empty row between them."""
    block: list[int] = []
    for number in numbers:
        if block and number > block[-1] + 1:
            yield block
            block = []
        block.append(number)
    if block:
        yield block


def _write_block(
    block: list[int], rows: Mapping[int, Mapping[int, str]], merges: _Merges, lines: Lines
) -> None:
    # Titles and remarks: rows of one value above the table.
    first = 0
    while first < len(block) and len(rows[block[first]]) == 1:
        first += 1
    columns = {column for number in block for column in rows[number]}
    if first == len(block) and len(columns) == 1 and len(block) > 1:
        lines.records([shown_line(text) for number in block for text in rows[number].values()])
        return
    for number in block[:first]:
        merges.fill(number, rows[number])
        lines.paragraph(next(iter(rows[number].values())))
    table = block[first:]
    if not table:
        return
    count = _heading_rows(table, rows, merges)
    names = _names(table[:count], rows, merges, sorted({c for n in table for c in rows[n]}))
    for number in table[:count]:
        merges.fill(number, rows[number])
    body = [merges.fill(number, rows[number]) for number in table[count:]]
    used = {column for cells in body for column in cells}
    if count and not set(names) <= used:
        lines.paragraph(row_of_cells([names[column] for column in sorted(names)]))
    lines.records([line for cells in body if (line := _record(cells, names))])


def _record(cells: Mapping[int, str], names: Mapping[int, str]) -> str:
    columns = sorted(cells)
    if not names:
        return row_of_cells([cells[column] for column in columns])
    return row_line(
        [names.get(column) or f"column {_letters(column)}" for column in columns],
        [cells[column] for column in columns],
    )


def _heading_rows(
    table: Sequence[int], rows: Mapping[int, Mapping[int, str]], merges: _Merges
) -> int:
    """How many rows are heading: none where the first row holds a number, a date or a label that
    ends in a colon (a form), or is the only one; more than one where merged cells of the first
    reach down, or lie above several columns."""
    if len(table) < 2 or not _could_head(rows[table[0]]):
        return 0
    count = 1
    while count < min(_MOST_HEADING_ROWS, len(table) - 1):
        above = merges.beginning_in(table[count - 1])
        reaches = any(
            merge.bottom >= table[count]
            for number in table[:count]
            for merge in merges.beginning_in(number)
        )
        spans = any(merge.right > merge.left and merge.bottom == merge.top for merge in above)
        if not reaches and not (spans and _could_head(rows[table[count]])):
            break
        count += 1
    return count


def _could_head(cells: Mapping[int, str]) -> bool:
    return not any(
        len(text) > _LONGEST_NAME or _VALUE.match(text.strip()) or text.strip().endswith(_LABEL_END)
        for text in cells.values()
    ) or _are_years(cells)


def _are_years(cells: Mapping[int, str]) -> bool:
    """Whether the numbers in a row are years or months that follow each other, which head columns
    as often as not, beside at least one word."""
    numbers = [text.strip("年月 ") for text in cells.values() if _VALUE.match(text.strip())]
    if len(numbers) < 2 or len(numbers) == len(cells):
        return False
    values = [int(text) for text in numbers if text.isdecimal() and len(text) <= 4]
    return len(values) == len(numbers) and all(
        b - a == values[1] - values[0] and abs(b - a) == 1 for a, b in pairwise(values)
    )


def _names(
    heading: Sequence[int],
    rows: Mapping[int, Mapping[int, str]],
    merges: _Merges,
    columns: Sequence[int],
) -> dict[int, str]:
    """The name of each of the `columns` (sorted): its headings from above to below, a merged one
    over each column it covers."""
    parts: dict[int, list[str]] = {}
    for number in heading:
        cells = dict(rows[number])
        for merge in merges.beginning_in(number)[:_MOST_MERGES_AT_ONCE]:
            if merge.left in cells:
                covered = slice(
                    bisect_left(columns, merge.left), bisect_left(columns, merge.right + 1)
                )
                for column in columns[covered]:
                    cells.setdefault(column, cells[merge.left])
        for column, text in cells.items():
            if (line := shown_line(text)) and line not in parts.setdefault(column, []):
                parts[column].append(line)
    return {column: " ".join(found) for column, found in parts.items()}


def _letters(column: int) -> str:
    """A column as spreadsheets call it: A, Z, AA."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
