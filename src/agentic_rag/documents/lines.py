"""The text of a document written block by block, with marks of its headings and tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.document import Figure, Heading, Table

_SOFT_HYPHEN = "\u00ad"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document: a paragraph, a heading (`level` from 1), a list item, or a table.

    Of a table `rows` hold the cells, the first `heading_rows` of them the heading. `figures` stand
    behind it, wherever they say they begin.
    """

    text: str = ""
    level: int = 0
    item: bool = False
    rows: tuple[tuple[str, ...], ...] = ()
    heading_rows: int = 1
    figures: tuple[Figure, ...] = ()


class Lines:
    """Text under construction."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._tables: list[Table] = []
        self._after_item = False
        self.figures: list[Figure] = []

    def add(self, blocks: Iterable[Block]) -> None:
        """Append blocks in order."""
        for block in blocks:
            if block.rows:
                self.table(block.rows, block.heading_rows)
            elif block.level:
                self.heading(block.level, block.text)
            else:
                self.paragraph(block.text, item=block.item)
            self.figures += [replace(figure, start=self._length + 2) for figure in block.figures]

    def heading(self, level: int, text: str) -> None:
        """Append a heading line; nothing for an empty one."""
        if line := shown_line(text):
            self._headings.append(Heading(self._append(line), level, line))

    def paragraph(self, text: str, item: bool = False) -> None:
        """Append a paragraph, its line breaks kept; an `item` follows another without a gap."""
        lines = (shown_line(line) for line in clean_text(text).split("\n"))
        if kept := "\n".join(line for line in lines if line):
            self._append(kept, tight=item and self._after_item)
            self._after_item = item

    def table(self, rows: Iterable[Sequence[str]], heading_rows: int = 1) -> None:
        """Append rows, one a line with its cells between ` | `; the first `heading_rows` of them
        are repeated in every chunk of the table."""
        lines = [line for row in rows if (line := row_of_cells(row))]
        if not lines:
            return
        start = self._append("\n".join(lines))
        heading = sum(len(line) + 1 for line in lines[:heading_rows])
        if len(lines) > heading_rows:
            self._tables.append(Table(start, start + heading, self._length))

    def records(self, lines: Sequence[str]) -> None:
        """Append lines that each stand by themselves."""
        if lines:
            start = self._append("\n".join(lines))
            self._tables.append(Table(start, start, self._length))

    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._length

    def finish(self) -> tuple[str, tuple[Heading, ...], tuple[Table, ...]]:
        """The text, its headings and its tables."""
        text = "".join(self._parts)
        # The empty line after a table belongs to its last row: by itself it would be a sentence.
        tables = (Table(t.start, t.body, min(t.end + 2, len(text))) for t in self._tables)
        return text, tuple(self._headings), tuple(tables)

    def _append(self, text: str, tight: bool = False) -> int:
        gap = ("\n" if tight else "\n\n") if self._length else ""
        start = self._length + len(gap)
        self._parts += [gap, text]
        self._length = start + len(text)
        self._after_item = False
        return start


def shown_line(text: str) -> str:
    """A line as it is shown: clean, its spaces single, without soft hyphens."""
    return one_line(text.replace(_SOFT_HYPHEN, ""))


def row_of_cells(cells: Sequence[str]) -> str:
    """A row as one line, its cells between ` | `; "" where all are empty."""
    shown = [shown_line(cell) for cell in cells]
    while shown and not shown[-1]:
        shown.pop()
    return one_line(" | ".join(shown)) if any(shown) else ""


def below_title(blocks: Sequence[Block]) -> list[Block]:
    """Blocks whose headings begin at level 2, level 1 being titles; without any title, one less."""
    if any(block.level == 1 for block in blocks):
        return list(blocks)
    return [replace(block, level=block.level - 1) if block.level else block for block in blocks]


def flat(block: Block) -> str:
    """A block on one line: a table's cells between commas, its rows between semicolons."""
    if block.rows:
        return "; ".join(
            ", ".join(filter(None, map(shown_line, row))) for row in block.rows if row_of_cells(row)
        )
    return shown_line(block.text.replace("\n", " "))
