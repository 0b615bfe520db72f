"""A document put together of others: chapters, attachments, cells.

Text is appended piece by piece, an empty line between two, and the marks of each piece (headings,
pages, tables, code) are moved to where it comes to stand.
"""

from collections.abc import Mapping

from agentic_rag.documents.document import Code, Document, Heading, Page, Scalar, Table

# Of these each line is a record that stands by itself (see `text.chunking`).
_RECORDS = ("text/csv", "text/tab-separated-values", "application/json", "application/jsonl")
_CODE = "text/x-"


class Composition:
    """A document under construction: the pieces so far, and what was said about them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[Page] = []
        self._tables: list[Table] = []
        self._code: list[Code] = []
        self._warnings: list[str] = []

    def add_text(self, text: str) -> None:
        """Append clean text without headings."""
        self._append(text)

    def add_heading(self, level: int, text: str) -> None:
        """Append a heading line; `text` is one line and not empty."""
        self._headings.append(Heading(self._append(text), level, text))

    def add_code(self, text: str) -> None:
        """Append program text."""
        if text.strip():
            start = self._append(text)
            self._code.append(Code(start, self._length))

    def add_document(self, document: Document, below: int = 0, heading: str = "") -> None:
        """Append a document's text, its headings `below` levels deeper, under a `heading` of
        that level if one is given. Its warnings are left to the caller."""
        text = _text(document)
        top = self._append(heading)
        start = self._append(text)
        if heading:
            self._headings.append(Heading(top, below, heading))
        else:
            top = start
        if not text.strip():
            return
        self._headings += [
            Heading(start + h.start, below + h.level, h.text) for h in with_title(document)
        ]
        end = self._length  # the last line's end may have been left out
        self._tables += [
            Table(start + t.start, start + t.body, min(start + t.end, end)) for t in document.tables
        ]
        self._code += [Code(start + c.start, min(start + c.end, end)) for c in document.code]
        if document.media_type in _RECORDS and not document.tables:
            self._tables.append(Table(start, start, end))
        elif document.media_type.startswith(_CODE):
            self._code.append(Code(start, end))
        if document.pages:
            # The heading above belongs to the first page.
            opening = Page(top, document.pages[0].number)
            others = [Page(start + page.start, page.number) for page in document.pages[1:]]
            self._pages += [opening, *others, Page(end, None)]

    def warn(self, warning: str) -> None:
        """Add a sentence for a person."""
        if warning not in self._warnings:
            self._warnings.append(warning)

    def is_empty(self) -> bool:
        """Whether nothing but white space was added."""
        return not any(part.strip() for part in self._parts)

    def finish(
        self, uri: str, title: str, media_type: str, metadata: Mapping[str, Scalar] | None = None
    ) -> Document:
        """The document."""
        text = "".join(self._parts)
        if text:
            text += "\n"
        return Document(
            uri=uri,
            title=title,
            media_type=media_type,
            text=text,
            headings=tuple(self._headings),
            pages=tuple(self._pages),
            tables=tuple(self._tables),
            code=tuple(self._code),
            metadata=metadata or {},
            warnings=tuple(self._warnings),
        )

    def _append(self, text: str) -> int:
        """Append a piece and give its offset; the white space at its end is left out."""
        text = text.rstrip()
        if not text:
            return self._length
        gap = "\n\n" if self._length else ""
        self._parts += [gap, text]
        start = self._length + len(gap)
        self._length = start + len(text)
        return start


def with_title(document: Document) -> tuple[Heading, ...]:
    """The headings of a document and, where its text begins with its title (which is no heading
    then, see `split_title`), the title among them."""
    body = document.text.lstrip()
    start = len(document.text) - len(body)
    line = body.partition("\n")[0]
    opens = bool(document.title) and line.strip("#=*- \t") == document.title
    if not opens or any(heading.start <= start for heading in document.headings):
        return document.headings
    return (Heading(document.text.rfind("\n", 0, start) + 1, 1, document.title), *document.headings)


def _text(document: Document) -> str:
    if document.given_chunks is None:
        return document.text
    return "\n\n".join(f"{c.title}\n{c.text}" if c.title else c.text for c in document.given_chunks)
