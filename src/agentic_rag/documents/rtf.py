"""Rich text as Outlook stores the bodies of messages: unpacked, and turned back into HTML or text.

The packing is [MS-OXRTFCP] (LZFu); HTML wrapped into RTF is [MS-OXRTFEX]; the rest is RTF 1.9.1,
of which the text is read, with its paragraphs and the cells of its tables, and nothing of its look.
"""

import codecs
import re
import struct
from dataclasses import dataclass, replace
from typing import Literal

from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.mail_text import code_page

_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_WINDOW = 4_096
_PACKED, _PLAIN = 0x75465A4C, 0x414C454D  # "LZFu", "MELA"

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n]+|([^\\{}\r\n]+)",
    re.DOTALL,
)
# Groups whose text is not the document's.
_HIDDEN = frozenset(
    b"fonttbl colortbl stylesheet info pict object objdata themedata datastore listtable "
    b"listoverridetable rsidtbl generator filetbl revtbl xmlnstbl mmathpr latentstyles fldinst "
    b"bkmkstart bkmkend nonshppict".split()
)
_BREAKS = {b"par": "\n", b"line": "\n", b"sect": "\n\n", b"page": "\n", b"row": "\n", b"tab": "\t",
           b"cell": " | ", b"nestcell": " | ", b"nestrow": "\n",
           b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”", b"bullet": "•",
           b"endash": "–", b"emdash": "—", b"emspace": " ", b"enspace": " "}  # fmt: skip
_SYMBOLS = {b"~": " ", b"_": "-", b"{": "{", b"}": "}", b"\\": "\\", b"\n": "\n", b"\r": "\n"}
# Character sets of fonts as code pages (RTF 1.9.1, \fcharset).
_CHARSETS = {77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253,
             162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874,
             238: 1250}  # fmt: skip

_LAST_CELL = re.compile(r" \|[ \t]*$", re.MULTILINE)

Kind = Literal["html", "text"]


class DamagedRtf(Exception):
    """The bytes are no RTF, or were packed wrongly."""


def unpacked(data: bytes, most: int) -> bytes:
    """RTF from its packed form, no more than `most` bytes. Raises DamagedRtf."""
    try:
        _, raw_size, kind, _ = struct.unpack_from("<IIII", data)
    except struct.error as error:
        raise DamagedRtf("it is cut short") from error
    if raw_size > most:
        raise DamagedRtf(f"it would unpack to more than {most // 1_000_000} MB")
    if kind == _PLAIN:
        return data[16 : 16 + raw_size]
    if kind != _PACKED:
        raise DamagedRtf("it is packed in an unknown way")
    window = bytearray(_DICTIONARY.ljust(_WINDOW, b"\0"))
    end = len(_DICTIONARY)  # where the window is written next
    out = bytearray()
    position = 16
    try:
        while len(out) < raw_size:
            control = data[position]
            position += 1
            for bit in range(8):
                if control >> bit & 1:
                    reference = data[position] << 8 | data[position + 1]
                    position += 2
                    start, length = reference >> 4, (reference & 15) + 2
                    if start == end:
                        return bytes(out)
                else:
                    window[end] = data[position]
                    position += 1
                    start, length = end, 1
                # Byte by byte, since a reference may reach into what it is just writing.
                for _ in range(length):
                    byte = window[start]
                    window[end] = byte
                    out.append(byte)
                    start, end = (start + 1) % _WINDOW, (end + 1) % _WINDOW
    except IndexError as error:
        if not out:
            raise DamagedRtf("it is cut short") from error
    return bytes(out[:raw_size])


@dataclass(frozen=True, slots=True)
class _State:
    """What holds inside one group: hidden text, the font, how many characters stand in for a
    `\\u`, and whether `\\htmlrtf` has switched text off."""

    hidden: bool = False
    font: int = 0
    skip: int = 1
    html_off: bool = False
    html_tag: bool = False


