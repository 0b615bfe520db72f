"""Bytes of one source -> Document: by suffix, then by content."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from agentic_rag.documents import file_types, html_page, source_code
from agentic_rag.documents.archive_document import parse_zip
from agentic_rag.documents.delimited import parse_delimited
from agentic_rag.documents.document import Document
from agentic_rag.documents.encoding import Decoded, NotText, decode
from agentic_rag.documents.epub import parse_epub
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.fetching import is_url
from agentic_rag.documents.figure_rules import read_rules
from agentic_rag.documents.figures import with_figures
from agentic_rag.documents.file_types import Family
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.html_page import parse_html
from agentic_rag.documents.json_data import parse_json, parse_json_lines
from agentic_rag.documents.mail import parse_eml, parse_mbox
from agentic_rag.documents.markdown import parse_markdown
from agentic_rag.documents.notebook import parse_notebook
from agentic_rag.documents.office_types import office_family
from agentic_rag.documents.open_document import parse_open_document
from agentic_rag.documents.outlook import parse_msg
from agentic_rag.documents.pdf import parse_pdf
from agentic_rag.documents.picture import parse_picture
from agentic_rag.documents.plain_text import parse_plain_text
from agentic_rag.documents.reading import Reading, put_in_force
from agentic_rag.documents.restructured_text import parse_restructured_text
from agentic_rag.documents.rich_text import parse_rich_text
from agentic_rag.documents.slides import parse_slides
from agentic_rag.documents.source_code import parse_source_code
from agentic_rag.documents.spreadsheet import parse_spreadsheet
from agentic_rag.documents.web_page import parse_web_page
from agentic_rag.documents.word import parse_word
from agentic_rag.documents.zedx import parse_zedx

__all__ = ["PARSER_VERSION", "UnreadableDocument", "UnsupportedDocument", "parse"]

# Recorded with each document: raise it when the same bytes give another document than before, and
# every source is parsed again.
PARSER_VERSION = 5
_FIGURES = "+images"

_TEXT_PARSERS: dict[Family, Callable[[str, str, str], Document]] = {
    "text": parse_plain_text,
    "markdown": parse_markdown,
    "rst": parse_restructured_text,
    "html": parse_html,
    "csv": parse_delimited,
    "json": parse_json,
    "jsonl": parse_json_lines,
    "code": parse_source_code,
    "ipynb": parse_notebook,
}
_BYTES_PARSERS: dict[Family, Callable[[str, bytes, str], Document]] = {
    "eml": parse_eml,
    "mbox": parse_mbox,
    "msg": parse_msg,
    "epub": parse_epub,
    "zip": parse_zip,
    "zedx": parse_zedx,
    "word": parse_word,
    "rtf": parse_rich_text,
    "slides": parse_slides,
    "spreadsheet": parse_spreadsheet,
    "open_document": parse_open_document,
    "picture": parse_picture,
}


def parser_version(media_type: str, reading: Reading) -> str:
    """What a document of this type depends on besides its bytes, without any colon."""
    version = str(PARSER_VERSION)
    if reading.reads_pictures and file_types.may_hold_pictures(media_type):
        version += f"+ocr{reading.ocr.dpi}-{reading.ocr.min_confidence:g}"
    if reading.reads_figures and file_types.may_hold_figures(media_type):
        model = reading.images.describe.replace(":", "-")
        version += f"{_FIGURES}{read_rules(reading.images.rules).version}{model}"
    return version


def is_current(version: str, media_type: str, reading: Reading) -> bool:
    """Whether what a parser of `version` made of the same bytes need not be made again.

    What OCR has read stays as it is while OCR or the reading of figures is off: a machine without
    the ocr extra takes no text away.
    """
    if not reading.reads_figures:
        version = version.partition(_FIGURES)[0]
    if "+ocr" in version and not reading.reads_pictures:
        return True
    return version == parser_version(media_type, reading)


def parse(
    source_uri: str,
    data: bytes,
    folders: tuple[str, ...] = (),
    media_type: str = "",
    reading: Reading | None = None,
) -> Document:
    """The document that `data` is, named `source_uri`, lying in `folders` below the root.

    `media_type`, where a server gave one that says something, decides before the name; `reading`
    says how scans are read (None: as in the `parse` that this one is part of, else as the default
    settings say). Raises UnsupportedDocument for a type that is not read here, UnreadableDocument
    for a damaged, locked or undecodable file, and ReadingStopped.
    """
    with put_in_force(reading):
        document = _parse(source_uri, data, media_type)
    return replace(document, knowledge_path=folders)


def _parse(source_uri: str, data: bytes, media_type: str) -> Document:
    declared = media_type
    _, media_type = _family(source_uri, declared)
    family = family_of(source_uri, data, declared)
    if not data.strip():
        document = _empty(source_uri, media_type)
    elif family == "pdf":
        document = parse_pdf(source_uri, data)
    elif family in _BYTES_PARSERS:
        own = file_types.media_type(family, media_type)
        document = _BYTES_PARSERS[family](source_uri, data, own)
    else:
        own = file_types.media_type(family, media_type) if family else "text/plain"
        document = _parse_text(source_uri, data, family, own)
    document = with_figures(document)
    warnings = document.warnings
    if not document.text.strip() and document.given_chunks is None and not warnings:
        warnings = ("the file holds no text",)
    return replace(document, warnings=warnings)


def family_of(uri: str, data: bytes, media_type: str = "") -> Family | None:
    """The family that bytes belong to: by their first ones where these say it, else by the media
    type and the name. None for what has neither."""
    family, _ = _family(uri, media_type)
    if file_types.is_pdf(data) and family != "code":
        return "pdf"
    if file_types.is_epub(data):
        return "epub"
    if file_types.is_picture(data):
        return "picture"
    if office := office_family(data, family):
        return office
    if family == "msg" and not file_types.is_ole2(data):
        # The suffix is also that of texts, and some programs give it to Internet mail.
        return "eml" if file_types.is_mail(data) else "text"
    if family is None and file_types.is_mail(data):
        return "eml"
    if family is None and file_types.is_mailbox(data):
        return "mbox"
    if family is None and file_types.is_zip(data) and not PurePosixPath(uri).suffix:
        return "zip"
    return family


def _family(uri: str, declared: str) -> tuple[Family | None, str]:
    said = declared.partition(";")[0].strip().lower()
    if said in file_types.BY_MEDIA_TYPE and said != "text/plain":  # which servers say of anything
        return file_types.BY_MEDIA_TYPE[said]
    path = uri.partition("?")[0] if is_url(uri) else uri
    otherwise = file_types.BY_MEDIA_TYPE.get(said, (None, "text/plain"))
    return file_types.BY_SUFFIX.get(PurePosixPath(path).suffix.lower(), otherwise)


def _empty(uri: str, media_type: str) -> Document:
    return Document(
        uri=uri,
        title=file_name(uri),
        media_type=media_type,
        text="",
        warnings=("the file is empty",),
    )


def _parse_text(uri: str, data: bytes, family: Family | None, media_type: str) -> Document:
    decoded = _decode(uri, data, family)
    parser = _TEXT_PARSERS[family or "text"]
    if family == "html" and is_url(uri):
        parser = parse_web_page
    document = parser(uri, decoded.text, media_type)
    warnings = list(document.warnings)
    if decoded.omitted:
        warnings.append(
            f"{decoded.omitted} damaged place{'s' * (decoded.omitted > 1)} left out: "
            f"invalid in {decoded.encoding}"
        )
    return replace(document, warnings=tuple(warnings))


def _decode(uri: str, data: bytes, family: Family | None) -> Decoded:
    declared = None
    if family == "html":
        declared = html_page.declared_encoding(data)
    elif family == "code":
        declared = source_code.declared_encoding(data)
    try:
        if family is None and file_types.is_unread_text(data):
            raise NotText("it is a page description")
        return decode(data, declared)
    except NotText as reason:
        raise _no_text(uri, data, family, str(reason)) from reason


def _no_text(
    uri: str, data: bytes, family: Family | None, reason: str
) -> UnsupportedDocument | UnreadableDocument:
    known = file_types.known_type(data)
    name = file_name(uri)
    if family is None:
        suffix = PurePosixPath(uri).suffix.lower()
        if suffix:
            what = f"'{suffix}' files are"
        else:
            what = f"'{name}' is {known or 'a binary file'}, which is"
        return UnsupportedDocument(
            f"{what} not supported; supported are {file_types.supported_types()}"
        )
    if known:
        return UnreadableDocument(
            f"'{name}' is {known} and not what its name says; give it its right suffix"
        )
    return UnreadableDocument(
        f"'{name}' cannot be read as text: {reason}; save it again as UTF-8 text"
    )
