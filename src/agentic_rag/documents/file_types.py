"""What a file is: by its suffix, and by its first bytes where the suffix says nothing."""

import re
from typing import Literal

Family = Literal[
    "text", "markdown", "rst", "html", "pdf", "csv", "json", "jsonl", "code",
    "eml", "mbox", "msg", "ipynb", "epub", "zip", "zedx",
    "word", "slides", "spreadsheet", "open_document", "rtf", "picture",
]  # fmt: skip

_SUFFIXES: dict[Family, dict[str, str]] = {
    "text": {
        "text/plain": "txt text log org adoc asciidoc tex srt vtt",
    },
    "markdown": {"text/markdown": "md markdown mdown mkd mdx qmd rmd"},
    "rst": {"text/x-rst": "rst rest"},
    "html": {"text/html": "html htm", "application/xhtml+xml": "xhtml xht"},
    "pdf": {"application/pdf": "pdf"},
    "csv": {"text/csv": "csv", "text/tab-separated-values": "tsv tab"},
    "json": {"application/json": "json", "application/geo+json": "geojson"},
    "jsonl": {"application/jsonl": "jsonl ndjson"},
    "eml": {"message/rfc822": "eml"},
    "mbox": {"application/mbox": "mbox"},
    "msg": {"application/vnd.ms-outlook": "msg"},
    "ipynb": {"application/x-ipynb+json": "ipynb"},
    "epub": {"application/epub+zip": "epub"},
    "zip": {"application/zip": "zip"},
    "zedx": {"application/x-zedx": "zedx"},
    "word": {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx docm",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template": "dotx dotm",
        "application/msword": "doc dot",
    },
    "rtf": {"application/rtf": "rtf"},
    "slides": {
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx pptm",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow": "ppsx ppsm",
        "application/vnd.openxmlformats-officedocument.presentationml.template": "potx potm",
        "application/vnd.ms-powerpoint": "ppt pps pot",
    },
    "spreadsheet": {
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx xlsm",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template": "xltx xltm",
        "application/vnd.ms-excel": "xls xlt",
    },
    "open_document": {
        "application/vnd.oasis.opendocument.text": "odt ott",
        "application/vnd.oasis.opendocument.spreadsheet": "ods ots",
        "application/vnd.oasis.opendocument.presentation": "odp otp",
    },
    "picture": {
        "image/png": "png",
        "image/jpeg": "jpg jpeg jpe jfif",
        "image/tiff": "tif tiff",
        "image/bmp": "bmp dib",
        "image/webp": "webp",
        "image/gif": "gif",
    },
    "code": {
        "text/x-python": "py pyi",
        "text/javascript": "js mjs cjs jsx",
        "text/x-typescript": "ts tsx mts cts",
        "text/x-java": "java",
        "text/x-c": "c h",
        "text/x-c++": "cc cpp cxx hh hpp hxx",
        "text/x-csharp": "cs",
        "text/x-go": "go",
        "text/x-rust": "rs",
        "text/x-ruby": "rb",
        "text/x-php": "php",
        "text/x-shellscript": "sh bash zsh fish",
        "text/x-powershell": "ps1",
        "text/x-sql": "sql",
        "text/x-yaml": "yaml yml",
        "text/x-toml": "toml",
        "text/x-ini": "ini cfg conf properties env",
        "text/css": "css scss less",
        "text/x-kotlin": "kt kts",
        "text/x-swift": "swift",
        "text/x-scala": "scala",
        "text/x-lua": "lua",
        "text/x-r": "r",
        "text/x-perl": "pl pm",
        "text/x-dart": "dart",
        "text/x-haskell": "hs",
        "text/x-elixir": "ex exs",
        "text/x-erlang": "erl",
        "text/x-clojure": "clj",
        "text/x-julia": "jl",
        "text/x-groovy": "groovy gradle",
        "text/x-protobuf": "proto",
        "text/x-graphql": "graphql",
        "text/x-terraform": "tf",
        "text/x-vue": "vue svelte",
        "text/xml": "xml xsd xsl",
    },
}
BY_SUFFIX: dict[str, tuple[Family, str]] = {
    f".{suffix}": (family, media_type)
    for family, types in _SUFFIXES.items()
    for media_type, suffixes in types.items()
    for suffix in suffixes.split()
}
BY_MEDIA_TYPE: dict[str, tuple[Family, str]] = {
    media_type: (family, media_type) for family, types in _SUFFIXES.items() for media_type in types
}


