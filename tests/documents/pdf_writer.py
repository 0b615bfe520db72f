"""A PDF writer of a few lines: pages of text (Western and Chinese), pictures, an outline."""

from collections.abc import Sequence
from dataclasses import dataclass

LINE_HEIGHT = 16
FONT_SIZE = 11


@dataclass(frozen=True)
class Scan:
    """A page that is a picture, drawn over `share` of its width and height, with lines of text
    stamped on it by a program."""

    jpeg: bytes
    width: int
    height: int
    stamp: Sequence[str] = ()
    share: float = 1.0


@dataclass(frozen=True)
class Outline:
    """An outline entry: its title and the page, from 1, it leads to."""

    title: str
    page: int


def write_pdf(
    pages: Sequence[Sequence[str] | Scan | None],
    *,
    title: str = "",
    outline: Sequence[Outline] = (),
    encrypted: bool = False,
) -> bytes:
    """A PDF whose pages hold the given lines; None makes a page that is only a picture.

    `encrypted` marks the file as locked with a password that nobody has.
    """
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    catalog, tree, info = add(b""), add(b""), add(b"")
    western = add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    descendant = add(
        b"<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/DW 1000/CIDSystemInfo"
        b"<</Registry(Adobe)/Ordering(GB1)/Supplement 2>>>>"
    )
    chinese = add(
        b"<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H"
        b"/DescendantFonts[%d 0 R]>>" % descendant
    )
    picture = add(
        b"<</Type/XObject/Subtype/Image/Width 2/Height 2/ColorSpace/DeviceGray"
        b"/BitsPerComponent 8/Length 4>>stream\n\x00\xff\xff\x00\nendstream"
    )
    kids = []
    for lines in pages:
        drawn = picture
        if isinstance(lines, Scan):
            drawn = add(_jpeg(lines))
            content = _shown(lines) + _text(lines.stamp)
        else:
            content = b"q 400 0 0 400 90 200 cm /I Do Q" if lines is None else _text(lines)
        stream = add(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        kids.append(
            add(
                b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources"
                b"<</Font<</W %d 0 R/C %d 0 R>>/XObject<</I %d 0 R>>>>>>"
                % (tree, stream, western, chinese, drawn)
            )
        )
    objects[tree - 1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), _references(kids))
    objects[info - 1] = b"<</Title%s>>" % _string(title) if title else b"<<>>"
    root = b"<</Type/Catalog/Pages %d 0 R" % tree
    if outline:
        first = len(objects) + 2
        add(
            b"<</Type/Outlines/Count %d/First %d 0 R/Last %d 0 R>>"
            % (len(outline), first, first + len(outline) - 1)
        )
        root += b"/Outlines %d 0 R" % len(objects)
        for index, entry in enumerate(outline):
            following = b"/Next %d 0 R" % (first + index + 1) if index + 1 < len(outline) else b""
            before = b"/Prev %d 0 R" % (first + index - 1) if index else b""
            add(
                b"<</Title%s/Parent %d 0 R/Dest[%d 0 R/Fit]%s%s>>"
                % (_string(entry.title), first - 1, kids[entry.page - 1], before, following)
            )
    objects[catalog - 1] = root + b">>"
    trailer = b"/Root %d 0 R/Info %d 0 R" % (catalog, info)
    if encrypted:
        lock = add(b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"1" * 64, b"2" * 64))
        trailer += b"/Encrypt %d 0 R/ID[<%s><%s>]" % (lock, b"3" * 32, b"3" * 32)
    return _file(objects, trailer)


def _jpeg(scan: Scan) -> bytes:
    return (
        b"<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB"
        b"/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\n%s\nendstream"
        % (scan.width, scan.height, len(scan.jpeg), scan.jpeg)
    )


def _shown(scan: Scan) -> bytes:
    """The picture across the page, or as high as the page."""
    scale = scan.share * min(595 / scan.width, 842 / scan.height)
    width, height = scale * scan.width, scale * scan.height
    return b"q %.2f 0 0 %.2f 0 %.2f cm /I Do Q " % (width, height, 842 - height)


def _text(lines: Sequence[str]) -> bytes:
    parts = [b"BT %d TL 60 790 Td" % LINE_HEIGHT]
    for line in lines:
        if line.isascii():
            escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            parts.append(b"/W %d Tf (%s) Tj T*" % (FONT_SIZE, escaped.encode("ascii")))
        else:
            shown = line.encode("utf-16-be").hex().encode()
            parts.append(b"/C %d Tf <%s> Tj T*" % (FONT_SIZE, shown))
    return b" ".join([*parts, b"ET"])


def _string(text: str) -> bytes:
    return b"<feff%s>" % text.encode("utf-16-be").hex().encode()


def _references(numbers: Sequence[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    data = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        data += b"%010d 00000 n \n" % offset
    data += b"trailer\n<</Size %d%s>>\n" % (len(objects) + 1, trailer)
    data += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(data)
