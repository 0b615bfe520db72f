"""A text as sentence spans that lie end to end: joining them gives back the text.

Lines come first, since a list item, a heading or a table row ends where its line ends whatever
its last character is; a line break inside wrapped prose is no border. Within lines `sentencex`
finds the stops. White space belongs to the sentence before it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import regex
import sentencex

from agentic_rag.text.language import HAN, language_code
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens

Span = tuple[int, int]
Layout = Literal["prose", "rows", "code"]

# Chinese uses these between clauses that stand alone (the items of a law's list).
_HAN_STOP = re.compile(f"(?<=[{HAN}])(?:；|…+|．)[”’」』）》]*")
_SHORTEST_CLAUSE = 8  # characters; a shorter piece stays with what follows
_CODE_BLOCK = 300  # characters of code that make one sentence
_WRAPPED_LINE = 40  # columns; a shorter line that ends is taken to end on purpose
_WINDOW = 4_000  # characters
_STOPS = ".!?。！？…：:;；"
_CLOSERS = "\"'”’」』）)]}》"
_CLAUSE_MARKS = re.compile(r"[，、；：,;:]+[”’」』）)\"']*|\s+")
_MARKED_LINE = re.compile(
    r"\s*(?:[-*+•·>|#=~`]|\d+[.)、．]|[(（][\w]{1,4}[)）]|[A-Za-z][.)]\s|第[\w]{1,9}[条章节])"
)


def sentence_spans(text: str, layout: Layout = "prose") -> list[Span]:
    """Spans of the sentences of `text`, in order, covering it without a gap.

    `layout` says what a line is: part of flowing text ("prose"), a record of its own ("rows"),
    or program text ("code": whole lines up to a blank one or 300 characters). Empty for a text
    of white space only.
    """
    if not text.strip():
        return []
    if layout == "rows":
        pieces = _lines(text)
    elif layout == "code":
        pieces = _code_blocks(text)
    else:
        code = language_code(text)
        pieces = (s for line in _unwrapped_lines(text) for s in _stops(text, line, code))
    return _without_blank_spans(text, pieces)


def limited_spans(text: str, spans: Iterable[Span], limit: int) -> list[tuple[Span, int]]:
    """Each span with its token count; one past `limit` tokens is cut.

    The cut falls at the last clause mark or white space of the second half of what fits, else
    between two grapheme clusters, so that no character is torn from its marks.
    """
    out: list[tuple[Span, int]] = []
    for start, end in spans:
        size = count_tokens(text[start:end])
        if size <= limit:
            out.append(((start, end), size))
            continue
        while start < end:
            stop = _cut(text, start, end, limit)
            out.append(((start, stop), count_tokens(text[start:stop])))
            start = stop
    return out


def _lines(text: str) -> Iterator[Span]:
    start = 0
    while start < len(text):
        newline = text.find("\n", start)
        end = len(text) if newline < 0 else newline + 1
        yield start, end
        start = end


def _code_blocks(text: str) -> Iterator[Span]:
    start = end = 0
    after_blank = False
    for line_start, line_end in _lines(text):
        blank = not text[line_start:line_end].strip()
        if start < line_start and not blank and (after_blank or line_end - start > _CODE_BLOCK):
            yield start, line_start
            start = line_start
        end, after_blank = line_end, blank
    if start < end:
        yield start, end


def _unwrapped_lines(text: str) -> Iterator[Span]:
    """Lines, those that only wrap joined with what they continue."""
    start: int | None = None
    before = ""
    position = 0
    for line_start, line_end in _lines(text):
        line = text[line_start:line_end]
        if start is not None and not _continues(before, line):
            yield start, line_start
            start = line_start
        start = line_start if start is None else start
        before, position = line, line_end
    if start is not None:
        yield start, position


def _continues(before: str, line: str) -> bool:
    head, tail = before.rstrip(), line.lstrip()
    if not head or not tail or _MARKED_LINE.match(line):
        return False
    if head.lstrip().startswith(("#", "|", "```", "~~~")) or head.rstrip(_CLOSERS)[-1:] in _STOPS:
        return False
    if _columns(head) < _WRAPPED_LINE:
        return False
    # Wrapped Latin text goes on anywhere; a new Latin sentence would have followed a stop.
    return tail[0].isalpha() or tail[0] in "\"'“‘(（《「"


def _columns(line: str) -> int:
    return sum(2 if c > "\u2e7f" else 1 for c in line)


def _stops(text: str, line: Span, code: str) -> Iterator[Span]:
    start = position = line[0]
    for length in _segmented(text, *line, code):
        position += length
        if position < line[1] and text[position - 1 : position + 1] == "._":
            continue  # within a name, such as obj.__init__
        yield from _clauses(text, start, position)
        start = position


def _segmented(text: str, start: int, end: int, code: str) -> Iterator[int]:
    """Lengths of the sentences of a line, which `sentencex` takes the square of its length for:
    it is given windows, whose last sentence may be half and begins the next one."""
    size = _WINDOW
    while start < end:
        window = text[start : min(end, start + size)]
        lengths = [len(sentence) for sentence in sentencex.segment(code, window)]
        if start + len(window) == end:
            yield from lengths
            return
        if len(lengths) < 2:
            size *= 2  # no stop in all of it
            continue
        yield from lengths[:-1]
        start += sum(lengths[:-1])
        size = _WINDOW


def _clauses(text: str, start: int, end: int) -> Iterator[Span]:
    for stop in _HAN_STOP.finditer(text, start, end):
        if stop.end() - start >= _SHORTEST_CLAUSE and end - stop.end() >= _SHORTEST_CLAUSE:
            yield start, stop.end()
            start = stop.end()
    yield start, end


def _without_blank_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    lead = 0  # white space at the very start waits for the first sentence
    for start, end in spans:
        if text[start:end].strip():
            out.append((lead if not out else start, end))
        elif out:
            out[-1] = (out[-1][0], end)
        else:
            lead = min(lead, start)
    return out


def _cut(text: str, start: int, end: int, limit: int) -> int:
    fits = prefix_of_tokens(text[start : min(end, start + 32 * limit)], limit)
    # Tokens are counted anew on the shorter text, which can differ by one or two.
    while len(fits) > 1 and count_tokens(fits) > limit:
        fits = fits[: -max(1, len(fits) // 100)]
    if start + len(fits) >= end:
        return end
    marks = [m.end() for m in _CLAUSE_MARKS.finditer(fits) if m.end() > len(fits) // 2]
    if marks:
        return start + marks[-1]
    # The cluster around the border must not be torn: search it from a little before.
    near = max(0, len(fits) - 64)
    borders = [
        near + m.end() for m in regex.finditer(r"\X", text[start + near : start + len(fits) + 64])
    ]
    whole = [b for b in borders if b <= len(fits)]
    return start + (whole[-1] if whole else max(1, len(fits)))
