"""Office files written by hand, part by part, for what no library writes."""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MORE = (
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
NAMESPACES = f"{_W} {_MORE}"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def zipped(parts: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP archive of those members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def replaced(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with one member changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts: dict[str, str | bytes] = {each: archive.read(each) for each in archive.namelist()}
        parts[name] = change(archive.read(name))
    return zipped(parts)


def relations(entries: Mapping[str, tuple[str, str]]) -> str:
    """A part of relations: by id, the last word of the type and the target."""
    lines = "".join(
        f'<Relationship Id="{key}" Type="{_RELATION}{kind}" Target="{target}"/>'
        for key, (kind, target) in entries.items()
    )
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f"{lines}</Relationships>"
    )


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    """A `w:p` of one run."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{run(text)}</w:p>"


def run(text: str, properties: str = "") -> str:
    """A `w:r`."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def write_docx(body: str, title: str = "", **parts: str) -> bytes:
    """A docx of a body; `parts` are the inner XML of styles, numbering, footnotes, endnotes,
    comments, settings, and of headers and footers (header1, footer1, ...)."""
    roots = {"styles": "styles", "numbering": "numbering", "footnotes": "footnotes",
             "endnotes": "endnotes", "comments": "comments", "settings": "settings"}  # fmt: skip
    related, files = {}, {}
    for name, inner in parts.items():
        kind = name.rstrip("0123456789")
        root = roots.get(kind, "hdr" if kind == "header" else "ftr")
        related[name] = (kind, f"{name}.xml")
        files[f"word/{name}.xml"] = f"<w:{root} {NAMESPACES}>{inner}</w:{root}>"
    core = (
        '<cp:coreProperties xmlns:cp="x" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title><dc:creator>李华</dc:creator></cp:coreProperties>"
    )
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
            "docProps/core.xml": core,
            "word/_rels/document.xml.rels": relations(related),
            "word/document.xml": (f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>"),
            **files,
        }
    )


def write_ole(streams: Mapping[str, bytes]) -> bytes:
    """An OLE2 file ([MS-CFB], version 3) with those streams at its root, each of one sector."""
    free, end, fat_sector = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    names = list(streams)
    fat = [fat_sector, end, *[end] * len(names)]
    header = struct.pack(
        "<8s16sHHHHHHLLLLLLLLLL",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0, 0, 0, 1, 1, 0, 4096,
        end, 0, end, 0,
    )  # fmt: skip
    header += struct.pack("<109L", 0, *[free] * 108)

    def entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
        raw = name.encode("utf-16-le") + b"\0\0"
        return (
            raw.ljust(64, b"\0")
            + struct.pack("<HBBLLL", len(raw), kind, 1, free, right, child)
            + bytes(36)
            + struct.pack("<LQ", start, size)
        )

    directory = entry("Root Entry", 5, 1, free, end, 0)
    for index, name in enumerate(names):
        right = index + 2 if index + 1 < len(names) else free
        directory += entry(name, 2, free, right, index + 2, 512)
    sectors = [
        struct.pack("<128L", *(fat + [free] * (128 - len(fat)))),
        directory.ljust(512, b"\0"),
    ]
    sectors += [streams[name][:512].ljust(512, b"\0") for name in names]
    return header + b"".join(sectors)
