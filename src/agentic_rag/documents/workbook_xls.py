"""Sheets of Excel files before 2007: xls (BIFF 2 to 8) through xlrd, and "XML Spreadsheet 2003"."""

import io
from contextlib import suppress
from typing import Any

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.number_format import plain_number, shown_number
from agentic_rag.documents.safe_xml import (
    attribute,
    child,
    children,
    descendants,
    parse_xml,
)
from agentic_rag.documents.sheet import Merge, Sheet

_BIFF8 = 80  # the first with text in Unicode
_LAST_ROW = 1_048_575
_LAST_COLUMN = 16_383


def read_xls(uri: str, data: bytes) -> list[Sheet]:
    """The sheets of an xls file. Raises UnreadableDocument."""
    book = _open(uri, data, None)
    if book.biff_version < _BIFF8 and book.codepage is None:
        # The file does not say its encoding, and xlrd has taken it for Latin-1.
        raw = "\n".join(
            str(value)
            for sheet in book.sheets()
            for row in range(sheet.nrows)
            for value in sheet.row_values(row)
            if isinstance(value, str)
        ).encode("latin-1", "ignore")
        with suppress(NotText):
            book = _open(uri, data, decode(raw).encoding)
    return [_sheet(book, sheet) for sheet in book.sheets()]


def _open(uri: str, data: bytes, encoding: str | None) -> Any:
    import xlrd

    try:
        return xlrd.open_workbook(
            file_contents=data,
            formatting_info=True,
            encoding_override=encoding,
            logfile=io.StringIO(),
        )
    except Exception as error:  # on damage xlrd raises whatever its reading runs into
        if "encrypted" in str(error).lower():
            raise UnreadableDocument(
                f"'{file_name(uri)}' is protected by a password; save a copy without one and "
                "index that"
            ) from error
        raise UnreadableDocument(
            f"'{file_name(uri)}' is damaged or no Excel file; open it in Excel and save it as .xlsx"
        ) from error


def _sheet(book: Any, found: Any) -> Sheet:
    import xlrd

    sheet = Sheet(found.name, found.visibility != 0)
    for row in range(found.nrows):
        cells = {}
        for column, cell in enumerate(found.row(row)):
            if cell.ctype == xlrd.XL_CELL_TEXT:
                text = cell.value
            elif cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
                text = shown_number(cell.value, _format(book, cell.xf_index), book.datemode == 1)
            elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                text = "TRUE" if cell.value else "FALSE"
            elif cell.ctype == xlrd.XL_CELL_ERROR:
                text = xlrd.error_text_from_code.get(cell.value, "")
            else:
                continue
            cells[column] = text
        if cells:
            sheet.rows[row] = cells
    for top, bottom, left, right in found.merged_cells:
        sheet.merges.append(Merge(top, left, bottom - 1, right - 1))
    for (row, column), note in sorted(found.cell_note_map.items()):
        if text := one_line(note.text):
            sheet.asides.append(f"Comment ({xlrd.cellname(row, column)}): {text}")
    return sheet


def _format(book: Any, index: int | None) -> str:
    try:
        return str(book.format_map[book.xf_list[index].format_key].format_str)
    except (KeyError, IndexError, TypeError, AttributeError):
        return ""


def read_xml_2003(uri: str, data: bytes) -> list[Sheet]:
    """The sheets of an XML Spreadsheet 2003. Raises UnreadableDocument."""
    root, _ = parse_xml(uri, data)
    codes = {
        attribute(style, "ID"): attribute(number_format, "Format")
        for style in descendants(root, "Style")
        if (number_format := child(style, "NumberFormat")) is not None
    }
    sheets = []
    for found in children(root, "Worksheet"):
        visible = child(found, "WorksheetOptions", "Visible")
        sheet = Sheet(attribute(found, "Name"), visible is not None)
        row = -1
        for line in descendants(found, "Row"):
            row = _place(attribute(line, "Index"), row, _LAST_ROW)
            column = -1
            for cell in children(line, "Cell"):
                column = _place(attribute(cell, "Index"), column, _LAST_COLUMN)
                data_element = child(cell, "Data")
                if data_element is not None:
                    text = "".join(data_element.itertext())
                    code = codes.get(attribute(cell, "StyleID"), "")
                    shown = _shown(text, attribute(data_element, "Type"), code)
                    sheet.rows.setdefault(row, {})[column] = shown
                if (note := child(cell, "Comment", "Data")) is not None:
                    sheet.asides.append(f"Comment: {one_line(''.join(note.itertext()))}")
                right = column + _count(attribute(cell, "MergeAcross"))
                bottom = row + _count(attribute(cell, "MergeDown"))
                if (bottom, right) != (row, column):
                    sheet.merges.append(Merge(row, column, bottom, right))
                column = right
        sheets.append(sheet)
    return sheets


def _shown(text: str, kind: str, code: str) -> str:
    if kind == "DateTime":
        return text.replace("T00:00:00.000", "").replace("T", " ").removesuffix(".000")
    if kind == "Boolean":
        return "TRUE" if text.strip() == "1" else "FALSE"
    if kind == "Number":
        named = {"Percent": "0.00%", "Fixed": "0.00", "Standard": "#,##0.00"}
        try:
            number = float(text)
        except ValueError:
            return text
        return (
            shown_number(number, named[code])
            if code in named
            else (
                shown_number(number, code) if any(c in code for c in "0#") else plain_number(number)
            )
        )
    return text


def _place(given: str, before: int, last: int) -> int:
    place = int(given) - 1 if given.isdecimal() and len(given) < 8 else before + 1
    return min(place, last)


def _count(given: str) -> int:
    return int(given) if given.isdecimal() and len(given) < 6 else 0
