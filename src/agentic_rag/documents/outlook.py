"""Messages as Outlook saves them (.msg): [MS-OXMSG], properties in the storages of an OLE2 file.

`olefile` reads the file, the properties are read here. What is left out: pictures that only belong
to the look of a message, and properties that no reader of a message sees.
"""

import io
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from agentic_rag.documents.attachments import Attachment, attachment
from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.document import Document
from agentic_rag.documents.encoding import NotText
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.html_page import declared_encoding, read_html
from agentic_rag.documents.letter import Letter, better_body, letter_document
from agentic_rag.documents.mail_text import code_page, decode_bytes
from agentic_rag.documents.rtf import DamagedRtf, html_or_text, unpacked

if TYPE_CHECKING:
    from olefile import OleFileIO

_MESSAGE = "application/vnd.ms-outlook"
_PROPERTIES = "__properties_version1.0"
_MOST_RTF_BYTES = 50_000_000  # a body is text; its pictures are attachments

# Property numbers ([MS-OXPROPS]).
_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_AUTHOR_NAME, _AUTHOR_ADDRESS, _AUTHOR_SMTP = 0x0042, 0x0065, 0x5D02
_SHOWN_TO, _SHOWN_CC, _SENT, _DELIVERED = 0x0E04, 0x0E03, 0x0039, 0x0E06
_CODE_PAGE, _INTERNET_CODE_PAGE = 0x3FFD, 0x3FDE
_NAME, _ADDRESS, _SMTP, _RECIPIENT_TYPE = 0x3001, 0x3003, 0x39FE, 0x0C15
_DATA, _METHOD, _LONG_NAME, _SHORT_NAME = 0x3701, 0x3705, 0x3707, 0x3704
_MIME_TYPE, _CONTENT_ID = 0x370E, 0x3712
_TO, _CC = 1, 2
_BY_VALUE, _EMBEDDED_MESSAGE, _OLE_OBJECT = 1, 5, 6

_FAULTS = (OSError, ValueError, IndexError, KeyError, struct.error, RecursionError, AttributeError,
           TypeError, OverflowError)  # fmt: skip


def parse_msg(uri: str, data: bytes, media_type: str) -> Document:
    """A document of one message. Raises UnreadableDocument for a damaged one."""
    return read_msg(uri, data, 0)


def read_msg(uri: str, data: bytes, depth: int) -> Document:
    """The same of a message that lies `depth` files deep in others."""
    import olefile

    try:
        ole = olefile.OleFileIO(io.BytesIO(data))
        storage = _storage(ole)
    except _FAULTS as error:
        raise _damaged(uri) from error
    if not storage.has(_PROPERTIES):
        raise UnreadableDocument(
            f"'{file_name(uri)}' is no Outlook message; give it its right suffix"
        )
    return _read(uri, _Item(storage, 32, 0), depth)


def _read(uri: str, item: "_Item", depth: int) -> Document:
    try:
        body, warnings = _body(item)
        people = _recipients(item)
        attachments = [
            found
            for number, name in enumerate(item.storage.storages("__attach"), 1)
            if (found := _attachment(_Item(item.storage.inner(name), 8, item.page), number))
        ]
        letter = Letter(
            subject=one_line(item.text(_SUBJECT)),
            sender=_person(item, _SENDER_NAME, _SENDER_SMTP, _SENDER_ADDRESS)
            or _person(item, _AUTHOR_NAME, _AUTHOR_SMTP, _AUTHOR_ADDRESS),
            to=people.get(_TO) or one_line(item.text(_SHOWN_TO)),
            cc=people.get(_CC) or one_line(item.text(_SHOWN_CC)),
            sent=item.time(_SENT) or item.time(_DELIVERED),
            body=body,
            attachments=attachments,
            warnings=warnings,
        )
    except _FAULTS as error:
        raise _damaged(uri) from error
    return letter_document(uri, letter, _MESSAGE, depth)


class _Storage:
    """A folder of an OLE2 file: streams and folders by name, in order."""

    def __init__(self, ole: "OleFileIO", path: tuple[str, ...], tree: "_Tree") -> None:
        self._ole = ole
        self._path = path
        self._tree = tree

    def has(self, name: str) -> bool:
        return (*self._path, name.lower()) in self._tree

    def read(self, name: str) -> bytes | None:
        """A stream's bytes, None if it is not there."""
        path = self._tree.get((*self._path, name.lower()))
        if path is None:
            return None
        data: bytes = self._ole.openstream(path).read()
        return data

    def storages(self, prefix: str) -> list[str]:
        """The names of the folders in it that begin so."""
        depth = len(self._path)
        found = {
            path[depth]: None
            for path in self._tree
            if len(path) > depth + 1 and path[:depth] == self._path
        }
        return sorted(name for name in found if name.startswith(prefix))

    def inner(self, name: str) -> "_Storage":
        return _Storage(self._ole, (*self._path, name.lower()), self._tree)


_Tree = dict[tuple[str, ...], list[str]]  # paths in lower case to paths as written


def _storage(ole: "OleFileIO") -> _Storage:
    paths = ole.listdir(streams=True, storages=False)
    return _Storage(ole, (), {tuple(part.lower() for part in path): path for path in paths})


