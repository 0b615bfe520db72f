"""PDF: text by page, outline entries as headings where they stand on their page."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.document import Document, Heading, Scalar
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.pdf_figures import pdf_figures
from agentic_rag.documents.pdfium import Bookmark, pdf_content
from agentic_rag.documents.printed_pages import flow_pages
from agentic_rag.documents.scanned_pages import on_pages, read_scanned_pages

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


def parse_pdf(uri: str, data: bytes) -> Document:
    """A document of a PDF's bytes, with page marks; scanned pages by OCR where it is on.

    Raises UnreadableDocument when a password is needed or the file is damaged, and
    ReadingStopped.
    """
    found = pdf_content(uri, data)
    pages = [_lines(page or "") for page in found.pages]
    scans = read_scanned_pages(data, found.pages, pages)
    for index, lines in scans.pages.items():
        pages[index] = lines
    outline: dict[int, list[Bookmark]] = {}
    for entry in found.outline:
        if title := one_line(_printed(entry.title)):
            outline.setdefault(entry.page, []).append(replace(entry, title=title))
    placed: list[dict[int, Bookmark]] = []
    for index, lines in enumerate(pages):
        on_page, pages[index] = _place(outline.get(index, ()), lines)
        placed.append(on_page)
    printed = flow_pages(pages, placed)
    # What a scan shows is read with its page.
    pictures = [[] if i in scans.pages else boxes for i, boxes in enumerate(found.pictures)]
    metadata: dict[str, Scalar] = {"pages": len(pages)}
    if scans.pages:
        metadata["ocr_pages"] = len(scans.pages)
    if author := one_line(found.metadata.get("Author", "")):
        metadata["author"] = author
    damaged = [index + 1 for index, page in enumerate(found.pages) if page is None]
    warnings = list(scans.warnings)
    if damaged:
        warnings.append(f"damaged and left out:{on_pages(damaged).removeprefix(' on')}")
    return Document(
        uri=uri,
        title=_title(found.metadata.get("Title", "")) or file_name(uri),
        media_type="application/pdf",
        text=printed.text,
        headings=tuple(
            Heading(printed.starts[index][line], entry.level, entry.title)
            for index, on_page in enumerate(placed)
            for line, entry in on_page.items()
        ),
        pages=printed.pages,
        figures=pdf_figures(data, pictures, pages, printed),
        metadata=metadata,
        warnings=tuple(warnings),
    )


def _printed(text: str) -> str:
    """Hyphens at line ends and forms of print resolved."""
    text = _HYPHEN.sub(lambda m: m[1] if m[1].islower() else f"-{m[1]}", text)
    text = text.replace("\u00ad", "")
    return _PRINT_FORM.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)


def _lines(page: str) -> list[str]:
    """The lines with something on them."""
    return [line for raw in clean_text(_printed(page)).split("\n") if (line := raw.strip())]


def _place(
    entries: Iterable[Bookmark], lines: Sequence[str]
) -> tuple[dict[int, Bookmark], list[str]]:
    """Find outline entries on their page: line indexes with their entries, and the lines, those
    of a heading printed over several lines made one. What is not found is left out."""
    placed: dict[int, Bookmark] = {}
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
