"""A document's text changed here and there: its marks move along."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from agentic_rag.documents.document import Code, Document, Heading, Page, Table


@dataclass(frozen=True, slots=True)
class Edit:
    """`text[start:end]` gives way to `text`. What is put in at a place stands before all that
    begins there and behind all that ends there."""

    start: int
    end: int
    text: str = ""


def edited(document: Document, edits: Sequence[Edit]) -> Document:
    """The document after edits, which are in order and do not overlap. Headings that begin in what
    is taken out go with it; figures are dropped."""
    if not edits:
        return replace(document, figures=())
    text = document.text
    pieces = []
    at = 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    move = _Moves(edits)
    tables = [
        Table(move.begin(t.start), move.end(t.body), move.end(t.end)) for t in document.tables
    ]
    code = [Code(move.begin(c.start), move.end(c.end)) for c in document.code]
    return replace(
        document,
        text="".join([*pieces, text[at:]]),
        headings=tuple(
            Heading(move.begin(heading.start), heading.level, heading.text)
            for heading in document.headings
            if not move.takes_out(heading.start)
        ),
        pages=tuple(Page(move.begin(page.start), page.number) for page in document.pages),
        tables=tuple(t for t in tables if t.start <= t.body < t.end),
        code=tuple(c for c in code if c.start < c.end),
        figures=(),
    )


class _Moves:
    """Where offsets come to lie."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        grown = [len(edit.text) - (edit.end - edit.start) for edit in edits]
        self._grown = [0, *accumulate(grown)]

    def begin(self, offset: int) -> int:
        """The place of what begins at `offset`."""
        return self._moved(offset, bisect_right(self._starts, offset))

    def end(self, offset: int) -> int:
        """The place of what ends at `offset`."""
        return self._moved(offset, bisect_left(self._starts, offset))

    def takes_out(self, offset: int) -> bool:
        """Whether what begins at `offset` is taken out."""
        before = bisect_right(self._starts, offset) - 1
        return before >= 0 and offset < self._edits[before].end

    def _moved(self, offset: int, before: int) -> int:
        if before and offset < (edit := self._edits[before - 1]).end:
            return edit.start + self._grown[before - 1] + len(edit.text)
        return offset + self._grown[before]
