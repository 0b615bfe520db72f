"""reStructuredText: the text as written, and its section titles.

Levels follow docutils: each style of adornment (its character, and whether it also stands above
the title) is a level, in order of first appearance.
"""

import re

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Document, Heading
from agentic_rag.documents.headings import file_name, split_title

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*\Z")
_ROLE = re.compile(r":[\w:.+-]+:`([^`<>]*?)(?:[ ]?<[^`<>]*>)?`")
_MARKED = re.compile(r"``(.+?)``|\*\*(.+?)\*\*|\*(.+?)\*|`([^`<>]+?)(?:[ ]?<[^`<>]*>)?`_{0,2}")
_SHORTEST_ADORNMENT = 4  # or as long as the title; docutils warns below that, but takes it


def parse_restructured_text(uri: str, text: str, media_type: str) -> Document:
    """A document of clean reStructuredText; a lone top section is the title."""
    title, headings = split_title(_headings(text), "", file_name(uri))
    return Document(uri=uri, title=title, media_type=media_type, text=text, headings=headings)


def _headings(text: str) -> list[Heading]:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    styles: list[tuple[str, bool]] = []
    found: list[Heading] = []
    used = -1  # the last line that belongs to a heading already
    for index in range(1, len(lines)):
        under = _adornment(lines[index])
        title = lines[index - 1]
        if not under or not title.strip() or index - 1 <= used or _adornment(title):
            continue
        over = index >= 2 and index - 2 > used and _adornment(lines[index - 2]) == under
        blank_above = index < 2 or not lines[index - 2].strip() or index - 2 == used
        if not over and (title[0].isspace() or not blank_above):
            continue
        if len(under) < min(_SHORTEST_ADORNMENT, len(title.rstrip())):
            continue
        style = (under[0], over)
        if style not in styles:
            styles.append(style)
        start = starts[index - 2] if over else starts[index - 1]
        found.append(Heading(start, styles.index(style) + 1, _without_marks(title)))
        used = index
    return [heading for heading in found if heading.text]


def _adornment(line: str) -> str:
    """The line if it is one punctuation character repeated, else nothing."""
    match = _ADORNMENT.match(line)
    return line.rstrip() if match else ""


def _without_marks(title: str) -> str:
    title = _ROLE.sub(r"\1", title)
    return one_line(_MARKED.sub(lambda match: next(g for g in match.groups() if g), title))
