"""Figures inside a document: read, kept or dropped by the rules, and woven into the text.

What a figure says stands in a line of its own, `[Figure 1: caption. text]`, behind the paragraph
that points to it, so that it is searched, embedded and cited with the section it belongs to
(EasyRAG, arXiv 2410.10315). What costs nothing is asked first: a figure that the rules drop for its
caption, or that the text does not point to, is not read.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote_to_bytes

from agentic_rag.documents import file_types, ocr, picture, reading
from agentic_rag.documents.captions import Shown, shown
from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Document, Figure
from agentic_rag.documents.edits import Edit, edited
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.fetching import is_url
from agentic_rag.documents.figure_rules import Rules, read_rules
from agentic_rag.documents.ocr import OcrBroken, Pixels
from agentic_rag.documents.reading import ImageCounts, Reading
from agentic_rag.documents.scanned_pages import left_out
from agentic_rag.errors import AragError
from agentic_rag.text.language import is_chinese

# Anything with a scheme is elsewhere; one letter is a drive of Windows.
_ELSEWHERE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]+:|//)", re.IGNORECASE)
_DATA = re.compile(r"\s*data:([^,]{0,200}),", re.IGNORECASE)
_NAMES_TOLD = 5
_LONGEST_NAME = 60
_LANGUAGE_SAMPLE = 20_000
_LEAST_REPEATED = 10  # characters; a label of fewer may well stand elsewhere

_NOT_THERE = "not where the document says"

NOT_POINTED_TO = "not pointed to"
BY_RULES = "by the rules"
NO_TEXT = "without text"
UNREADABLE = "unreadable"
TOO_MANY = "beyond images.most"
MISSING = "missing"
ICON = "icons"


def with_figures(document: Document) -> Document:
    """The document with what its figures say in its text, as the reading in force has it. Raises
    ReadingStopped."""
    if not document.figures:
        return document
    how = reading.in_force()
    figures = [figure for figure in document.figures if not _is_elsewhere(document, figure)]
    if not how.reads_figures:
        if figures:
            how.on_images(ImageCounts(seen=len(figures), cure=how.figures_cure))
        return replace(document, figures=())
    work = _Work(document, how, read_rules(how.images.rules))
    woven = work.weave(figures)
    how.on_images(ImageCounts(len(figures), work.read, work.kept, work.dropped))
    warnings = (*woven.warnings, *work.warnings())
    return replace(woven, warnings=warnings, metadata={**woven.metadata, **work.metadata()})


def _is_elsewhere(document: Document, figure: Figure) -> bool:
    """Whether a figure would have to be fetched, which is never done."""
    if figure.read is not None or _DATA.match(figure.name):
        return False
    return is_url(document.uri) or bool(_ELSEWHERE.match(figure.name))


class _Dropped(Exception):
    """Why a figure adds nothing."""


@dataclass(slots=True)
class _Work:
    """The figures of one document being read."""

    document: Document
    how: Reading
    rules: Rules
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    in_chinese: bool = False
    _told: dict[str, list[str]] = field(default_factory=dict)
    _found: "dict[bytes, str | _Dropped | UnreadableDocument]" = field(default_factory=dict)
    _unsure: dict[str, int] = field(default_factory=dict)  # lines left out, of each figure
    _undescribed: str = ""
    _bare_text: str = ""

    def weave(self, figures: Sequence[Figure]) -> Document:
        """The document with the lines of those kept."""
        text = self.document.text
        self.in_chinese = is_chinese(text[:_LANGUAGE_SAMPLE])
        self._bare_text = _bare(text)
        most = self.how.images.most
        if len(figures) > most:
            self._tell(f"beyond the first {most:,} of a document, which images.most raises",
                       figures[most:])  # fmt: skip
            self.dropped[TOO_MANY] = len(figures) - most
        wanted = [one for one in shown(self.document, figures[:most]) if self._is_wanted(one)]
        lines: dict[int, list[str]] = {}
        for done, one in enumerate(wanted):
            self.how.page(done, len(wanted))
            try:
                said = self._said(one)
            except _Dropped as reason:
                self._drop(str(reason))
            except UnreadableDocument as error:
                self._tell(str(error), [one.figure])
                self._drop(UNREADABLE)
            else:
                self.kept += 1
                at = one.figure.start if one.at is None else one.at
                lines.setdefault(min(at, len(text)), []).append(said)
        if wanted:
            self.how.page(len(wanted), len(wanted))
        edits = [Edit(at, at, _apart(text, at, said)) for at, said in sorted(lines.items())]
        return edited(self.document, edits)

    def warnings(self) -> list[str]:
        """Sentences for a person."""
        told = []
        for reason, names in self._told.items():
            if reason.startswith("'"):
                told.append(f"in it: {reason}")
                continue
            what = "image" if len(names) == 1 else "images"
            told.append(f"{len(names):,} {what} not read, {reason}: {_listed(names)}")
        if self._unsure:
            lines = left_out(sum(self._unsure.values()), self.how)
            told.append(f"{lines} in images: {_listed(list(self._unsure))}")
        if self._undescribed:
            told.append(f"images not described: {self._undescribed}")
        return told

    def metadata(self) -> dict[str, int]:
        """How many figures are in the text."""
        return {"images": self.kept} if self.kept else {}

    def _is_wanted(self, one: Shown) -> bool:
        """Whether a figure is worth reading, by what is known beforehand."""
        if self.rules.pointed_to and one.at is None:
            self._drop(MISSING if self._is_missing(one.figure) else NOT_POINTED_TO)
        elif self.rules.refuse_caption(one.caption):
            self._drop(BY_RULES)
        else:
            return True
        return False

    def _is_missing(self, figure: Figure) -> bool:
        """Whether a figure's file is not there, which is told."""
        if figure.read is not None or _DATA.match(figure.name) or self.how.beside is None:
            return False
        try:
            there = self.how.beside(figure.name) is not None
        except UnreadableDocument:
            there = True
        if not there:
            self._tell(_NOT_THERE, [figure])
        return not there

    def _said(self, one: Shown) -> str:
        """The line of a figure. Raises _Dropped, UnreadableDocument."""
        data = self._bytes(one.figure)
        key = hashlib.blake2b(data, digest_size=16).digest()
        if key not in self._found:  # a picture that is shown again is not read again
            try:
                self._found[key] = self._text(one, data)
            except (_Dropped, UnreadableDocument) as reason:
                self._found[key] = reason
        found = self._found[key]
        if not isinstance(found, str):
            raise found
        return _line(one, found, self.in_chinese)

    def _text(self, one: Shown, data: bytes) -> str:
        name = _shown_name(one.figure.name)
        if picture.shorter_side(name, data) < self.how.images.min_side:
            raise _Dropped(ICON)
        pixels = picture.picture_pixels(name, data)
        text = self._recognised(name, pixels)
        self.read += 1
        useful = self.rules.has_useful_text(text)
        if useful and not self.rules.fits_language(text, in_chinese=self.in_chinese):
            raise _Dropped(BY_RULES)
        description = self._description(pixels, one.caption)
        if not useful and not description:
            raise _Dropped(NO_TEXT)
        if self.rules.refuse_description(description):
            raise _Dropped(BY_RULES)
        mark = "。" if self.in_chinese else ". "
        return mark.join(filter(None, (text if useful else "", description)))

    def _recognised(self, name: str, pixels: Pixels) -> str:
        try:
            found = ocr.read_pixels(pixels, self.how.ocr.min_confidence)
        except OcrBroken as error:
            raise UnreadableDocument(f"'{name}' is not read: {error}") from error
        except Exception as error:  # of the models; the other figures are still worth having
            raise UnreadableDocument(
                f"'{name}' is not read: OCR failed ({type(error).__name__})"
            ) from error
        if found.unsure:
            self._unsure[name] = found.unsure
        between = "；" if self.in_chinese else "; "
        rows = [row for row in map(one_line, found.rows()) if row]
        return between.join(row for row in rows if not self._is_in_text(row))

    def _is_in_text(self, row: str) -> bool:
        """Whether a row stands in the text as well, as those of a table that is also drawn."""
        bare = _bare(row)
        return len(bare) >= _LEAST_REPEATED and bare in self._bare_text

    def _description(self, pixels: Pixels, caption: str) -> str:
        if self.how.describe is None:
            return ""
        try:
            language = "zh" if self.in_chinese else "en"
            return one_line(self.how.describe(pixels, language, caption))
        except AragError as error:
            self._undescribed = str(error)
            return ""

    def _bytes(self, figure: Figure) -> bytes:
        """A figure's file. Raises _Dropped where there is none."""
        if figure.read is not None:
            data: bytes | None = figure.read()
        elif match := _DATA.match(figure.name):
            data = _decoded(match[1], figure.name[match.end() :])
        else:
            data = self.how.beside(figure.name) if self.how.beside else None
        if data is None:
            self._tell(_NOT_THERE, [figure])
            raise _Dropped(MISSING)
        if not file_types.is_picture(data):
            self._tell("of a kind that is not read", [figure])
            raise _Dropped("of other kinds")
        return data

    def _drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def _tell(self, reason: str, figures: Sequence[Figure]) -> None:
        names = self._told.setdefault(reason, [])
        names += [_shown_name(figure.name) for figure in figures]


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


