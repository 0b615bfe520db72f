"""How likely a decoded text is, so that GB18030, Big5 and Latin-1 can be told apart.

The same bytes often decode in all three. Which reading is meant is decided by a small language
model that needs no table of its own, since the standards hold one:

- GB2312 (1980) puts the 3,755 everyday simplified characters in its first level, by sound: a
  simplified text is spread evenly over it and seldom leaves it.
- Big5 (1984) puts its 5,401 everyday characters first and orders them by strokes. Everyday
  traditional characters have few strokes: two thirds of a text stand in lead bytes A4 to AF.
- Western accented letters come one at a time between ASCII letters, never in long runs.

A class of characters has a share of running text; a character's score is the logarithm of its
class's share over the size of the class (natural logarithms throughout). The shares are round
numbers counted on ordinary prose; the margins between readings are several times larger than
their errors (`tests/documents/test_encoding.py` holds the table of samples).
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

_RUN = re.compile(r"[^\x00-\x7f]+")

# A change from ASCII into another script, and its standing right against an ASCII letter.
_RUN_START = -4.0
_GLUED = -2.0
# The ASCII character after a run; a double-byte reading takes it as a trail byte instead.
_ASCII_LETTER = -3.0
_ASCII_OTHER = -5.0
_ADJACENT_LATIN = -2.5
# "»O", "yÔ": a closing mark before a letter, a capital after a small letter.
_UNLIKELY_BORDER = -5.0
_CLOSING = "»”›€§®™"
# No Western word has four accented letters in a row, and hardly any text holds much else than the
# characters listed in `western`: one in five is another encoding's bytes.
_FOUR_LETTERS = re.compile(r"(?:[^\W\x00-\x7f\d_]){4}")
_LISTED_SHARE = 5

_PUNCTUATION = -6.0
_KANA = -12.0
_FOUR_BYTE = -11.0
_RARE_HAN = -15.0
_UNASSIGNED = -25.0

# Above this score a character is in an everyday class (the second level of GB2312 has -11.9).
EVERYDAY = -10.0

# Two readings' worth of evidence is plenty; a longer text is judged by its first runs.
_SAMPLE = 4_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A decoded text's score: `total` compares readings of the same bytes, `mean` (per
    non-ASCII character, borders not counted) tells whether the reading is sense at all."""

    total: float
    mean: float


def _rows(encoding: str, first: int, last: int, trails: range) -> list[str]:
    """The characters of a double-byte encoding between two lead bytes, as far as assigned."""
    found = []
    for lead in range(first, last + 1):
        for trail in trails:
            character = bytes((lead, trail)).decode(encoding, "ignore")
            if len(character) == 1 and not character.isascii():
                found.append(character)
    return found


def _class(characters: list[str], share: float) -> dict[str, float]:
    return dict.fromkeys(characters, math.log(share / len(characters)))


@cache
def simplified() -> Mapping[str, float]:
    """Score of each character in simplified Chinese prose."""
    upper = range(0xA1, 0xFF)
    table = _class(_rows("gb2312", 0xA3, 0xA3, upper), 0.01)
    table |= dict.fromkeys(_rows("gb2312", 0xA4, 0xA5, upper), _KANA)
    table |= _class(_rows("gb2312", 0xB0, 0xD7, upper), 0.93)
    table |= _class(_rows("gb2312", 0xD8, 0xF7, upper), 0.02)
    return table | dict.fromkeys("，。、；：？！“”‘’（）《》【】—…·　", _PUNCTUATION)


@cache
def traditional() -> Mapping[str, float]:
    """Score of each character in traditional Chinese prose."""
    trails = range(0x40, 0xFF)
    table = _class(_rows("cp950", 0xC9, 0xF9, trails), 0.01)
    table |= _class(_rows("cp950", 0xA4, 0xAF, trails), 0.62)
    table |= _class(_rows("cp950", 0xB0, 0xC6, trails), 0.32)
    return table | dict.fromkeys("，。、；：？！「」『』（）《》〈〉【】—…‧　", _PUNCTUATION)


@cache
def everyday() -> Mapping[str, float]:
    """Score of each character in Chinese prose of either kind."""
    return {
        character: max(simplified().get(character, -99.0), traditional().get(character, -99.0))
        for character in simplified().keys() | traditional().keys()
    }


@cache
def western() -> Mapping[str, float]:
    """Score of each non-ASCII character in West European prose."""
    table = dict.fromkeys("àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœš", -4.5)
    table |= dict.fromkeys("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠžŽß", -6.5)
    table |= dict.fromkeys("ªº²³¹¼½¾±×÷µ·´¨¶†‡‰¬¦¢¥", -12.0)
    table |= dict.fromkeys("“”‘’„–—…«»‹›°€£§©®™·•¿¡\u00a0", -5.5)
    return table


