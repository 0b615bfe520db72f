"""Markdown: the text as written (it is shown to people), its headings and front matter.

Headings follow CommonMark 0.31 with two deliberate limits: a Setext heading is one line, since
a rule drawn under a longer paragraph is hardly ever meant as a heading, and block quotes and
list items hold none.
"""

import re

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Document, Heading
from agentic_rag.documents.figure_marks import markdown_figures
from agentic_rag.documents.front_matter import split_front_matter
from agentic_rag.documents.headings import file_name, split_title
from agentic_rag.documents.tables import pipe_tables

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*)|[ \t]*)\Z")
_CLOSING_MARKS = re.compile(r"(?:\A|[ \t])#+[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_HTML_HEADING = re.compile(r" {0,3}<h([1-6])\b[^>]*>(.*?)</h\1>", re.IGNORECASE)
# Lines that are no paragraph, so that a rule below them is only a rule.
_NO_PARAGRAPH = re.compile(r" {0,3}(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]|\||<)| {4}|\t")

_ATTRIBUTES = re.compile(r"[ \t]*\{[#.:][^{}]*\}\Z")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_CODE = re.compile(r"(`+)(.+?)\1")
_EMPHASIS = re.compile(r"(\*\*\*|\*\*|\*|~~|(?<!\w)(?:___|__|_)(?=\S))(.+?)\1(?!\w)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_LONGEST_HEADING = 1_000


def parse_markdown(uri: str, text: str, media_type: str) -> Document:
    """A document of clean Markdown; front matter becomes metadata and leaves the text."""
    metadata, body = split_front_matter(text)
    given = metadata.pop("title", "")
    title, headings = split_title(markdown_headings(body), str(given), file_name(uri))
    tables = pipe_tables(body)
    return Document(
        uri=uri,
        title=title,
        media_type=media_type,
        text=body,
        headings=headings,
        tables=tables,
        figures=markdown_figures(body, tables),
        metadata=metadata,
    )


def markdown_headings(text: str) -> list[Heading]:
    """The headings of clean Markdown, in order, the title among them."""
    found: list[Heading] = []
    fence = ""
    in_comment = False
    paragraph = 0  # lines of the paragraph above
    start = previous_start = 0
    previous = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            if opening and opening[1].startswith(fence) and not opening[2].strip():
                fence = ""
            paragraph = 0
        elif in_comment:
            in_comment = "-->" not in line
            paragraph = 0
        elif opening and not (opening[1][0] == "`" and "`" in opening[2]):
            fence, paragraph = opening[1], 0
        elif line.lstrip().startswith("<!--"):
            in_comment, paragraph = "-->" not in line, 0
        elif match := _ATX.match(line):
            marked = _CLOSING_MARKS.sub("", match[2] or "")
            _add(found, start, len(match[1]), marked)
            paragraph = 0
        elif match := _HTML_HEADING.match(line):
            _add(found, start, int(match[1]), match[2])
            paragraph = 0
        elif paragraph == 1 and (match := _SETEXT.match(line)):
            _add(found, previous_start, 1 if match[1][0] == "=" else 2, previous)
            paragraph = 0
        elif not line.strip() or (not paragraph and _NO_PARAGRAPH.match(line)):
            paragraph = -1 if line.strip() else 0
        elif paragraph >= 0:
            paragraph += 1
        previous, previous_start = line, start
        start += len(line) + 1
    return found


def _add(found: list[Heading], start: int, level: int, marked: str) -> None:
    if text := without_marks(marked):
        found.append(Heading(start, level, text))


def without_marks(marked: str) -> str:
    """A heading as it reads once rendered: no emphasis, links, code marks, ids or tags."""
    text = _ATTRIBUTES.sub("", marked.strip()[:_LONGEST_HEADING])
    text = _TAG.sub("", _IMAGE_OR_LINK.sub(r"\1", _IMAGE_OR_LINK.sub(r"\1", text)))
    pieces = []
    position = 0
    for code in _CODE.finditer(text):  # what stands in code is not marked up
        pieces += [_plain(text[position : code.start()]), code[2].strip()]
        position = code.end()
    return one_line("".join([*pieces, _plain(text[position:])]))


def _plain(text: str) -> str:
    for _ in range(2):  # emphasis inside emphasis
        text = _EMPHASIS.sub(r"\2", text)
    return _ESCAPED.sub(r"\1", text)
