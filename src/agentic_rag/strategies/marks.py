"""The grammar of citation marks: which brackets in a model's text name chunks.

`[12-3]`, `[12-3, 12-4]`, `【12-3】`, `[^12-3]`, `[[12-3]]`, `[chunk 12-3, p. 4]` are marks; so are
plain numbers (`[1]`, `[1, 3]`), which some models write though they were shown none. `[sic]`,
`[2024 edition]`, `[x]` and dates are text.
"""

import re
import unicodedata
from dataclasses import dataclass

OPENING = "[【［"
_CLOSING = {"[": "]", "【": "】", "［": "］"}
LONGEST = 160  # characters; a longer bracket is text

_DASH = "[-‐‑‒–—−]"
_ID = r"\d+-(?:0|[1-9]\d*)"
_LABEL = (
    r"(?:chunks?|passages?|sources?|documents?|docs?|refs?|ids?|see|cf\.?"
    r"|参见|见|来源|片段|段落|资料|文档|引用)\s*[:#]?\s*"
)
_ITEM = rf"[\^#]?(?:{_ID}|\d+)"
_PAGE = r"(?:pp?\.?\s*\d+(?:-\d+)?|pages?\s*\d+(?:-\d+)?|第\s*\d+\s*页)"
_SEPARATOR = r"(?:\s*[,;、|&]\s*|\s+(?:and|to|-)\s+|\s*(?:和|与|及|至|~)\s*|\s+)"
_GROUP = re.compile(
    rf"(?:{_LABEL})?{_ITEM}(?:{_SEPARATOR}(?:{_LABEL})?(?:{_ITEM}|{_PAGE}))*\s*[,;]?", re.IGNORECASE
)
_ITEMS = re.compile(rf"{_PAGE}|({_ITEM})", re.IGNORECASE)
_RANGE_OF_IDS = re.compile(rf"({_ID})-({_ID})")
_LINK_TARGET = re.compile(
    r"\(\s*<?([^\s()<>\[\]【】]+(?:\([^\s()\[\]]*\)[^\s()<>\[\]]*)?)>?"
    r"(?:\s+(?:\"[^\"\[\]]*\"|'[^'\[\]]*'))?\s*\)"
)
_LINK_START = re.compile(r"[#/.]|[a-z][a-z0-9+.-]*:|[^\s()]+\.[a-z]{2,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bracket:
    """A bracket at the start of a text: its length, and the names in it if it is a mark."""

    length: int
    names: tuple[str, ...]  # empty: the bracket is text


def read_bracket(text: str) -> Bracket | None:
    """The bracket `text` begins with, or None while its end has not come.

    A bracket that never closes on its line, or only after 160 characters, is text of length 1.
    """
    double = text[1:2] == text[:1]
    if len(text) == 1:
        return None
    close = _CLOSING[text[0]]
    start = 2 if double else 1
    end = text.find(close, start, LONGEST)
    line = text.find("\n", 0, LONGEST)
    if end < 0 or (0 <= line < end):
        return Bracket(1, ()) if line >= 0 or len(text) >= LONGEST else None
    inner = text[start:end]
    end += 1
    if any(c in inner for c in OPENING):
        return Bracket(1, ())
    names = names_in(inner)
    if not double:
        return Bracket(end, names)
    if end >= len(text):
        return None
    if text[end] == close:
        return Bracket(end + 1, names)
    return Bracket(1, ())  # "[[12-3] and more]": the inner one is read next


def names_in(inner: str) -> tuple[str, ...]:
    """The chunk ids and numbers in a bracket's content; empty if it is plain text."""
    text = re.split("[†‡]", unicodedata.normalize("NFKC", inner))[0]
    text = re.sub(_DASH, "-", text).strip()
    text = _RANGE_OF_IDS.sub(r"\1, \2", text)
    if not _GROUP.fullmatch(text):
        return ()
    return tuple(m.group(1).lstrip("^#") for m in _ITEMS.finditer(text) if m.group(1))


def link_target(text: str) -> int | None:
    """Length of the link target `text` begins with, 0 if none, None if it may yet come."""
    if not text:
        return None
    if text[0] != "(":
        return 0
    whole = _LINK_TARGET.match(text)
    if whole:
        return whole.end() if _LINK_START.match(whole.group(1)) else 0
    cut = re.match(r"\(\s*[^\s()]*$", text)
    return None if cut and len(text) < 500 else 0
