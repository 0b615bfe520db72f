"""Text made safe to store and search: newlines, invisible marks, and lines put back together.

In: any `str`, lone surrogates included. Out: a `str` that always encodes to UTF-8.
"""

import re
from collections.abc import Iterable

# Terminal colours and cursor moves, as log files hold them (ECMA-48 control sequences).
_ANSI_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_NEWLINE = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Control characters but tab and newline; the byte order mark wherever it stands (joined files
# have it in the middle); lone surrogates; code points that are no characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr((plane << 16) + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_SPACE = re.compile(r"\s+")

# Scripts written without spaces: Han with its extensions, kana, bopomofo, CJK punctuation and
# full-width forms. Hangul is not among them: Korean separates words.
CJK = (
    "\u2e80-\u2fdf\u3000-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff65\U00020000-\U0003ffff"
)
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_SPACE_IN_CJK = re.compile(f"(?<=[{CJK}])[ \t]*\n[ \t\n]*(?=[{CJK}])")


def clean_text(text: str) -> str:
    """`text` with newlines as `\\n` and without control, byte order and broken characters."""
    if "\x1b" in text:
        text = _ANSI_SEQUENCE.sub("", text)
    return _INVISIBLE.sub("", _NEWLINE.sub("\n", text))


def one_line(text: str) -> str:
    """`text` cleaned, on one line; between CJK characters a line break leaves no space."""
    text = clean_text(text)
    if "\n" in text:
        text = _SPACE_IN_CJK.sub("", text)
    return _SPACE.sub(" ", text).strip()


def glue(before: str, after: str) -> str:
    """What goes between two pieces of one sentence: nothing inside CJK text, else a space."""
    if not before or not after:
        return ""
    return "" if is_cjk(before[-1]) and is_cjk(after[0]) else " "


def is_cjk(character: str) -> bool:
    """Whether a character belongs to a script written without spaces."""
    return _CJK_CHARACTER.match(character) is not None


def number_ranges(numbers: Iterable[int]) -> str:
    """Sorted numbers for a person: `[2, 3, 4, 6]` gives `2-4, 6`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
