"""The pictures on a PDF's pages as figures: each with the caption that stands on its page."""

from collections.abc import Sequence
from functools import partial

from agentic_rag.documents import pdfium, reading
from agentic_rag.documents.captions import caption_of
from agentic_rag.documents.document import Figure
from agentic_rag.documents.pdfium import Box
from agentic_rag.documents.printed_pages import Printed


def pdf_figures(
    data: bytes,
    pictures: Sequence[Sequence[Box]],
    pages: Sequence[Sequence[str]],
    printed: Printed,
) -> tuple[Figure, ...]:
    """The figures of pages, whose lines are `pages`; a page's pictures and its captions belong
    together in the order they stand in, where they are as many. What has no caption stands at the
    end of its page."""
    dpi = reading.in_force().ocr.dpi
    text = printed.text
    found = []
    for index, (boxes, lines) in enumerate(zip(pictures, pages, strict=True)):
        starts = printed.starts[index]
        captions = [(starts[n], line) for n, line in enumerate(lines) if caption_of(line)]
        end = _page_end(printed, index)
        for number, box in enumerate(boxes):
            start, caption = end, ""
            if len(captions) == len(boxes):
                at, caption = captions[number]
                newline = text.find("\n", at)
                start = end if newline < 0 else newline + 1
            name = f"page {index + 1}, picture {number + 1}"
            read = partial(pdfium.figure, data, index, box, dpi)
            found.append(Figure(start, name, caption, read))
    return tuple(sorted(found, key=lambda figure: figure.start))


def _page_end(printed: Printed, index: int) -> int:
    after = (page.start for page in printed.pages if page.number and page.number > index + 1)
    return next(after, len(printed.text))
