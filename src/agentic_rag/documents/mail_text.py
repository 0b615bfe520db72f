"""Bytes of a mail to text, where what the mail says of its own encoding is often wrong.

RFC 2045 (charset), RFC 2047 (encoded words in headers) and RFC 2231 (parameters), with the faults
that mailers are known for: raw bytes in headers, characters cut in two by the folding, "gb2312"
that is GBK, a charset that does not exist.
"""

import binascii
import codecs
import quopri
import re
from email.message import Message
from urllib.parse import unquote_to_bytes

from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.encoding import NotText, decode

_ENCODED_WORD = re.compile(r"=\?([\w.:+-]+)(?:\*[\w-]*)?\?([bq])\?(.*?)\?=", re.IGNORECASE)
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
# Encodings whose bytes are all ASCII: they are obeyed before UTF-8 is tried, which would fit.
_SEVEN_BIT = ("iso2022", "hz", "utf-7")
_ISO_2022_JP = b"\x1b$"
# Latin-1 is what a mailer says that does not know; Western text has no such share of it.
_LATIN = ("iso8859-1", "cp1252", "ascii")
_WESTERN_SHARE = 0.3
# Windows code pages that Python knows by another name than "cp" and the number.
_CODE_PAGES = {936: "gb18030", 10000: "mac_roman", 20127: "ascii", 20866: "koi8-r",
               20932: "euc_jp", 20936: "gb18030", 28591: "cp1252", 28592: "iso8859-2",
               28605: "iso8859-15", 50220: "iso2022_jp_ext", 50221: "iso2022_jp_ext",
               50222: "iso2022_jp_ext", 50225: "iso2022_kr", 51932: "euc_jp", 51936: "gb18030",
               51949: "euc_kr", 52936: "hz", 54936: "gb18030",
               65000: "utf-7", 65001: "utf-8"}  # fmt: skip


def decode_bytes(data: bytes, charset: str = "") -> str:
    """Clean text of `data`, whose mail calls it `charset` ("" if it says nothing).

    Raises NotText where no encoding fits.
    """
    name = _codec(charset)
    if not name.startswith(_SEVEN_BIT) and _ISO_2022_JP in data and data.isascii():
        name = "iso2022_jp_ext"
    if name.startswith(_SEVEN_BIT):
        try:
            return clean_text(data.decode(name))
        except UnicodeDecodeError:
            if data.isascii():
                return clean_text(data.decode(name, "ignore"))
    if name in _LATIN:
        high = sum(byte > 0x7F for byte in data)
        if high > _WESTERN_SHARE * len(data.translate(None, b" \t\r\n")):
            name = ""
    return decode(data, name or None).text


def code_page(number: int) -> str:
    """The name of a Windows code page as a charset."""
    return _CODE_PAGES.get(number, f"cp{number}")


def header_text(raw: str) -> str:
    """A header as a person reads it, on one line. `raw` is as the `email` package gives it: bytes
    that are no ASCII as lone surrogates."""
    return one_line(_decode_words(_eight_bit(raw)))


def parameter(message: Message, header: str, name: str) -> str:
    """A parameter of a header, such as a file name; "" if it is not there."""
    raw = next((value for key, value in message.raw_items() if key.lower() == header), "")
    holder = Message()
    holder[header] = " ".join(_eight_bit(raw).split())
    value = holder.get_param(name, "", header)
    if isinstance(value, tuple):
        charset, _, text = value
        try:
            return one_line(decode_bytes(text.encode("latin-1"), charset or ""))
        except (NotText, UnicodeEncodeError):
            return one_line(text)
    text = _decode_words(str(value))
    if _PERCENT.search(text):
        try:
            unquoted = unquote_to_bytes(text).decode()
        except UnicodeDecodeError:
            unquoted = text
        text = text if unquoted.isascii() else unquoted
    return one_line(text)


def unflowed(text: str, delete_space: bool = False) -> str:
    """Text of `format=flowed` (RFC 3676) with its soft line breaks taken out."""
    out: list[str] = []
    joins = False  # the line before asks for this one
    depth = 0
    for raw in text.split("\n"):
        line = raw.lstrip(">")
        quoted = len(raw) - len(line)
        line = line.removeprefix(" ")
        if joins and quoted == depth and line != "-- ":
            out[-1] += line
        else:
            out.append(f"{'>' * quoted} {line}" if quoted else line)
        depth = quoted
        joins = line.endswith(" ") and line != "-- "
        if joins and delete_space:
            out[-1] = out[-1][:-1]
    return "\n".join(line.rstrip() for line in out)


def _eight_bit(raw: str) -> str:
    data = raw.encode("utf-8", "surrogateescape")
    if data.isascii() and _ISO_2022_JP not in data:
        return raw
    return _lenient(data, "")


def _decode_words(text: str) -> str:
    """RFC 2047. Words of one charset that stand side by side are decoded together: mailers cut
    characters in two."""
    pieces: list[str] = []
    pending = b""
    charset = ""
    at = 0
    for word in _ENCODED_WORD.finditer(text):
        between = text[at : word.start()]
        data = _word_bytes(word[2].lower(), word[3])
        if pending and not between.strip() and word[1].lower() == charset:
            pending += data
        else:
            pieces.append(_lenient(pending, charset))
            if between.strip() or at == 0:
                pieces.append(between)
            pending, charset = data, word[1].lower()
        at = word.end()
    return "".join([*pieces, _lenient(pending, charset), text[at:]])


def _word_bytes(kind: str, text: str) -> bytes:
    if kind == "q":
        return quopri.decodestring(text.replace(" ", "_").encode("utf-8", "replace"), header=True)
    bare = re.sub(r"[^A-Za-z0-9+/]", "", text)
    bare = bare[: len(bare) - (len(bare) % 4 == 1)]
    return binascii.a2b_base64(bare + "=" * (-len(bare) % 4))


def _lenient(data: bytes, charset: str) -> str:
    name = _codec(charset)
    if name and name not in _LATIN:
        for cut in (data, data[:-1], data[:-2]):  # the last character may have been cut in two
            try:
                cut.decode("gb18030" if name.startswith("gb") else name)
            except (UnicodeDecodeError, LookupError):
                continue
            data = cut
            break
    try:
        return decode_bytes(data, charset) if data else ""
    except NotText:
        return clean_text(data.decode("cp1252", "ignore"))


def _codec(charset: str) -> str:
    try:
        return codecs.lookup(charset.strip().strip("'\"")).name
    except (LookupError, ValueError):
        return ""
