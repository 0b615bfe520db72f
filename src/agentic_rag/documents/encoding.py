"""Bytes to text: which encoding a file is in, decided by strict rules before statistics.

In order: a byte order mark; UTF-8, strictly, so that a UTF-8 file is never re-read as anything
else; UTF-16 without a mark where it is obvious; what the file itself declares (`<meta charset>`,
a coding cookie); then GB18030, Big5 and Windows-1252 compared by `han_readings`. Detectors made
for long texts were no use here: charset-normalizer had 1 of 10 short samples right.
"""

import codecs
import re
from dataclasses import dataclass

from agentic_rag.documents import han_readings
from agentic_rag.documents.cleaning import clean_text

# Stands for a byte that is no text; a noncharacter, which `clean_text` removes.
_OMITTED = "\ufdd0"
_OMIT = "agentic-rag-omit"
codecs.register_error(_OMIT, lambda error: (_OMITTED, error.end))  # type: ignore[attr-defined]

# A damaged file is still worth reading when one character in this many is lost, no more.
_CHARACTERS_PER_FAULT = 1_000
_FAULT_SCORE = -20.0
# Binary files hold control characters everywhere, text files hardly any.
_CONTROL_SHARE = 0.02
_CONTROLS = re.compile("[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")
_TWO_BYTES = re.compile("[\u0080-\u07ff]")
_THREE_BYTES = re.compile("[\u0800-\ufdcf\ufdf0-\U0010ffff]")

# A text whose average character scores below this is not what the reading takes it for: Chinese
# prose has -7 to -11, bytes of other encodings read as Chinese -13 and less.
_SENSE_HAN = -12.5
_SENSE_TRADITIONAL = -11.0  # in GBK, where Japanese also finds rare characters
_SENSE_WESTERN = -13.0
# Traditional characters in GBK, and Hong Kong's additions to Big5: one file in twenty or so.
_TRADITIONAL_IN_GBK = -3.0
_HKSCS = -3.0
# UTF-16 without a mark and without a NUL (no newline, no digit) is rarer still.
_UNMARKED_UTF16 = -6.0
_UNMARKED_UTF16_BYTES = 8

_DECLARABLE = re.compile(
    r"(utf|u8|gb|hz|big5|cp|windows|iso|latin|koi8|shift|sjis|s_jis|ms932|euc|ks_c|us-ascii|ascii"
    r"|mac|tis)"
)


class NotText(Exception):
    """The bytes are no text in any encoding read here; the message says why."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Clean text (see `clean_text`), the encoding it was in, and how many faulty bytes or
    sequences had to be left out (at most one per thousand characters)."""

    text: str
    encoding: str
    omitted: int = 0


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Text of `data`. `declared` is the encoding that the file says it has, if it says any.

    Raises NotText for binary data and for encodings that are not told apart here.
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark) and (found := _tolerant(data[len(mark) :], encoding)):
            return _accept(*found, encoding)
    try:
        text = data.decode("utf-8")
        if not (han_readings.accidental_utf8(text) and _everyday_gb2312(data)):
            return _accept(text, 0, "utf-8")
        return _accept(data.decode("gb18030"), 0, "gb18030")
    except UnicodeDecodeError as error:
        fault = error.start
    except NotText:
        if b"\0" not in data:
            raise
        fault = -1
    if b"\0" in data:
        return _unmarked_utf16(data)
    named = _python_codec(declared)
    if named and (found := _tolerant(data, named)):
        return _accept(*found, named)
    return _compare(data, fault)


def _everyday_gb2312(data: bytes) -> bool:
    """Whether `data` is ASCII and characters of the first level of GB2312, nothing else."""
    everyday = han_readings.simplified()
    try:
        text = data.decode("gb2312")
    except UnicodeDecodeError:
        return False
    return all(c.isascii() or everyday.get(c, -99.0) > han_readings.EVERYDAY for c in text)


def _accept(text: str, omitted: int, encoding: str) -> Decoded:
    """The text, cleaned, unless it is full of control characters."""
    controls = sum(1 for _ in _CONTROLS.finditer(text))
    if controls > _CONTROL_SHARE * len(text):
        raise NotText("it holds binary data")
    return Decoded(clean_text(text), encoding, omitted)