def media_type(family: Family, given: str = "") -> str:
    """The media type of a family: the one `given` if it is one of its own, else its first."""
    return given if given in _SUFFIXES[family] else next(iter(_SUFFIXES[family]))


# Text as bytes, but in a language meant for a program, and not one that is read here.
_UNREAD_TEXT = (b"%!PS",)

_PICTURES = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"II*\x00",
    b"MM\x00*",
)
_MAIL_HEAD = 16_000
_MAIL_HEADER = re.compile(
    rb"(?:return-path|received|delivered-to|x-[\w-]+|from|to|date|subject|message-id|mime-version"
    rb"|reply-to|sender|dkim-signature|authentication-results):",
    re.IGNORECASE,
)
_MAIL_ID = re.compile(rb"^(?:message-id|mime-version):", re.IGNORECASE | re.MULTILINE)

_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
    (b"{\\rtf", "a rich text file"),
    (b"%!PS", "a PostScript file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\xca\xfe\xba\xbe", "a Java class or program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"ID3", "an MP3 recording"),
    (b"OggS", "an Ogg recording"),
    (b"fLaC", "a FLAC recording"),
    (b"RIFF", "a WAV, AVI or WebP file"),
    (b"\x00\x01\x00\x00\x00", "a font"),
    (b"wOF", "a font"),
    (b"GGUF", "a language model"),
)


def known_type(data: bytes) -> str | None:
    """The kind of a binary file in words ("a PNG image"), by its first bytes."""
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    return "an MP4 or HEIC file" if data[4:8] == b"ftyp" else None


def is_picture(data: bytes) -> bool:
    """Whether the first bytes are those of a picture that OCR reads. A text that begins with the
    two letters of a bitmap is none."""
    if data.startswith(b"BM"):
        return data[6:10] == bytes(4) and 12 <= int.from_bytes(data[14:18], "little") <= 124
    return data.startswith(_PICTURES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def may_hold_pictures(media_type: str) -> bool:
    """Whether documents of a media type may hold pictures that OCR reads."""
    family, _ = BY_MEDIA_TYPE.get(media_type, (None, ""))
    return family in ("pdf", "picture", "eml", "mbox", "msg", "zip", "zedx")


def may_hold_figures(media_type: str) -> bool:
    """Whether documents of a media type may show figures whose text becomes part of theirs."""
    family, _ = BY_MEDIA_TYPE.get(media_type, (None, ""))
    return family in ("html", "markdown", "word", "pdf", "eml", "mbox", "msg", "zip", "zedx")


def is_pdf(data: bytes) -> bool:
    """Whether the first bytes are a PDF's."""
    return data.startswith(b"%PDF-")


def is_epub(data: bytes) -> bool:
    """Whether the bytes are an EPUB book's: its first member, by its standard, says so."""
    return data.startswith(b"PK\x03\x04") and b"mimetypeapplication/epub+zip" in data[:100]


def is_mail(data: bytes) -> bool:
    """Whether the bytes begin as a message of Internet mail does, and hold its id."""
    return bool(_MAIL_HEADER.match(data)) and bool(_MAIL_ID.search(data[:_MAIL_HEAD]))


def is_mailbox(data: bytes) -> bool:
    """Whether the bytes begin as a mailbox does: a line "From ", then a message."""
    first, _, rest = data[:_MAIL_HEAD].partition(b"\n")
    return first.startswith(b"From ") and is_mail(rest)


def is_ole2(data: bytes) -> bool:
    """Whether the first bytes are those of Outlook's and older office programs' files."""
    return data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


def is_zip(data: bytes) -> bool:
    """Whether the first bytes are a ZIP archive's, of whatever is in it."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_rich_text(data: bytes) -> bool:
    """Whether the first bytes are those of rich text."""
    return data.startswith(b"{\\rtf")


def is_unread_text(data: bytes) -> bool:
    """Whether the bytes are a page description that would only be noise as text."""
    return data.startswith(_UNREAD_TEXT)


def supported_types() -> str:
    """The supported types for a message."""
    return (
        "text (.txt), Markdown, reStructuredText, HTML, PDF, EPUB, Word (.docx, .rtf), PowerPoint "
        "(.pptx), Excel (.xlsx, .xls), OpenDocument (.odt, .ods, .odp), CSV and TSV, JSON and JSON "
        "Lines, mail (.eml, .mbox, .msg), Jupyter notebooks, ZIP archives, manuals (.zedx), "
        "pictures (with the ocr extra), and source code"
    )
