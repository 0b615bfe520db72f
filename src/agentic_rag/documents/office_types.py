"""Which Office family bytes belong to, whatever their name says: a docx named .doc, a web page or
a table of text named .xls, an .xls named .xlsx are common.

Also the formats before 2007 that are not read, which are told from the others by the streams in
their OLE2 file ([MS-CFB]).
"""

import io
import re
from typing import Literal

from agentic_rag.documents import file_types
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.zip_safety import open_archive

OfficeFamily = Literal["word", "slides", "spreadsheet", "open_document"]
# What bytes named as Office files are besides.
Found = Literal[OfficeFamily, "rtf", "html", "text", "csv", "eml"]

_CONTENT_TYPES = "[Content_Types].xml"
_FOLDERS: tuple[tuple[str, OfficeFamily], ...] = (
    ("word/", "word"),
    ("ppt/", "slides"),
    ("xl/", "spreadsheet"),
)
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument."
_STREAMS: tuple[tuple[str, OfficeFamily], ...] = (
    ("WordDocument", "word"),
    ("PowerPoint Document", "slides"),
    ("Workbook", "spreadsheet"),
    ("Book", "spreadsheet"),
)
_ENCRYPTED = "EncryptedPackage"
# A workbook before Excel 5 is no OLE2 file but begins with its first record.
_BARE_WORKBOOK = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00", b"\x09\x08")
_XML_WORKBOOK = "urn:schemas-microsoft-com:office:spreadsheet"
_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body|table|meta|div|p)\b", re.IGNORECASE)
_HEAD = 4_000
_OLD = {
    "word": ("Word", "Word or LibreOffice", ".docx"),
    "slides": ("PowerPoint", "PowerPoint or LibreOffice", ".pptx"),
}


def office_family(data: bytes, named: str | None) -> Found | None:
    """The family of bytes that are an Office file; of those that are only named as one (`named`
    is the family of their name), what they are instead. None for all others, and for what only a
    parser can refuse."""
    if file_types.is_zip(data):
        return _package_family(data)
    if file_types.is_ole2(data):
        streams = _streams(data)
        family = next((family for name, family in _STREAMS if name in streams), None)
        return family or ("word" if _ENCRYPTED in streams else None)
    if file_types.is_rich_text(data) and named != "code":
        return "rtf"
    if named not in ("word", "slides", "spreadsheet", "open_document"):
        return None
    if named == "spreadsheet" and data.startswith(_BARE_WORKBOOK):
        return "spreadsheet"
    if file_types.is_unread_text(data):
        return None
    try:
        head = decode(data).text[:_HEAD]
    except NotText:
        return None
    if _XML_WORKBOOK in head and head.lstrip().startswith("<"):
        return "spreadsheet"
    if file_types.is_mail(data):  # a web page with its pictures, as Confluence names .doc
        return "eml"
    if head.lstrip().startswith("<") and _PAGE.search(head):
        return "html"
    return "csv" if named == "spreadsheet" else "text"


def refuse_old(uri: str, data: bytes) -> None:
    """Raise for an OLE2 file: UnreadableDocument where it is an Office file with a password,
    UnsupportedDocument where it is one of a format before 2007 that is not read."""
    if not file_types.is_ole2(data):
        return
    name = file_name(uri)
    streams = _streams(data)
    if _ENCRYPTED in streams:
        raise UnreadableDocument(
            f"'{name}' is protected by a password; save a copy without one and index that"
        )
    for stream, family in _STREAMS:
        if stream in streams and family in _OLD:
            program, opened, suffix = _OLD[family]
            raise UnsupportedDocument(
                f"'{name}' is in the format of {program} before 2007, which is not read; open it "
                f"in {opened} and save it as {suffix}"
            )


def _package_family(data: bytes) -> OfficeFamily | None:
    if _OPEN_DOCUMENT in data[:200]:
        return "open_document"
    try:
        archive = open_archive("", data)
    except UnreadableDocument:
        return None
    if archive.find(_CONTENT_TYPES):
        for folder, family in _FOLDERS:
            if any(member.name.startswith(folder) for member in archive.members):
                return family
    elif archive.find("content.xml") and archive.find("META-INF/manifest.xml"):
        return "open_document"  # its mimetype not the first member, or missing
    return None


def _streams(data: bytes) -> set[str]:
    """The names of the streams that stand first in an OLE2 file; none of a damaged one."""
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            return {entry[0] for entry in file.listdir() if len(entry) == 1}
    except Exception:  # olefile raises whatever its reading runs into
        return set()
