"""Numbers of a spreadsheet as its reader sees them, by the cell's format code (ECMA-376 part 1,
18.8.30-31): percentages, thousands, currencies. Dates are given as ISO 8601 whatever their format,
so that all of them can be found and compared.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Literal

Kind = Literal["general", "number", "date", "time", "duration"]

# Formats that a file names only by their number; those of East Asian editions are dates as well.
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0", 6: "$#,##0", 7: "$#,##0.00",
    8: "$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0",
    38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 41: "#,##0", 42: "$#,##0", 43: "#,##0.00",
    44: "$#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    **dict.fromkeys((27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33, 34, 35, 55, 56), "h:mm:ss"),
}  # fmt: skip

_CURRENCY = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)')
_PADDING = re.compile(r"[_*].")
_DURATION = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_DIGITS = re.compile(r"[#0?][#0?,.]*")
_PLAIN_LITERALS = " ()+-$¥€£￥%/:元"
_EPOCH_1900 = datetime(1899, 12, 30)
_EPOCH_1904 = datetime(1904, 1, 1)
_LAST_SERIAL = 2_958_466  # the day after 9999-12-31
_DAY_SECONDS = 86_400
_MOST_PLACES = 1e15  # digits that a number in a spreadsheet keeps


@dataclass(frozen=True, slots=True)
class Format:
    """What a format code makes of a number. Of a `number`: the text around it, its decimals, its
    least digits before the point, whether thousands are parted, and what it is multiplied by."""

    kind: Kind
    before: str = ""
    after: str = ""
    decimals: int = 0
    digits: int = 1
    fixed_decimals: int = 0
    thousands: bool = False
    factor: int = 1


_GENERAL = Format("general")


@cache
def read_format(code: str) -> Format:
    """The format that a code describes; the general one where it is not understood."""
    section = code.split(";")[0]
    if _DURATION.search(section):
        return Format("duration")
    section = _CURRENCY.sub(lambda found: f'"{found[1]}"', section)
    section = _PADDING.sub("", _BRACKETS.sub("", section))
    bare = _LITERAL.sub("", section).lower().replace("general", "")
    if re.search(r"[ymdhs]", bare) or not _DIGITS.search(bare):
        letters = set(bare) & set("ymdhs")
        if letters & set("yd") or letters == {"m"}:
            return Format("date")
        if letters & set("hs"):
            return Format("time")
        return _GENERAL
    if re.search(r"e[+-]|/", bare):
        return _GENERAL
    return _number_format(section)


def shown_number(value: float, code: str, epoch_1904: bool = False) -> str:
    """A number as its cell shows it, dates and times in ISO 8601."""
    found = read_format(code)
    if found.kind == "general":
        return plain_number(value)
    if found.kind != "number":
        return _shown_time(value, found.kind, epoch_1904)
    if not abs(value) < _MOST_PLACES:
        return plain_number(value)
    scaled = Decimal(repr(abs(value))) * found.factor
    rounded = scaled.quantize(Decimal(1).scaleb(-found.decimals), ROUND_HALF_UP)
    text = f"{rounded:{',' if found.thousands else ''}f}"
    whole, point, part = text.partition(".")
    while len(part) > found.fixed_decimals and part.endswith("0"):
        part = part[:-1]
    whole = whole.zfill(found.digits) if not found.thousands else whole
    sign = "-" if value < 0 and float(text.replace(",", "")) else ""
    return f"{sign}{found.before}{whole}{point if part else ''}{part}{found.after}"


def plain_number(value: float) -> str:
    """A number with the 15 digits that a spreadsheet keeps, so that 0.1 + 0.2 is 0.3."""
    if abs(value) < _MOST_PLACES and value == int(value):
        return str(int(value))
    return f"{value:.15g}"


def iso(moment: date | datetime) -> str:
    """A date, or a date and time where there is one: `2024-03-01`, `2024-03-01 08:30`."""
    if not isinstance(moment, datetime) or not (moment.hour or moment.minute or moment.second):
        return moment.strftime("%Y-%m-%d") if moment.year > 999 else moment.isoformat()[:10]
    return moment.isoformat(sep=" ", timespec="seconds" if moment.second else "minutes")


def _number_format(section: str) -> Format:
    match = None
    pieces: list[tuple[str, bool]] = []  # text, and whether it is meant as it is
    at = 0
    for literal in _LITERAL.finditer(section):
        pieces += [(section[at : literal.start()], False), (literal[1] or literal[2] or "", True)]
        at = literal.end()
    pieces.append((section[at:], False))
    before, after = "", ""
    for text, is_literal in pieces:
        found = None if is_literal or match else _DIGITS.search(text)
        if found:
            before += _kept(text[: found.start()])
            after += _kept(text[found.end() :])
            match = found[0]
        elif match:
            after += text if is_literal else _kept(text)
        else:
            before += text if is_literal else _kept(text)
    if match is None or match.endswith(","):  # shown in thousands: the number itself is clearer
        return _GENERAL
    whole, _, part = match.partition(".")
    percent = "%" in before + after
    return Format(
        "number",
        before.lstrip().lstrip("(-+"),
        after.rstrip().rstrip(")"),
        min(len(part), 12),
        max(1, whole.replace(",", "").count("0")),
        part.count("0"),
        "," in whole,
        100 if percent else 1,
    )


def _kept(text: str) -> str:
    return "".join(c for c in text if c in _PLAIN_LITERALS)


def _shown_time(value: float, kind: Kind, epoch_1904: bool) -> str:
    if not 0 <= value < _LAST_SERIAL:
        return plain_number(value)
    seconds = round(value * _DAY_SECONDS)
    if kind == "duration" or (kind == "time" and value < 1):
        hours, rest = divmod(seconds, 3_600)
        minutes, seconds = divmod(rest, 60)
        return f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")
    # Day 60 of the epoch of 1900 is a 29 February that never was.
    days = 1 if not epoch_1904 and value < 60 else 0
    try:
        return iso(
            (_EPOCH_1904 if epoch_1904 else _EPOCH_1900) + timedelta(days=days, seconds=seconds)
        )
    except OverflowError:
        return plain_number(value)
