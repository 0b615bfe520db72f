"""Sheets of xlsx, xlsm and xltx files (ECMA-376 part 1, 18), row by row.

Read here and not by a library: the ones that are fast build a rectangle from the first cell to the
last, which a file of two cells can make 16 billion cells large, and give values without their
formats; the others know the formats and take many times as long.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.drawings import body_text, chart_titles
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.number_format import BUILT_IN, shown_number
from agentic_rag.documents.office_package import Package, relation_id
from agentic_rag.documents.safe_xml import (
    Element,
    attribute,
    child,
    children,
    descendants,
    elements,
    local,
)
from agentic_rag.documents.sheet import Merge, Sheet

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
# A text that is stored once may be shown in a million cells. Ten million short ones pass.
_MOST_SIZE = 500_000_000
_CELL_SIZE = 30
_LAST_COLUMN = 16_383
_LAST_ROW = 1_048_575


@dataclass(slots=True)
class Workbook:
    """The sheets of a file, how many cells hold a formula that no program has calculated, and
    how much is shown: characters, and something for each cell."""

    sheets: list[Sheet]
    uncalculated: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all sheets of a workbook share."""

    strings: list[str]
    formats: list[str]
    epoch_1904: bool


def read_xlsx(package: Package) -> Workbook:
    """The sheets of an opened file. Raises UnreadableDocument."""
    main = package.main_part()
    root = package.xml(main)
    relations = package.relations(main)
    properties = child(root, "workbookPr")
    shared = _Shared(
        _strings(package, main),
        _formats(package, main),
        properties is not None and attribute(properties, "date1904") in ("1", "true"),
    )
    workbook = Workbook([])
    listed = child(root, "sheets")
    for entry in () if listed is None else children(listed, "sheet"):
        relation = relations.get(relation_id(entry))
        data = package.bytes_of(relation.target) if relation else None
        if relation is None or data is None:
            package.damaged.append(attribute(entry, "name"))
            continue
        sheet = Sheet(attribute(entry, "name"), attribute(entry, "state", "visible") != "visible")
        _read_cells(package.uri, data, shared, sheet, workbook)
        sheet.asides = list(_asides(package, relation.target))
        workbook.sheets.append(sheet)
    return workbook


def _read_cells(uri: str, data: bytes, shared: _Shared, sheet: Sheet, workbook: Workbook) -> None:
    number = -1
    for element in elements(uri, data, "row", "mergeCell"):
        if local(element) == "mergeCell":
            if merge := _merge(attribute(element, "ref")):
                sheet.merges.append(merge)
            continue
        given = element.get("r", "")
        number = int(given) - 1 if given.isdecimal() and len(given) < 8 else number + 1
        cells: dict[int, str] = {}
        column = -1
        for cell in element:
            place = _REFERENCE.match(cell.get("r", ""))
            column = _column(place[1]) if place else column + 1
            text, calculated = _cell(cell, shared)
            workbook.uncalculated += not calculated
            if text:
                cells[column] = text
                workbook.size += len(text) + _CELL_SIZE
        if workbook.size > _MOST_SIZE:
            raise UnreadableDocument(
                f"'{file_name(uri)}' shows more text than is read of one file; "
                "save each of its sheets as a file of its own"
            )
        if cells:
            sheet.rows.setdefault(number, {}).update(cells)


def _cell(cell: Element, shared: _Shared) -> tuple[str, bool]:
    """What a cell shows, and whether its formula, if it has one, was ever calculated."""
    kind = cell.get("t", "n")
    value = formula = None
    for inner in cell:
        name = local(inner)
        if name == "v":
            value = inner.text
        elif name == "is":
            return _rich_text(inner), True
        elif name == "f":
            formula = inner
    if value is None or not value.strip():
        return "", formula is None or kind == "str"
    if kind == "s":
        index = int(value) if value.strip().isdecimal() else -1
        return (shared.strings[index] if 0 <= index < len(shared.strings) else ""), True
    if kind == "b":
        return ("FALSE" if value.strip() == "0" else "TRUE"), True
    if kind == "d":
        return value.strip().replace("T00:00:00", "").replace("T", " ").rstrip("Z"), True
    if kind != "n":
        return _unescaped(value), True
    try:
        number = float(value)
    except ValueError:
        return value, True
    style = cell.get("s", "0")
    index = int(style) if style.isdecimal() and len(style) < 7 else 0
    code = shared.formats[index] if index < len(shared.formats) else ""
    return shown_number(number, code, shared.epoch_1904), True


def _strings(package: Package, main: str) -> list[str]:
    for name in package.related(main, "sharedStrings"):
        data = package.bytes_of(name)
        if data is not None:
            return [_rich_text(entry) for entry in elements(package.uri, data, "si")]
    return []


def _rich_text(element: Element) -> str:
    """Text with its runs joined; the readings of East Asian text left out."""
    parts = []
    for inner in element:
        name = local(inner)
        if name == "t":
            parts.append(inner.text or "")
        elif name == "r":
            parts += [text.text or "" for text in children(inner, "t")]
    return _unescaped("".join(parts))


_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def _unescaped(text: str) -> str:
    """`_x000D_` and the like as the characters they stand for."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _formats(package: Package, main: str) -> list[str]:
    """The format code of each cell style."""
    codes = dict(BUILT_IN)
    for name in package.related(main, "styles"):
        root = package.optional_xml(name)
        if root is None:
            continue
        for entry in descendants(root, "numFmt"):
            key = attribute(entry, "numFmtId")
            if key.isdecimal() and len(key) < 9:
                codes[int(key)] = attribute(entry, "formatCode")
        styles = child(root, "cellXfs")
        listed = () if styles is None else styles
        ids = [attribute(entry, "numFmtId", "0") for entry in listed]
        return [codes.get(int(key), "") if key.isdecimal() and len(key) < 9 else "" for key in ids]
    return []


def _asides(package: Package, part: str) -> Iterator[str]:
    """Comments, then the text of shapes and the titles of charts."""
    relations = package.relations(part).values()
    targets: Mapping[str, list[str]] = {
        kind: [found.target for found in relations if found.kind == kind]
        for kind in ("threadedComment", "comments", "drawing")
    }
    threaded: set[str] = set()
    for name in targets["threadedComment"]:
        root = package.optional_xml(name)
        for comment in () if root is None else children(root, "threadedComment"):
            place = attribute(comment, "ref")
            threaded.add(place)
            text = child(comment, "text")
            yield from _comment(place, "" if text is None else text.text or "")
    for name in targets["comments"]:
        root = package.optional_xml(name)
        for comment in () if root is None else descendants(root, "comment"):
            text = child(comment, "text")
            place = attribute(comment, "ref")
            if text is not None and place not in threaded:
                yield from _comment(place, _rich_text(text))
    for name in targets["drawing"]:
        root = package.optional_xml(name)
        for shape in () if root is None else root.iter("{*}sp"):
            if text := body_text(child(shape, "txBody")):
                yield text
        for chart in package.related(name, "chart"):
            root = package.optional_xml(chart)
            yield from () if root is None else chart_titles(root)


def _comment(place: str, text: str) -> Iterator[str]:
    if text := one_line(text):
        yield f"Comment ({place}): {text}"


def _merge(reference: str) -> Merge | None:
    ends = [_REFERENCE.fullmatch(part) for part in reference.split(":")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    (left, top), (right, bottom) = ((_column(end[1]), int(end[2]) - 1) for end in ends if end)
    return Merge(top, left, min(bottom, _LAST_ROW), right)


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return min(number - 1, _LAST_COLUMN)