def html_or_text(data: bytes) -> tuple[Kind, str]:
    """The HTML that is wrapped into an RTF, or else its text. Raises DamagedRtf."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise DamagedRtf("it is no RTF")
    wraps_html = b"\\fromhtml" in data[:1_000]
    reader = _Reader(wraps_html)
    reader.read(data)
    return ("html" if wraps_html else "text"), reader.text()


class _Reader:
    """One pass over an RTF."""

    def __init__(self, wraps_html: bool) -> None:
        self._html = wraps_html
        self._out: list[str] = []
        self._bytes = bytearray()  # of one font, not yet decoded
        self._states: list[_State] = []
        self._state = _State()
        self._page = 1252
        self._pages: dict[int, int] = {}  # of each font
        self._in_fonts = 0  # the depth of the font table
        self._skipped = 0  # characters still to be left out after a \u
        self._opening = False  # a group has just begun
        self._high = 0  # the first half of a character above U+FFFF

    def text(self) -> str:
        """What was read."""
        self._flush()
        return _LAST_CELL.sub("", "".join(self._out))

    def read(self, data: bytes) -> None:
        """Read it all."""
        at = 0
        while (token := _TOKEN.match(data, at)) is not None:
            at = token.end()
            word, number, code, symbol, brace, text = token.groups()
            opening, self._opening = self._opening, False
            if brace:
                self._brace(brace)
            elif word == b"bin":
                at += max(0, int(number or 0))
            elif word:
                self._word(word.lower(), int(number) if number else None, opening)
            elif code:
                self._add_bytes(bytes.fromhex(code.decode()))
            elif symbol == b"*":
                self._opening = opening
                if opening:
                    self._state = replace(self._state, hidden=True)
            elif symbol == b"'":
                continue
            elif symbol:
                self._add(_SYMBOLS.get(symbol, ""))
            elif text:
                self._add_bytes(text)

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skipped = 0
        if brace == b"{":
            self._states.append(self._state)
            self._opening = True
        elif self._states:
            self._state = self._states.pop()
            if len(self._states) < self._in_fonts:
                self._in_fonts = 0

    def _word(self, word: bytes, number: int | None, opening: bool) -> None:
        if word == b"u" and number is not None:
            self._unicode(number & 0xFFFF)
        elif word == b"uc":
            self._state = replace(self._state, skip=max(0, number or 0))
        elif word == b"ansicpg":
            self._page = number or 1252
        elif word == b"fonttbl":
            self._in_fonts = len(self._states)
            self._state = replace(self._state, hidden=True)
        elif word == b"f":
            self._flush()
            self._state = replace(self._state, font=number or 0)
        elif word == b"fcharset" and self._in_fonts:
            if number in _CHARSETS:
                self._pages[self._state.font] = _CHARSETS[number]
        elif word in (b"htmltag", b"mhtmltag") and self._html:
            self._flush()
            self._state = replace(self._state, hidden=word == b"mhtmltag", html_tag=True)
        elif word == b"htmlrtf" and self._html:
            self._flush()
            self._state = replace(self._state, html_off=number != 0)
        elif word == b"v":
            self._flush()
            self._state = replace(self._state, hidden=number != 0)
        elif word in _HIDDEN and opening:
            self._state = replace(self._state, hidden=True)
        elif word in _BREAKS:
            self._add(_BREAKS[word])

    def _unicode(self, unit: int) -> None:
        self._flush()
        self._skipped = 0
        if 0xD800 <= unit < 0xDC00:
            self._high = unit
        elif 0xDC00 <= unit < 0xE000:
            if self._high:
                self._add(chr(0x10000 + ((self._high - 0xD800) << 10) + (unit - 0xDC00)))
            self._high = 0
        else:
            self._add(chr(unit))
        self._skipped = self._state.skip

    def _add(self, text: str) -> None:
        self._flush()
        if self._skipped and text:
            self._skipped -= 1
        elif not self._silent():
            self._out.append(text)

    def _add_bytes(self, data: bytes) -> None:
        if self._skipped:
            left = data[self._skipped :]
            self._skipped = max(0, self._skipped - len(data))
            data = left
        if not self._silent():
            self._bytes += data

    def _silent(self) -> bool:
        # Inside {\*\htmltag ...} stands markup; \htmlrtf marks what is only RTF's.
        return self._state.hidden or (self._state.html_off and not self._state.html_tag)

    def _flush(self) -> None:
        if not self._bytes:
            return
        data = bytes(self._bytes)
        self._bytes.clear()
        page = self._pages.get(self._state.font, self._page)
        self._out.append(data.decode("ascii") if data.isascii() else _decoded(data, page))


def _decoded(data: bytes, page: int) -> str:
    """Bytes of a Windows code page as text; by their look where they are not of that page."""
    try:
        return codecs.decode(data, code_page(page))
    except (UnicodeDecodeError, LookupError):
        pass
    try:
        return decode(data).text
    except NotText:
        return data.decode("cp1252", "ignore")
