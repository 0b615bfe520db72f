"""Printed lines back to paragraphs: text by line, as a PDF page gives it, in; flowing text out.

A line break inside a sentence would end it for the sentence splitter and hide a phrase from
keyword search. Only the lines themselves are looked at: a line that fills the column goes on in
the next one, unless that begins a list item or is a heading.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentic_rag.documents.cleaning import CJK, glue, is_cjk

# Shares of the column's width. A ragged line ends where the next word did not fit: rarely
# before 7 tenths. A line that the next one continues in lower case may be shorter.
_FULL = 0.85
_RAGGED = 0.7
_BEFORE_LOWER_CASE = 0.4
_NARROWEST_COLUMN = 24  # a list of words is no column
_ENOUGH_LINES = 5  # to tell a page's own column from its lines

_SENTENCE_END = tuple(".!?。！？…：:；;”」』")
_ITEM = re.compile(
    r"[•◦▪■□●○‣∙·*–—-]\s"
    r"|\(?\d{1,3}[.)](?=\s)|\d{1,3}、|\(?[A-Za-z][.)]\s"
    r"|[(（][一二三四五六七八九十\d]{1,3}[)）]|[一二三四五六七八九十]{1,3}、|[①-⑳]"
    r"|第[一二三四五六七八九十百千零〇\d]{1,6}[编篇部章节条](?=\s|\Z)"
)
_WORD_BROKEN = re.compile(r"[^\W\d_][-\u2010]\Z")
_CJK_CHARACTERS = re.compile(f"[{CJK}]")


@dataclass(frozen=True, slots=True)
class Flow:
    """Flowing text, and for each line given where it now begins."""

    text: str
    starts: tuple[int, ...]


def column_width(lines: Sequence[str]) -> int:
    """Width that nine tenths of the lines do not pass, in columns (CJK characters take two)."""
    widths = sorted(width(line) for line in lines if line)
    return widths[(len(widths) * 9) // 10] if widths else 0


def page_column(lines: Sequence[str], usual_width: int) -> int:
    """Column width of one page. The few lines of a short one may all end early, or be in another
    script than the rest of the document."""
    if len(lines) >= _ENOUGH_LINES:
        return column_width(lines)
    return min(usual_width, max(usual_width // 2, *map(width, lines)))


def width(line: str) -> int:
    """Width of a line in columns of a typewriter."""
    return len(line) + len(_CJK_CHARACTERS.findall(line))


def flow(lines: Sequence[str], headings: Collection[int], usual_width: int) -> Flow:
    """Join lines (stripped, without newlines) into paragraphs, one a line.

    `headings` are the indexes of lines that stay alone; `usual_width` is the document's column
    width, for pages too short to show their own.
    """
    column = page_column(lines, usual_width)
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    for index, line in enumerate(lines):
        if index:
            before = lines[index - 1]
            alone = index in headings or index - 1 in headings
            if alone or not continues(before, line, column):
                between = "\n"
            elif _WORD_BROKEN.search(before) and line[0].islower():
                pieces[-1] = pieces[-1][:-1]
                length -= 1
                between = ""
            else:
                between = glue(before, line)
            pieces.append(between)
            length += len(between)
        starts.append(length)
        pieces.append(line)
        length += len(line)
    return Flow("".join(pieces), tuple(starts))


def continues(before: str, after: str, column: int) -> bool:
    """Whether the sentence or paragraph of one line goes on in the next."""
    if not before or not after or column < _NARROWEST_COLUMN or _ITEM.match(after):
        return False
    if _WORD_BROKEN.search(before) and after[0].islower():
        return True
    share = width(before) / column
    if before.endswith(_SENTENCE_END):
        return share >= _FULL and (
            after.endswith(_SENTENCE_END) or width(after) >= _RAGGED * column
        )
    return share >= (_BEFORE_LOWER_CASE if after[0].islower() else _RAGGED)


def continues_overleaf(before: str, after: str, column: int) -> bool:
    """The same across a page border, where headers and page numbers ask for more care."""
    if not before or before.endswith(_SENTENCE_END) or not continues(before, after, column):
        return False
    return after[0].islower() or (is_cjk(before[-1]) and is_cjk(after[0]))
