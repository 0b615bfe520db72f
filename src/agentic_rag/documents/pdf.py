"""PDF: text by page through PDFium, outline entries as headings where they stand on their page.

PDFium is not thread-safe: everything that touches it happens in `_extract`, under one lock.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentic_rag.documents.cleaning import clean_text, glue, number_ranges, one_line
from agentic_rag.documents.document import Document, Heading, Page, Scalar
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.paragraphs import column_width, continues_overleaf, flow

if TYPE_CHECKING:
    import pypdfium2

_PDFIUM = threading.Lock()
_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD

# PDFium joins a word broken at a line's end and leaves this where the hyphen was.
_HYPHEN = re.compile("[\ufffe\x02](?:\r?\n)?(.?)")
# Ligatures and Kangxi radicals: forms of print that nobody types in a search.
_PRINT_FORM = re.compile("[\ufb00-\ufb06\u2e9f\u2ef3\u2f00-\u2fd5]")
_NUMBERING = re.compile(
    r"(?:(?:chapter|section|appendix|part)\s+)?[\dA-Z]{1,3}(?:\.\d{1,3})*[.:)]?\s+"
    r"|第[一二三四五六七八九十百千零〇\d]{1,6}[编篇部章节条]\s*|[一二三四五六七八九十]{1,3}、\s*",
    re.IGNORECASE,
)
_NO_TITLE = re.compile(
    r"(?:untitled.*|无标题.*|未命名.*|document\d*|文档\d*|powerpoint presentation"
    r"|.*\.(?:indd|qxd|tmp|dvi|rtf))\Z",
    re.IGNORECASE,
)
_WORD_TITLE = re.compile(r"Microsoft (?:Office )?(?:Word|PowerPoint|Excel) - ", re.IGNORECASE)
_LONGEST_HEADING_LINES = 3


@dataclass(frozen=True, slots=True)
class _Entry:
    """An outline entry; `page` is an index."""

    level: int
    title: str
    page: int


@dataclass(slots=True)
class _Extract:
    """What PDFium said, before any interpretation. A page that failed is None."""

    pages: list[str | None] = field(default_factory=list)
    outline: list[_Entry] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)


def parse_pdf(uri: str, data: bytes) -> Document:
    """A document of a PDF's bytes, with page marks.

    Raises UnreadableDocument when a password is needed or the file is damaged.
    """
    found = _extract(uri, data)
    pages = [_lines(page or "") for page in found.pages]
    usual_width = column_width([line for lines in pages for line in lines])
    outline: dict[int, list[_Entry]] = {}
    for entry in found.outline:
        outline.setdefault(entry.page, []).append(entry)

    parts: list[str] = []
    length = 0
    marks: list[Page] = []
    headings: list[Heading] = []
    for index, lines in enumerate(pages):
        if not lines:
            continue
        placed, lines = _place(outline.get(index, ()), lines)
        page = flow(lines, placed, usual_width)
        if parts:
            before = pages[index - 1][-1] if pages[index - 1] else ""
            overleaf = 0 not in placed and continues_overleaf(before, lines[0], usual_width)
            between = glue(before, lines[0]) if overleaf else "\n"
            parts.append(between)
            length += len(between)
        marks.append(Page(length, index + 1))
        headings += [
            Heading(length + page.starts[line], entry.level, entry.title)
            for line, entry in placed.items()
        ]
        parts.append(page.text)
        length += len(page.text)
    metadata: dict[str, Scalar] = {"pages": len(pages)}
    if author := one_line(found.metadata.get("Author", "")):
        metadata["author"] = author
    return Document(
        uri=uri,
        title=_title(found.metadata.get("Title", "")) or file_name(uri),
        media_type="application/pdf",
        text="".join(parts),
        headings=tuple(headings),
        pages=tuple(marks),
        metadata=metadata,
        warnings=tuple(_warnings(found.pages, pages)),
    )


def _extract(uri: str, data: bytes) -> _Extract:
    import pypdfium2

    found = _Extract()
    with _PDFIUM:
        try:
            pdf = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise _unreadable(uri, error) from error
        try:
            for index in range(len(pdf)):
                found.pages.append(_page_text(pdf, index))
            found.metadata = _metadata(pdf)
            found.outline = _outline(pdf)
        except pypdfium2.PdfiumError as error:
            raise _unreadable(uri, error) from error
        finally:
            pdf.close()
    return found


def _page_text(pdf: "pypdfium2.PdfDocument", index: int) -> str | None:
    import pypdfium2

    try:
        page = pdf[index]
        try:
            text: str = page.get_textpage().get_text_range()
            return text
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return None  # a damaged page; the others are still worth having


def _metadata(pdf: "pypdfium2.PdfDocument") -> dict[str, str]:
    """Title and author, as far as they are text."""
    found = {}
    for key in ("Title", "Author"):
        with suppress(UnicodeError):  # damaged strings are no reason to refuse the pages
            found[key] = pdf.get_metadata_value(key)
    return found


def _outline(pdf: "pypdfium2.PdfDocument") -> list[_Entry]:
    entries = []
    for bookmark in pdf.get_toc():
        with suppress(UnicodeError):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            title = one_line(_printed(bookmark.get_title()))
            if title and page is not None:
                entries.append(_Entry(bookmark.level + 1, title, page))
    return entries


def _unreadable(uri: str, error: "pypdfium2.PdfiumError") -> UnreadableDocument:
    name = file_name(uri)
    if getattr(error, "err_code", None) == _PASSWORD_ERROR:
        return UnreadableDocument(
            f"'{name}' is protected by a password; save a copy without one and index that"
        )
    return UnreadableDocument(
        f"'{name}' is damaged or no PDF; open it in a PDF viewer and save it again"
    )


def _printed(text: str) -> str:
    """Hyphens at line ends and forms of print resolved."""
    text = _HYPHEN.sub(lambda m: m[1] if m[1].islower() else f"-{m[1]}", text)
    text = text.replace("\u00ad", "")
    return _PRINT_FORM.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)


def _lines(page: str) -> list[str]:
    """The lines with something on them."""
    return [line for raw in clean_text(_printed(page)).split("\n") if (line := raw.strip())]


def _place(entries: Iterable[_Entry], lines: Sequence[str]) -> tuple[dict[int, _Entry], list[str]]:
    """Find outline entries on their page: line indexes with their entries, and the lines, those
    of a heading printed over several lines made one. What is not found is left out."""
    placed: dict[int, _Entry] = {}
    lines = list(lines)
    after = 0
    for entry in entries:
        wanted = {_bare(entry.title), _bare(_NUMBERING.sub("", entry.title, count=1))} - {""}
        for index in [*range(after, len(lines)), *range(min(after, len(lines)))]:
            if index in placed or (count := _heading_lines(wanted, lines, index)) == 0:
                continue
            joined = " ".join(lines[index : index + count])
            lines[index : index + count] = [joined]
            placed = {at if at < index else at - count + 1: e for at, e in placed.items()}
            placed[index] = entry
            after = index + 1
            break
    return dict(sorted(placed.items())), lines


def _heading_lines(wanted: set[str], lines: Sequence[str], index: int) -> int:
    """How many lines from `index` on are the wanted heading; 0 if they are not."""
    longest = max(map(len, wanted), default=0) + 20
    joined = ""
    for count in range(1, _LONGEST_HEADING_LINES + 1):
        if index + count > len(lines):
            return 0
        joined = f"{joined} {lines[index + count - 1]}".strip()
        if len(joined) > 2 * longest:
            return 0
        if {_bare(joined), _bare(_NUMBERING.sub("", joined, count=1))} & wanted:
            return count
    return 0


def _bare(title: str) -> str:
    return "".join(title.split()).casefold()


def _title(given: str) -> str:
    """The title from the metadata, unless a program put it there."""
    title = _WORD_TITLE.sub("", one_line(_printed(given)))
    return "" if _NO_TITLE.match(title) else title


def _warnings(raw: Sequence[str | None], pages: Sequence[Sequence[str]]) -> Iterable[str]:
    damaged = [index + 1 for index, page in enumerate(raw) if page is None]
    empty = [index + 1 for index, page in enumerate(pages) if not page and raw[index] is not None]
    if empty:
        where = f"page{'s' * (len(empty) > 1)} {number_ranges(empty)}"
        yield f"no text on {where}: OCR comes with the ocr extra"
    if damaged:
        where = f"page{'s' * (len(damaged) > 1)} {number_ranges(damaged)}"
        yield f"damaged and left out: {where}"
