"""OpenDocument (odt, ods, odp and their templates; ISO 26300, ODF 1.3), as LibreOffice writes it.

A text is read as a Word file is, a spreadsheet as an Excel file, a presentation as a PowerPoint
file; see there what is kept. Left out besides: numbers that a style puts before headings, embedded
objects.
"""

from collections.abc import Iterator
from dataclasses import replace

from agentic_rag.documents.cleaning import number_ranges, one_line
from agentic_rag.documents.document import Document, Scalar
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name, split_title
from agentic_rag.documents.lines import Block, Lines, below_title, flat, shown_line
from agentic_rag.documents.office_package import (
    Package,
    author_metadata,
    given_title,
    open_package,
)
from agentic_rag.documents.open_document_text import OpenStyles, TextReading, read_styles
from agentic_rag.documents.page_numbers import is_page_number
from agentic_rag.documents.safe_xml import Element, attribute, child, children, descendants, local
from agentic_rag.documents.sheet import Merge, Sheet
from agentic_rag.documents.spreadsheet import sheets_document

_MEDIA_TYPE = "application/vnd.oasis.opendocument."
_NOTES_LEVEL = 3
_HEADERS = ("header", "header-first", "header-left", "footer", "footer-first", "footer-left")
_NUMBERS = ("page-number", "date-time")
_GROUPS = ("table-row-group", "table-rows", "table-header-rows")
_CELLS = ("table-cell", "covered-table-cell")
# Rows and columns past the last value are repeated to the end of the sheet; of values, no more
# than this, which nobody fills in by hand.
_MOST_REPEATED_ROWS = 1_000
_MOST_REPEATED_COLUMNS = 1_024
_MOST_COPIES = 1_000_000  # of cells in a sheet


def parse_open_document(uri: str, data: bytes, media_type: str) -> Document:
    """A document of an OpenDocument file's bytes. Raises UnreadableDocument."""
    package = open_package(uri, data)
    manifest = package.bytes_of("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise UnreadableDocument(
            f"'{file_name(uri)}' is protected by a password; save a copy without one and index that"
        )
    root = package.xml("content.xml")
    body = None if root is None else child(root, "body")
    if root is None or body is None or not len(body):
        raise UnreadableDocument(
            f"'{file_name(uri)}' is damaged: its main part is missing; open it in its own program "
            "and save it again"
        )
    extra = package.optional_xml("styles.xml")
    styles = read_styles([root] if extra is None else [extra, root])
    title, metadata = _properties(package)
    content = body[0]
    media_type = _MEDIA_TYPE + local(content)
    if local(content) == "spreadsheet":
        sheets = list(_sheets(content, styles))
        warnings = package.damage_warnings()
        return sheets_document(uri, media_type, sheets, title, metadata, warnings)
    lines = Lines()
    warnings = package.damage_warnings()
    if local(content) == "presentation":
        first, hidden = _write_slides(content, styles, lines)
        text, headings, tables = lines.finish()
        title = title or first or file_name(uri)
        if hidden:
            plural = "s" * (len(hidden) > 1)
            warnings += (f"hidden slide{plural} left out: {number_ranges(hidden)}",)
    else:
        for line in dict.fromkeys(_headers(extra, styles)):
            lines.paragraph(line)
        lines.add(below_title(list(TextReading(styles).blocks(content))))
        text, marked, tables = lines.finish()
        title, headings = split_title(marked, title, file_name(uri))
    return Document(
        uri=uri,
        title=title,
        media_type=media_type,
        text=text,
        headings=headings,
        tables=tables,
        metadata=metadata,
        warnings=warnings,
    )


def _properties(package: Package) -> tuple[str, dict[str, Scalar]]:
    root = package.optional_xml("meta.xml")
    found: dict[str, str] = {}
    for name in ("title", "initial-creator", "creator"):
        for element in () if root is None else descendants(root, name):
            found.setdefault(name, "".join(element.itertext()))
    author = one_line(found.get("initial-creator", "") or found.get("creator", ""))
    return given_title(found.get("title", "")), author_metadata(author)


