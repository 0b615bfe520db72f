"""Spreadsheets (xlsx, xlsm, xltx; xls; XML Spreadsheet 2003): a heading for each sheet, and under
it the rows as `heading: value; heading: value`.

Values are given, not formulas: numbers as shown, dates in ISO 8601. Comments, text boxes and the
titles of charts stand at the end of their sheet. Hidden rows and sheets are read, since what is
shown was often calculated from them; a hidden sheet is called so in its heading and in a warning.
Left out: pictures, macros, headers and footers of printed pages.
"""

from collections.abc import Mapping, Sequence

from agentic_rag.documents.document import Document, Scalar
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.lines import Lines
from agentic_rag.documents.office_package import open_package
from agentic_rag.documents.sheet import Sheet, write_sheet
from agentic_rag.documents.workbook_xls import read_xls, read_xml_2003
from agentic_rag.documents.workbook_xlsx import read_xlsx

_OLD_MEDIA_TYPE = "application/vnd.ms-excel"


def parse_spreadsheet(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a spreadsheet's bytes. Raises UnreadableDocument."""
    if not data.startswith(b"PK"):
        is_xml = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
        sheets = read_xml_2003(uri, data) if is_xml else read_xls(uri, data)
        return sheets_document(uri, _OLD_MEDIA_TYPE, sheets)
    package = open_package(uri, data)
    workbook = read_xlsx(package)
    title, metadata = package.properties()
    warnings = list(package.damage_warnings())
    if workbook.uncalculated:
        hold = "s hold formulas" if workbook.uncalculated > 1 else " holds a formula"
        warnings.append(
            f"{workbook.uncalculated} cell{hold} that no program has calculated: "
            "open the file in Excel, save it and index it again"
        )
    return sheets_document(uri, media_type, workbook.sheets, title, metadata, warnings)


def sheets_document(
    uri: str,
    media_type: str,
    sheets: Sequence[Sheet],
    title: str = "",
    metadata: Mapping[str, Scalar] | None = None,
    warnings: Sequence[str] = (),
) -> Document:
    """A document of sheets, each under its name."""
    lines = Lines()
    for sheet in sheets:
        write_sheet(sheet, lines)
    hidden = [f"'{sheet.name}'" for sheet in sheets if sheet.hidden and sheet.rows]
    said = [*warnings]
    if hidden:
        said.append(f"hidden sheet{'s' * (len(hidden) > 1)} read as well: {', '.join(hidden)}")
    text, headings, tables = lines.finish()
    return Document(
        uri=uri,
        title=title or file_name(uri),
        media_type=media_type,
        text=text,
        headings=headings,
        tables=tables,
        metadata={"sheets": len(sheets), **(metadata or {})},
        warnings=tuple(said),
    )
