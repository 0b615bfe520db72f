"""Pages of printed lines -> one flowing text, with a mark where each page begins."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentic_rag.documents.cleaning import glue
from agentic_rag.documents.document import Page
from agentic_rag.documents.paragraphs import column_width, continues_overleaf, flow


@dataclass(frozen=True, slots=True)
class Printed:
    """The text of all pages; of each page given, where each of its lines now begins."""

    text: str
    pages: tuple[Page, ...]
    starts: tuple[tuple[int, ...], ...]


def flow_pages(
    pages: Sequence[Sequence[str]], headings: Sequence[Collection[int]] | None = None
) -> Printed:
    """Join the lines of each page into paragraphs, also from one page to the next.

    Lines are stripped; an empty one, never first or last, ends a paragraph. `headings` are the
    indexes, page by page, of lines that stay alone. A page without lines leaves no mark, and the
    others keep their numbers.
    """
    usual_width = column_width([line for lines in pages for line in lines])
    parts: list[str] = []
    length = 0
    marks: list[Page] = []
    starts: list[tuple[int, ...]] = []
    for index, lines in enumerate(pages):
        if not lines:
            starts.append(())
            continue
        alone = headings[index] if headings else ()
        page = flow(lines, alone, usual_width)
        if parts:
            before = pages[index - 1][-1] if pages[index - 1] else ""
            overleaf = 0 not in alone and continues_overleaf(before, lines[0], usual_width)
            between = glue(before, lines[0]) if overleaf else "\n"
            parts.append(between)
            length += len(between)
        marks.append(Page(length, index + 1))
        starts.append(tuple(length + start for start in page.starts))
        parts.append(page.text)
        length += len(page.text)
    return Printed("".join(parts), tuple(marks), tuple(starts))
