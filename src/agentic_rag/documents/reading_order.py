"""Lines found in a picture -> rows of text in reading order.

Text side by side is read as columns where both sides are running text, and row by row elsewhere
(a table, a form). A gap that is higher than those between lines ends a paragraph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from agentic_rag.documents.cleaning import glue
from agentic_rag.documents.paragraphs import width

# A column has this many lines or more, most of them this long in typewriter columns, and they
# fill this share of it: the cells of a table do not.
_COLUMN_LINES = 4
_COLUMN_WIDTH = 14
_FILLED = 0.6
# Lines that cross from column to column (headings, captions), as a share of all.
_CROSSING = 0.34
_SAME_ROW = 0.5  # of the lower line's height
_CLOSE = 1.0
_PARAGRAPH_GAP = 1.6  # times the usual distance from line to line
_STRAIGHT = 0.002  # radians; a page turned by less need not be turned back


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line as recognised: `confidence` from 0 to 1; `box` are its corners (x, y) in pixels,
    clockwise from the one where it begins to be read."""

    text: str
    confidence: float
    box: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line on a page that stands straight, in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def rows(lines: Sequence[TextLine]) -> list[str]:
    """The rows of text as they are read, an empty one where a paragraph ends (never first, last
    or twice)."""
    found: list[str] = []
    bottom = float("inf")
    for block in _columns(_straightened(lines)):
        # From the foot of one column to the head of the next a paragraph may go on.
        if min(line.top for line in block) > bottom:
            found.append("")
        found += _rows(block)
        bottom = max(line.middle for line in block)
    return found


def _straightened(lines: Sequence[TextLine]) -> list[_Placed]:
    """The lines with the page's slope taken out, so that equal heights are equal rows."""
    if not lines:
        return []
    corners = np.array([line.box for line in lines], dtype=float)
    along = corners[:, 1] - corners[:, 0]
    lengths = np.hypot(along[:, 0], along[:, 1])
    longest = lengths >= np.median(lengths)
    slope = float(np.median(np.arctan2(along[longest, 1], along[longest, 0])))
    if _STRAIGHT < abs(slope) < np.pi / 8:
        cosine, sine = np.cos(slope), np.sin(slope)
        corners = corners @ np.array([[cosine, -sine], [sine, cosine]])
    # A line's own slope makes its box no higher: the sides' means, not their extremes.
    left, right = corners[:, (0, 3), 0].mean(1), corners[:, (1, 2), 0].mean(1)
    top, bottom = corners[:, (0, 1), 1].mean(1), corners[:, (2, 3), 1].mean(1)
    return [
        _Placed(line.text, min(x, u), min(y, v), max(x, u), max(y, v))
        for line, x, y, u, v in zip(lines, left, top, right, bottom, strict=True)
    ]


def _columns(lines: list[_Placed]) -> list[list[_Placed]]:
    """Blocks in reading order; inside each, rows are read from top to bottom."""
    gutter = _gutter(lines)
    if gutter is None:
        return [lines] if lines else []
    crossing = [line for line in lines if line.left < gutter < line.right]
    beside = [line for line in lines if not line.left < gutter < line.right]
    blocks = []
    # A crossing line parts what is above it from what is below.
    for line in [*sorted(crossing, key=lambda line: line.middle), None]:
        above = [one for one in beside if line is None or one.middle < line.middle]
        beside = [one for one in beside if one not in above]
        blocks += _columns([one for one in above if one.right <= gutter])
        blocks += _columns([one for one in above if one.left >= gutter])
        if line is not None:
            blocks.append([line])
    return _joined(blocks)


def _joined(blocks: Sequence[list[_Placed]]) -> list[list[_Placed]]:
    """Single lines that follow each other (those that cross the columns) as one block."""
    found: list[list[_Placed]] = []
    for block in blocks:
        if found and len(block) == 1 and block[0].top > found[-1][-1].middle:
            before = found[-1][-1]
            overlap = min(block[0].right, before.right) - max(block[0].left, before.left)
            if overlap > 0 and len(found[-1]) < _COLUMN_LINES:
                found[-1].append(block[0])
                continue
        found.append(list(block))
    return found


def _gutter(lines: Sequence[_Placed]) -> float | None:
    """Where a white strip parts two columns of running text, if one does."""
    if len(lines) < 2 * _COLUMN_LINES:
        return None
    best: tuple[int, float] | None = None
    for at in _left_edges(lines):
        crossing = sum(one.left < at < one.right for one in lines)
        if crossing > _CROSSING * len(lines) or (best and crossing >= best[0]):
            continue
        sides = (
            [one for one in lines if one.right <= at],
            [one for one in lines if one.left >= at],
        )
        if all(map(_is_running_text, sides)) and _abreast(*sides):
            best = (crossing, at)
    return best[1] if best else None


def _left_edges(lines: Sequence[_Placed]) -> list[float]:
    """Where several lines begin below each other, which is where a column may."""
    tolerance = median(line.height for line in lines)
    edges: list[list[float]] = []
    for left in sorted(line.left for line in lines):
        if edges and left - edges[-1][0] <= tolerance:
            edges[-1].append(left)
        else:
            edges.append([left])
    return [edge[0] - 0.5 for edge in edges if len(edge) >= _COLUMN_LINES - 1]


def _is_running_text(side: Sequence[_Placed]) -> bool:
    """Whether lines are a column of running text, or several side by side."""
    if len(side) < _COLUMN_LINES or median(width(line.text) for line in side) < _COLUMN_WIDTH:
        return False
    extent = max(line.right for line in side) - min(line.left for line in side)
    filled = median(line.right - line.left for line in side) >= _FILLED * extent
    return filled or _gutter(side) is not None


def _abreast(left: Sequence[_Placed], right: Sequence[_Placed]) -> bool:
    """Whether two columns stand beside each other and not one below the other."""
    top = max(min(line.top for line in side) for side in (left, right))
    bottom = min(max(line.bottom for line in side) for side in (left, right))
    return bottom - top > 2 * median(line.height for line in (*left, *right))


def _rows(lines: Sequence[_Placed]) -> list[str]:
    """Lines at the same height joined from left to right, an empty row in each high gap."""
    grouped: list[list[_Placed]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        row = grouped[-1] if grouped else []
        if row and line.middle - row[-1].middle < _SAME_ROW * min(line.height, row[-1].height):
            row.append(line)
        else:
            grouped.append([line])
    middles = [median(line.middle for line in row) for row in grouped]
    steps = [below - above for above, below in pairwise(middles)]
    usual = median(steps) if steps else 0.0
    found: list[str] = []
    for index, row in enumerate(grouped):
        if index and steps[index - 1] > _PARAGRAPH_GAP * usual:
            found.append("")
        found.append(_joined_row(sorted(row, key=lambda line: line.left)))
    return found


def _joined_row(row: Sequence[_Placed]) -> str:
    """Pieces of one row: between close ones in Chinese, as beside a comma, nothing is missing."""
    text = row[0].text
    for before, line in pairwise(row):
        close = line.left - before.right < _CLOSE * min(line.height, before.height)
        text += (glue(text, line.text) if close else " ") + line.text
    return text
