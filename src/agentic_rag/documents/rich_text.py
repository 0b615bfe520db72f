"""Rich text (.rtf; RTF 1.9.1), as a file or under the name of a Word document: its paragraphs and
tables. Styles are not looked at, so it has no headings but those of a page wrapped into it."""

from itertools import groupby

from agentic_rag.documents.document import Document
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.html_page import parse_html
from agentic_rag.documents.lines import Lines
from agentic_rag.documents.rtf import DamagedRtf, html_or_text

_CELL_END = " |"


def parse_rich_text(uri: str, data: bytes, media_type: str) -> Document:
    """A document of RTF bytes; its title is the file's name. Raises UnreadableDocument."""
    try:
        kind, text = html_or_text(data)
    except DamagedRtf as error:
        raise UnreadableDocument(
            f"'{file_name(uri)}' cannot be read as rich text: {error}; open it in a word processor "
            "and save it as .docx"
        ) from error
    if kind == "html":
        return parse_html(uri, text, "text/html")
    lines = Lines()
    for is_row, group in groupby(text.split("\n"), lambda line: _CELL_END in line):
        found = list(group)
        if is_row and len(found) > 1:
            lines.table([line.split(_CELL_END) for line in found])
        else:
            for line in found:
                lines.paragraph(line)
    body, headings, tables = lines.finish()
    return Document(
        uri=uri,
        title=file_name(uri),
        media_type=media_type,
        text=body,
        headings=headings,
        tables=tables,
    )