def _headers(root: Element | None, styles: OpenStyles) -> Iterator[str]:
    """The lines of headers and footers."""
    for page in () if root is None else descendants(root, "master-page"):
        for part in page:
            if local(part) in _HEADERS and attribute(part, "display", "true") != "false":
                for block in TextReading(styles).blocks(part):
                    text = flat(block)
                    if text and not is_page_number(text):
                        yield text


# -- presentations ------------------------------------------------------------------------------


def _write_slides(content: Element, styles: OpenStyles, lines: Lines) -> tuple[str, list[int]]:
    """Append the slides that are shown; the first title, and the numbers of the hidden ones."""
    first, hidden = "", []
    for number, page in enumerate(children(content, "page"), 1):
        if styles.is_hidden(attribute(page, "style-name")):
            hidden.append(number)
            continue
        title, blocks = _slide(page, styles)
        first = first or title
        lines.heading(1, f"Slide {number}: {title}" if title else f"Slide {number}")
        lines.add(blocks)
    return first, hidden


def _slide(page: Element, styles: OpenStyles) -> tuple[str, list[Block]]:
    title, blocks, notes = "", [], []
    for shape in page:
        if local(shape) == "notes":
            for inner in shape:
                if attribute(inner, "class") not in _NUMBERS:
                    notes += list(TextReading(styles).blocks([inner]))
            continue
        kind = attribute(shape, "class")
        if kind in _NUMBERS:
            continue
        found = [replace(block, level=0) for block in TextReading(styles).blocks([shape])]
        if kind == "title" and not title:
            title = shown_line(" ".join(map(flat, found)))
        else:
            blocks += found
    if any(flat(block) for block in notes):
        blocks += [Block("Notes", level=_NOTES_LEVEL), *notes]
    return title, blocks


# -- spreadsheets -------------------------------------------------------------------------------


def _sheets(content: Element, styles: OpenStyles) -> Iterator[Sheet]:
    for table in children(content, "table"):
        sheet = Sheet(attribute(table, "name"), styles.is_hidden(attribute(table, "style-name")))
        number = copies = 0
        for row in _rows(table):
            cells = _cells(row, number, sheet, styles)
            times = _repeated(row, "number-rows-repeated")
            if cells:
                most = min(times, _MOST_REPEATED_ROWS) if copies < _MOST_COPIES else 1
                for copy in range(most):
                    sheet.rows[number + copy] = cells
                copies += most * len(cells)
            number += times
        shapes = child(table, "shapes")
        if shapes is not None:
            sheet.asides += filter(None, map(flat, TextReading(styles).blocks(shapes)))
        yield sheet


def _rows(table: Element) -> Iterator[Element]:
    for inner in table:
        if local(inner) == "table-row":
            yield inner
        elif local(inner) in _GROUPS:
            yield from _rows(inner)


def _cells(row: Element, number: int, sheet: Sheet, styles: OpenStyles) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 0
    for cell in row:
        if local(cell) not in _CELLS:
            continue
        times = _repeated(cell, "number-columns-repeated")
        if local(cell) == "table-cell":
            text = _cell_text(cell, styles, sheet)
            for copy in range(min(times, _MOST_REPEATED_COLUMNS) if text else 0):
                cells[column + copy] = text
            right = column + _repeated(cell, "number-columns-spanned") - 1
            bottom = number + _repeated(cell, "number-rows-spanned") - 1
            if (right, bottom) != (column, number):
                sheet.merges.append(Merge(number, column, bottom, right))
        column += times
    return cells


def _cell_text(cell: Element, styles: OpenStyles, sheet: Sheet) -> str:
    for note in children(cell, "annotation"):
        sheet.asides += map(flat, TextReading(styles).comment(note))
    kind = attribute(cell, "value-type")
    if kind == "date":
        return attribute(cell, "date-value").replace("T00:00:00", "").replace("T", " ")
    reading = TextReading(styles)
    shown = "\n".join(
        flat(block)
        for inner in cell
        if local(inner) != "annotation"
        for block in reading.blocks([inner])
    )
    return shown or attribute(cell, "value")


def _repeated(element: Element, name: str) -> int:
    value = attribute(element, name, "1")
    return max(1, int(value)) if value.isdecimal() and len(value) < 9 else 1