def score_han(text: str, table: Mapping[str, float]) -> Reading:
    """Score a double-byte reading. `table` is `simplified()` or `traditional()`."""
    total, characters, seen = 0.0, 0.0, 0
    for run in _RUN.finditer(text):
        total += _RUN_START + _border(text, run.end())
        total += _GLUED * (_letter_at(text, run.start() - 1) + _letter_at(text, run.end()))
        for character in run.group():
            characters += table.get(character) or _unlisted_han(character)
        seen += run.end() - run.start()
        if seen > _SAMPLE:
            break
    return Reading(total + characters, characters / max(seen, 1))


def score_western(text: str) -> Reading:
    """Score a single-byte reading (Windows-1252, of which Latin-1 is the printable part)."""
    table = western()
    total, characters, seen = 0.0, 0.0, 0
    for run in _RUN.finditer(text):
        total += _border(text, run.end()) + _ADJACENT_LATIN * (run.end() - run.start() - 1)
        if text[run.end() - 1] in _CLOSING and _letter_at(text, run.end()):
            total += _UNLIKELY_BORDER
        if run.start() and text[run.start() - 1].islower() and text[run.start()].isupper():
            total += _UNLIKELY_BORDER
        characters += sum(table.get(character, -13.0) for character in run.group())
        seen += run.end() - run.start()
        if seen > _SAMPLE:
            break
    unlisted = sum(not c.isascii() and c not in table for c in text[:_SAMPLE])
    if unlisted * _LISTED_SHARE > seen or _FOUR_LETTERS.search(text[:_SAMPLE]):
        return Reading(total + characters, -math.inf)
    return Reading(total + characters, (total + characters) / max(seen, 1))


def usual_share(text: str) -> float:
    """Share of `text` that is ASCII, everyday Chinese or West European, by a sample."""
    sample = text[:_SAMPLE]
    usual = sum(
        (character.isascii() and (character.isprintable() or character in "\t\n\r"))
        or everyday().get(character, -99.0) > EVERYDAY
        or character in western()
        for character in sample
    )
    return usual / max(len(sample), 1)


def _border(text: str, position: int) -> float:
    if position >= len(text) or text[position] in "\r\n":
        return 0.0
    return _ASCII_LETTER if text[position].isalpha() or text[position] == " " else _ASCII_OTHER


def _letter_at(text: str, position: int) -> bool:
    return 0 <= position < len(text) and text[position].isalpha()


def _unlisted_han(character: str) -> float:
    """Score of a character outside the everyday classes."""
    if unicodedata.category(character) in ("Cn", "Co"):
        return _UNASSIGNED  # where decoders put what the standard leaves free
    # Four bytes with digits at fixed places: hardly anything but GB18030 has that shape.
    return _FOUR_BYTE if len(character.encode("gb18030")) == 4 else _RARE_HAN


# Words as UTF-8 has them in two bytes a letter: one script each, and the marks around them.
_TWO_BYTE_WORD = re.compile(
    "[\u00a0-\u00bf]*(?:[\u00c0-\u017f\u0218-\u021b][\u00c0-\u017f\u0218-\u021b\u0300-\u036f]*"
    "|[\u0300-\u036f]+|[\u0384-\u03ce]+|[\u0400-\u045f\u0490\u0491]+|[\u0531-\u0587]+"
    "|[\u05b0-\u05ea]+|[\u060c-\u0652\u0660-\u0669\u0671-\u06d3]+)?[\u00a0\u00ab\u00bb\u00b7\u00b0]*"
)
_ACCIDENTAL_AT_MOST = 16  # letters; a longer GBK text has bytes that UTF-8 forbids


def accidental_utf8(text: str) -> bool:
    """Whether valid UTF-8 is so odd that a short GBK text must have happened to be valid.

    "状态" in GBK is also the UTF-8 of a Hebrew mark with a caron below, "系统" that of two letters
    no language writes together. Only two-byte sequences can coincide.
    """
    runs = _RUN.findall(text[:_SAMPLE])
    letters = "".join(runs)
    if not letters or len(text) > _SAMPLE or len(letters) > _ACCIDENTAL_AT_MOST:
        return False
    return max(letters) <= "\u07ff" and any(
        len(run) > 1 and not _TWO_BYTE_WORD.fullmatch(run) for run in runs
    )
