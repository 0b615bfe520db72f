"""Which figure a text means: captions ("图1-2 组网", "Figure 3: Limits") and what points to them
("如图1-2所示", "see Figure 3", "as shown below")."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag.documents.document import Document, Figure

_NUMBER = r"\d{1,4}(?:[-–.]\d{1,4}){0,4}"
_LABEL = r"(?:图|圖|(?<![A-Za-z])Fig(?:ures?|s?\.?))"
_CAPTION = re.compile(
    rf"[\W_]{{0,10}}{_LABEL}\s{{0,3}}({_NUMBER})(?!\d)[\s:：.．、,，_*—–-]{{0,10}}(.*)",
    re.IGNORECASE,
)
# After the number stands what the figure does, so the line is a sentence about it.
_SENTENCE = re.compile(
    r"(?:and|shows?|is|illustrates?|depicts?|describes?|gives?|lists?|summari[sz]es|presents?)\b"
    r"|[所显顯展给給描列中为為是和与與]",
    re.IGNORECASE,
)
_POINTER = re.compile(rf"{_LABEL}\s{{0,3}}({_NUMBER})(?!\d)", re.IGNORECASE)
# Pointers without a number, before the figure and after it.
_NEXT = re.compile(
    r"下图|下圖|见图|見圖|如图|如圖|图示如下|圖示如下"
    r"|(?:shown|depicted|illustrated|seen) (?:here|below)"
    r"|(?:following|next) (?:figure|image|picture|diagram|screenshot|chart|graph)"
    r"|(?:figure|image|picture|diagram|screenshot|chart|graph)s? below",
    re.IGNORECASE,
)
_PREVIOUS = re.compile(
    r"上图|上圖|(?:figure|image|picture|diagram|screenshot|chart|graph)s? above"
    r"|(?:previous|preceding) (?:figure|image|picture|diagram|screenshot)|shown above",
    re.IGNORECASE,
)
_MARKDOWN_IMAGE = re.compile(r"!\[[^\[\]\n]{0,1000}\](?:\([^()\n]{0,2000}\))?|<img\b[^<>]{0,2000}>")
_LONGEST_CAPTION = 200
# What programs put in place of a caption.
_FILE_NAME = re.compile(
    r"\S{0,200}\.(?:png|jpe?g|gif|bmp|tiff?|webp|svg)|image ?\d*|picture ?\d*|图片 ?\d*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure with its number and caption ("" for none), and the offset of the line behind the
    paragraph that points to it; None where the text does not."""

    figure: Figure
    number: str
    caption: str
    at: int | None


def caption_of(line: str) -> tuple[str, str] | None:
    """Number and words of a caption line; None for any other line."""
    line = line.strip()
    match = _CAPTION.match(line) if len(line) <= _LONGEST_CAPTION else None
    if match is None or _SENTENCE.match(match[2]):
        return None
    return match[1], match[2].strip(" *_")


def shown(document: Document, figures: Sequence[Figure]) -> list[Shown]:
    """Each figure with what the text says of it."""
    text = _without_images(document) if "markdown" in document.media_type else document.text
    places = _Places(document)
    pointers: dict[str, list[int]] = {}
    for match in _POINTER.finditer(text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        line = text[line_start : _line_end(text, match.start())]
        if not (match.start() - line_start <= 10 and caption_of(line)):
            pointers.setdefault(_same(match[1]), []).append(match.start())
    found = []
    for figure in figures:
        start = min(figure.start, len(text))
        before, after = _line_before(text, start), _line_after(text, start)
        number, caption = _captioned(figure, before, after)
        to_it = pointers.get(_same(number), []) if number else []
        if to_it:
            nearest = min(to_it, key=lambda at: (abs(at - start), at))
            found.append(Shown(figure, number, caption, places.behind(nearest)))
        elif _NEXT.search(before) or (_PREVIOUS.search(after)):
            found.append(Shown(figure, number, caption, start))
        else:
            found.append(Shown(figure, number, caption, None))
    return found


def _captioned(figure: Figure, before: str, after: str) -> tuple[str, str]:
    """The number and the caption of a figure: its own words, else the line after it or before."""
    for line in (figure.caption, after, before):
        if captioned := caption_of(line):
            return captioned[0], captioned[1] or figure.caption
    return "", "" if _FILE_NAME.fullmatch(figure.caption) else figure.caption


def _without_images(document: Document) -> str:
    """Markdown with its images blank, so that what they are called is no pointer."""
    return _MARKDOWN_IMAGE.sub(lambda match: " " * len(match[0]), document.text)


def _line_before(text: str, at: int) -> str:
    return text[:at].rstrip().rpartition("\n")[2]


def _line_after(text: str, at: int) -> str:
    return text[at : at + 2_000].lstrip().partition("\n")[0]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _same(number: str) -> str:
    return re.sub("[-–.]", "-", number)


class _Places:
    """Where paragraphs, tables and code end."""

    def __init__(self, document: Document) -> None:
        self._text = document.text
        # In Markdown a paragraph may have several lines.
        self._end = "\n\n" if "markdown" in document.media_type else "\n"
        tables = [(table.start, table.end) for table in document.tables]
        self._whole = sorted(tables + [(code.start, code.end) for code in document.code])

    def behind(self, at: int) -> int:
        """The offset of the line behind the paragraph, table or code at `at`."""
        found = bisect_right(self._whole, (at, len(self._text) + 1)) - 1
        if found >= 0 and at < self._whole[found][1]:
            return self._whole[found][1]
        end = self._text.find(self._end, at)
        return len(self._text) if end < 0 else end + 1