def _decoded(kind: str, data: str) -> bytes | None:
    """The bytes in a data URI (RFC 2397)."""
    raw = unquote_to_bytes(data)
    if not kind.lower().rstrip().endswith(";base64"):
        return raw
    try:
        return base64.b64decode(b"".join(raw.split()) + b"===", validate=False)
    except (binascii.Error, ValueError):
        return None


def _line(one: Shown, text: str, in_chinese: bool) -> str:
    """A figure as it stands in the text."""
    if in_chinese:
        label, colon, stop = f"图{one.number}", "：", "。"
    else:
        label, colon, stop = f"Figure {one.number}".strip(), ": ", ". "
    caption = one.caption.rstrip(" 。.")
    return f"[{label}{colon}{stop.join(filter(None, (caption, text)))}]"


def _apart(text: str, at: int, lines: Sequence[str]) -> str:
    """Lines as a paragraph of their own at a line's begin."""
    before = text[:at]
    above = "" if not before.strip() or before.endswith("\n\n") else "\n"
    if above and not before.endswith("\n"):
        above = "\n\n"
    below = "\n" if not text[at:].strip() or text.startswith("\n", at) else "\n\n"
    return above + "\n\n".join(lines) + below


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_TOLD:,} more" if len(names) > _NAMES_TOLD else ""
    return ", ".join(names[:_NAMES_TOLD]) + more


def _shown_name(name: str) -> str:
    """The name of a figure for a person."""
    if match := _DATA.match(name):
        what = "drawing" if "svg" in match[1].lower() else "picture"
        return f"a {what} in the page itself"
    plain = one_line(name)
    return plain if len(plain) <= _LONGEST_NAME else f"…{plain[1 - _LONGEST_NAME :]}"
