"""Mail as the Internet carries it: a message (RFC 5322, MIME) or a mailbox of them (RFC 4155).

The `email` package's policy `compat32` gives headers as they are written: the newer one decodes
them, and what it cannot decode it loses or raises. What is left out: pictures that only belong to
the look of a message, and signatures for programs.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from email import message_from_bytes, policy
from email.message import Message
from email.utils import parsedate_to_datetime

from agentic_rag.documents.attachments import Attachment, attachment
from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document
from agentic_rag.documents.encoding import NotText
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.html_page import declared_encoding, read_html
from agentic_rag.documents.letter import Letter, better_body, letter_document
from agentic_rag.documents.mail_text import decode_bytes, header_text, parameter, unflowed

_MESSAGE, _MAILBOX = "message/rfc822", "application/mbox"
# Deeper than any mail is: each level costs calls of Python, whose number is limited.
_DEEPEST_PART = 50
_SIGNATURES = ("application/pgp-signature", "application/pkcs7-signature",
               "application/x-pkcs7-signature", "application/pgp-encrypted")  # fmt: skip
_SEALED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
_TNEF = ("application/ms-tnef", "application/vnd.ms-tnef")
_SUFFIX_OF = {"text/calendar": ".ics", "text/vcard": ".vcf", "text/x-vcard": ".vcf"}
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def parse_eml(uri: str, data: bytes, media_type: str) -> Document:
    """A document of one message. Raises UnreadableDocument for what is none."""
    return read_eml(uri, data, 0)


def parse_mbox(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a mailbox, a heading for each message. Raises UnreadableDocument."""
    return read_mbox(uri, data, 0)


def read_eml(uri: str, data: bytes, depth: int) -> Document:
    """The same of a message that lies `depth` files deep in others."""
    return _read(uri, _parsed(uri, data), depth)


def read_mbox(uri: str, data: bytes, depth: int) -> Document:
    """The same of a mailbox."""
    starts = [match.end() for match in _FROM_LINE.finditer(data)]
    ends = [match.start() for match in _FROM_LINE.finditer(data)][1:]
    if not starts:
        raise UnreadableDocument(
            f"'{file_name(uri)}' is no mailbox: no message begins in it; export it again from the "
            "mail program"
        )
    composition = Composition()
    for number, (start, end) in enumerate(zip(starts, [*ends, len(data)], strict=True), 1):
        piece = _QUOTED_FROM.sub(rb"\1", data[start:end])
        try:
            document = read_eml(uri, piece, depth)
        except UnreadableDocument:
            composition.warn(f"message {number} in it is damaged and left out")
            continue
        own = document.title != file_name(uri)
        heading = document.title if own else f"Message {number}"
        composition.add_document(document, below=1, heading=heading)
        for warning in document.warnings:
            composition.warn(f"message {number}: {warning}")
    return composition.finish(uri, file_name(uri), _MAILBOX, {"messages": len(starts)})