class _Item:
    """A message, recipient or attachment: its properties by number."""

    def __init__(self, storage: _Storage, header: int, page: int) -> None:
        self.storage = storage
        self._fixed: dict[int, bytes] = {}
        data = storage.read(_PROPERTIES) or b""
        for at in range(header, len(data) - 15, 16):
            _, number, _ = struct.unpack_from("<HHI", data, at)
            self._fixed[number] = data[at + 8 : at + 16]
        self.page = self.number(_CODE_PAGE) or self.number(_INTERNET_CODE_PAGE) or page

    def text(self, number: int) -> str:
        """A text property, clean; "" if it is not there."""
        data = self._stream(number, "001f")
        if data is not None:
            return clean_text(data.decode("utf-16-le", "ignore"))
        data = self._stream(number, "001e")
        return self._decoded(data, code_page(self.page) if self.page else "") if data else ""

    def html(self) -> str:
        """The body in HTML, which is kept in bytes or, by some programs, as text."""
        data = self._stream(_HTML, "0102")
        if not data:
            return self.text(_HTML)
        page = self.number(_INTERNET_CODE_PAGE)
        return self._decoded(data, code_page(page) if page else declared_encoding(data) or "")

    def binary(self, number: int) -> bytes | None:
        return self._stream(number, "0102")

    def number(self, number: int) -> int:
        """A property of 32 bits, 0 if it is not there."""
        value = self._fixed.get(number, b"\0\0\0\0")
        found: int = struct.unpack_from("<I", value)[0]
        return found

    def time(self, number: int) -> str:
        """A time by ISO 8601; "" if it is not there or no time."""
        ticks = struct.unpack("<Q", self._fixed.get(number, bytes(8)))[0]  # of 100 ns, from 1601
        if not ticks:
            return ""
        try:
            moment = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
        except OverflowError:
            return ""
        return moment.isoformat(timespec="seconds")

    def _stream(self, number: int, kind: str) -> bytes | None:
        return self.storage.read(f"__substg1.0_{number:04x}{kind}")

    def _decoded(self, data: bytes, charset: str) -> str:
        try:
            return decode_bytes(data.rstrip(b"\0"), charset)
        except NotText:
            return clean_text(data.decode("cp1252", "ignore"))


def _body(item: _Item) -> tuple[Sequence[Document], list[str]]:
    plain = item.text(_BODY).strip()
    html = item.html()
    warnings: list[str] = []
    packed = item.binary(_RTF)
    if not html.strip() and packed:
        try:
            kind, text = html_or_text(unpacked(packed, _MOST_RTF_BYTES))
        except DamagedRtf as error:
            if not plain:
                warnings.append(f"its text cannot be read ({error}); save it as plain text or .eml")
        else:
            text = clean_text(text).strip()
            html, plain = (text, plain) if kind == "html" else ("", plain or text)
    texts = [Document("", "", "text/plain", plain)] if plain else []
    try:
        pages = [read_html("message", html, "text/html")] if html.strip() else []
    except UnreadableDocument:
        pages = []
        warnings.append("its HTML is damaged, so that only its plain text is read")
    return better_body(texts, pages), warnings


def _recipients(item: _Item) -> dict[int, str]:
    found: dict[int, list[str]] = {}
    for name in item.storage.storages("__recip"):
        recipient = _Item(item.storage.inner(name), 8, item.page)
        if person := _person(recipient, _NAME, _SMTP, _ADDRESS):
            found.setdefault(recipient.number(_RECIPIENT_TYPE) & 0xF, []).append(person)
    return {kind: ", ".join(people) for kind, people in found.items()}


def _person(item: _Item, name: int, *addresses: int) -> str:
    """`Name <address>`; the address only where it is one of the Internet."""
    shown = one_line(item.text(name)).strip("'")
    found = [one_line(item.text(number)) for number in addresses]
    address = next((one for one in found if "@" in one), "")
    if not address or address == shown:
        return shown
    return f"{shown} <{address}>" if shown else address


def _attachment(item: _Item, number: int) -> Attachment | None:
    """What an attachment is; None for a picture that is drawn into the message."""
    names = (item.text(prop) for prop in (_LONG_NAME, _SHORT_NAME, _NAME))
    name = next(filter(None, map(one_line, names)), "")
    method = item.number(_METHOD)
    media_type = item.text(_MIME_TYPE).strip().lower()
    inner = f"__substg1.0_{_DATA:04x}000d"
    if method == _EMBEDDED_MESSAGE and item.storage.inner(inner).has(_PROPERTIES):
        message = _Item(item.storage.inner(inner), 24, item.page)
        title = name or one_line(message.text(_SUBJECT)) or f"message {number}"
        return Attachment(title, partial(_read_inner, message))
    data = item.binary(_DATA)
    if media_type.startswith("image/") and item.text(_CONTENT_ID) and method <= _BY_VALUE:
        return None
    name = name or f"attachment {number}"
    if data is None or method not in (0, _BY_VALUE):
        return Attachment(name, partial(_elsewhere, method))
    return attachment(name, data, media_type)


def _read_inner(message: _Item, uri: str, depth: int) -> Document:
    return _read(uri, message, depth)


def _elsewhere(method: int, uri: str, depth: int) -> Document:
    if method == _OLE_OBJECT:
        raise UnsupportedDocument("it is an object of another program")
    raise UnreadableDocument("it is a link to a file that is kept elsewhere; fetch and index that")


def _damaged(uri: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"'{file_name(uri)}' is damaged or was cut short; save it again from Outlook"
    )
