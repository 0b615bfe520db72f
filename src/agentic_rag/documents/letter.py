"""A mail as a document, whatever program wrote it: who, when and about what in the first lines, so
that they are found; the body; each attachment under a heading of its own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag.documents.attachments import Attachment, add_attachments
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document, Scalar
from agentic_rag.documents.headings import file_name

# A plain text beside an HTML one is only a stand-in if it says so in few words, or has less than
# this part of the other's.
_LONGEST_STAND_IN = 600
_STAND_IN = re.compile(
    r"\bhtml\b|\b(?:in|with) (?:your|a|the|any)\b.{0,20}\bbrowser"
    r"|view (?:this|the|it)\b.{0,30}\bonline"
    r"|浏览器|瀏覽器|无法(?:正常)?(?:显示|查看)|不支持|ブラウザ",
    re.IGNORECASE,
)
_STAND_IN_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail, read. `sent` is a date by ISO 8601, or as it was written; `warnings` are sentences
    for a person."""

    subject: str
    sender: str
    to: str
    cc: str
    sent: str
    body: Sequence[Document]
    attachments: Sequence[Attachment]
    warnings: Sequence[str] = ()


def letter_document(uri: str, letter: Letter, media_type: str, depth: int) -> Document:
    """The document of a mail that lies `depth` files deep; its title is the subject."""
    composition = Composition()
    names = ", ".join(attachment.name for attachment in letter.attachments)
    header = {
        "From": letter.sender,
        "To": letter.to,
        "Cc": letter.cc,
        "Date": letter.sent,
        "Subject": letter.subject,
        "Attachments": names,
    }
    composition.add_text("\n".join(f"{name}: {value}" for name, value in header.items() if value))
    for part in letter.body:
        composition.add_document(part)
    for warning in letter.warnings:
        composition.warn(warning)
    add_attachments(composition, uri, letter.attachments, depth)
    metadata: dict[str, Scalar] = {
        "from": letter.sender,
        "to": letter.to,
        "cc": letter.cc,
        "date": letter.sent,
    }
    return composition.finish(
        uri,
        letter.subject or file_name(uri),
        media_type,
        {name: value for name, value in metadata.items() if value},
    )


def better_body(plain: Sequence[Document], html: Sequence[Document]) -> Sequence[Document]:
    """Of a body in two forms the one to read: the plain one, unless it is empty, only stands in
    for the other, or has lost the rows of its tables."""
    words = "\n".join(document.text for document in plain).strip()
    size = sum(len(document.text.strip()) for document in html)
    if not size:
        return plain
    stands_in = len(words) < _LONGEST_STAND_IN and _STAND_IN.search(words) and len(words) < size
    has_tables = any(document.tables for document in html)
    if stands_in or has_tables or len(words) < _STAND_IN_SHARE * size:
        return html
    return plain