def _parsed(uri: str, data: bytes) -> Message:
    try:
        message = message_from_bytes(data.lstrip(b"\xef\xbb\xbf\r\n \t"), policy=policy.compat32)
    except (RecursionError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise UnreadableDocument(
            f"'{file_name(uri)}' is damaged ({type(error).__name__}); save it again from the mail "
            "program"
        ) from error
    if not message.keys():
        raise UnreadableDocument(
            f"'{file_name(uri)}' is no mail: it does not begin with a mail's header; give it its "
            "right suffix"
        )
    return message


def _read(uri: str, message: Message, depth: int) -> Document:
    content = _Content()
    content.take(message, 0)
    letter = Letter(
        subject=_header(message, "subject"),
        sender=_header(message, "from") or _header(message, "sender"),
        to=_header(message, "to"),
        cc=_header(message, "cc"),
        sent=_date(_header(message, "date")),
        body=content.body,
        attachments=content.attachments,
        warnings=content.warnings,
    )
    return letter_document(uri, letter, _MESSAGE, depth)


def _header(message: Message, name: str) -> str:
    """The headers of a name, decoded; several are joined by commas."""
    found = [header_text(raw) for key, raw in message.raw_items() if key.lower() == name]
    return ", ".join(dict.fromkeys(filter(None, found)))


def _date(written: str) -> str:
    """A date by ISO 8601; as it is written where it cannot be read."""
    try:
        sent = parsedate_to_datetime(written)
        # "-0000" says that the sender's own time is not known.
        return (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return written


@dataclass(slots=True)
class _Content:
    """What was found in the parts of a message, in their order."""

    body: list[Document] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, part: Message, depth: int) -> None:
        """Take a part in, with those in it."""
        kind = part.get_content_type()
        if depth > _DEEPEST_PART:
            self._warn("parts that lie too deep in it are left out")
        elif kind == "multipart/alternative":
            self._alternatives(part, depth)
        elif kind in _SEALED:
            self._warn(
                "a part of it is encrypted, or wrapped by its signature, and is not read; save it "
                "from the mail program without encryption"
            )
        elif kind.startswith("multipart/"):
            for inner in _parts(part):
                self.take(inner, depth + 1)
        elif kind in _TNEF or _name(part).lower() == "winmail.dat":
            self._warn(
                f"'{_name(part) or 'winmail.dat'}' in it holds text and attachments in a form of "
                "Outlook's own, which is not read; ask for them as ordinary attachments"
            )
        elif kind in ("message/rfc822", "message/global"):
            self._attach_message(part)
        elif kind.startswith("message/"):  # a delivery report, a receipt
            fields = [field for inner in _parts(part) for field in inner.raw_items()]
            self._add_text("\n".join(f"{key}: {header_text(value)}" for key, value in fields))
        elif kind not in _SIGNATURES:
            self._leaf(part, kind)

    def _alternatives(self, part: Message, depth: int) -> None:
        plain, html = _Content(), _Content()
        for inner in _parts(part):
            of = plain if inner.get_content_type() == "text/plain" else html
            of.take(inner, depth + 1)
        self.body += better_body(plain.body, html.body)
        for found in (plain, html):
            self.attachments += found.attachments
            for warning in found.warnings:
                self._warn(warning)

    def _leaf(self, part: Message, kind: str) -> None:
        name = _name(part)
        disposition = header_text(_raw(part, "content-disposition")).partition(";")[0].strip()
        attached = disposition.lower() == "attachment"
        shown = kind in ("text/plain", "text/html") and not attached
        if shown and (not name or not self.body):
            self._add_body(part, kind)
            return
        is_picture = kind.startswith("image/")
        if is_picture and not attached and _raw(part, "content-id"):
            return  # drawn into the message's HTML: a logo, a line
        data = _data(part)
        charset = parameter(part, "content-type", "charset")
        if kind.startswith("text/") and charset:
            with suppress(NotText):
                data = decode_bytes(data, charset).encode()
        if data.strip() and (name or attached or not is_picture):
            name = name or f"{kind.replace('/', '-')}{_SUFFIX_OF.get(kind, '')}"
            self.attachments.append(attachment(name, data, kind))

    def _add_body(self, part: Message, kind: str) -> None:
        data = _data(part)
        charset = parameter(part, "content-type", "charset")
        if kind == "text/html":
            charset = charset or declared_encoding(data) or ""
        try:
            text = decode_bytes(data, charset)
        except NotText as error:
            self._warn(f"a part of it cannot be read as text ({error})")
            return
        if kind == "text/html":
            try:
                self.body.append(read_html("message", text, kind))
            except UnreadableDocument:
                self._warn("a part of it holds damaged HTML and is left out")
            return
        if parameter(part, "content-type", "format").lower() == "flowed":
            delete_space = parameter(part, "content-type", "delsp").lower() == "yes"
            text = unflowed(text, delete_space)
        self._add_text(text)

    def _add_text(self, text: str) -> None:
        if text.strip():
            self.body.append(Document("", "", "text/plain", text.strip("\n")))

    def _attach_message(self, part: Message) -> None:
        for inner in _parts(part):
            name = _name(part) or _header(inner, "subject") or "message.eml"
            if inner.keys():
                self.attachments.append(_attached(name, inner))
            else:  # in base64, which RFC 2046 forbids here
                inner["content-transfer-encoding"] = _raw(part, "content-transfer-encoding")
                self.attachments.append(attachment(name, _data(inner), _MESSAGE))

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)


def _attached(name: str, message: Message) -> Attachment:
    return Attachment(name, lambda uri, depth: _read(uri, message, depth))


def _parts(part: Message) -> Iterator[Message]:
    """The parts of a part; of one whose border is damaged, its text."""
    payload = part.get_payload()
    if isinstance(payload, list):
        yield from (inner for inner in payload if isinstance(inner, Message))
    elif isinstance(payload, str) and payload.strip():
        text = Message()
        text.set_payload(payload)
        yield text


def _data(part: Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        data = None
    return data if isinstance(data, bytes) else b""


def _name(part: Message) -> str:
    found = parameter(part, "content-disposition", "filename")
    return one_line(found or parameter(part, "content-type", "name"))


def _raw(part: Message, header: str) -> str:
    return next((str(value) for key, value in part.raw_items() if key.lower() == header), "")