def _tolerant(data: bytes, encoding: str) -> tuple[str, int] | None:
    """Decoded text and its number of faults; None when they are too many."""
    try:
        return data.decode(encoding), 0
    except UnicodeDecodeError:
        pass
    try:
        text = data.decode(encoding, _OMIT)
    except (UnicodeError, LookupError):
        return None
    faults = text.count(_OMITTED)
    return (text, faults) if faults * _CHARACTERS_PER_FAULT <= len(text) else None


def _python_codec(declared: str | None) -> str | None:
    """The codec for a declared name, widened as browsers do: a "gb2312" page may hold GBK."""
    if not declared:
        return None
    name = declared.strip().lower()
    if not _DECLARABLE.match(name):
        return None
    try:
        name = codecs.lookup(name).name
    except LookupError:
        return None
    if name in ("gb2312", "gbk", "gb18030"):
        return "gb18030"
    if name.startswith("utf-8"):
        return None  # tried already
    return {"iso8859-1": "cp1252", "ascii": "cp1252", "shift_jis": "cp932"}.get(name, name)


def _unmarked_utf16(data: bytes) -> Decoded:
    """NUL bytes: every second one in Western UTF-16, some in Chinese (newlines, digits)."""
    for encoding in ("utf-16-le", "utf-16-be"):
        found = _tolerant(data, encoding)
        if found and "\0" not in found[0] and han_readings.usual_share(found[0]) > 0.9:
            return _accept(*found, encoding)
    raise NotText("it holds binary data (NUL bytes)")


def _compare(data: bytes, fault: int) -> Decoded:
    """The most likely of the readings that are sense at all."""
    whole = data.decode("utf-8", _OMIT)
    faults = whole.count(_OMITTED)
    three_bytes = len(_THREE_BYTES.findall(whole))
    two_bytes = len(_TWO_BYTES.findall(whole))
    # Bytes of other encodings seldom look like two-byte UTF-8, hardly ever like three-byte.
    like_utf8 = three_bytes > faults or two_bytes > 20 * faults
    if like_utf8 and faults * _CHARACTERS_PER_FAULT <= len(whole):
        return _accept(whole, faults, "utf-8")
    readings: list[tuple[float, str, str, int]] = []
    for encoding, table, prior, sense in (
        ("gb18030", han_readings.simplified(), 0.0, _SENSE_HAN),
        ("gb18030", han_readings.traditional(), _TRADITIONAL_IN_GBK, _SENSE_TRADITIONAL),
        ("cp950", han_readings.traditional(), 0.0, _SENSE_HAN),
        ("big5hkscs", han_readings.traditional(), _HKSCS, _SENSE_HAN),
    ):
        if (found := _tolerant(data, encoding)) and not _CONTROLS.search(found[0]):
            score = han_readings.score_han(found[0], table)
            if score.mean >= sense:
                total = score.total + prior + _FAULT_SCORE * found[1]
                readings.append((total, encoding, *found))
    if (found := _tolerant(data, "cp1252")) and not _CONTROLS.search(found[0]):
        score = han_readings.score_western(found[0])
        if score.mean >= _SENSE_WESTERN:
            readings.append((score.total, "cp1252", found[0], 0))
    if len(data) >= _UNMARKED_UTF16_BYTES and len(data) % 2 == 0:
        for encoding in ("utf-16-le", "utf-16-be"):
            if (found := _tolerant(data, encoding)) and han_readings.usual_share(found[0]) == 1:
                score = han_readings.score_han(found[0], han_readings.everyday())
                readings.append((score.total + _UNMARKED_UTF16, encoding, *found))
    if like_utf8 and not (readings and max(readings)[3] == 0):
        raise NotText(f"it is UTF-8 with {faults} faults, the first at byte {fault}")
    if not readings:
        raise NotText(
            f"its encoding is none of UTF-8 (invalid at byte {fault}), UTF-16, GB18030, Big5 and "
            "Latin-1"
        )
    _, encoding, text, omitted = max(readings)
    return _accept(text, omitted, encoding)
