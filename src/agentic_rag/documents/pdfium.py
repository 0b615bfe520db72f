"""A PDF file by PDFium: what it says of itself, and its pages as text or as pixels.

PDFium is not thread-safe: everything that touches it happens here, under one lock.
"""

import ctypes
import math
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name

if TYPE_CHECKING:
    import pypdfium2

    from agentic_rag.documents.ocr import Pixels

_PDFIUM = threading.Lock()
_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD
_POINTS = 72  # to the inch
_MOST_PIXELS = 40_000_000  # of a rendered page; A0 in 200 dpi is twice that
_DEEPEST_FORM = 3  # pictures inside forms inside forms
_LEAST_FIGURE = 40.0  # points in height and width
_BACKGROUND = 0.8  # of the page


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An outline entry; `page` is an index."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Box:
    """A place on a page in points, from its lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(slots=True)
class PdfContent:
    """What PDFium said, before any interpretation. A page that failed is None. `pictures` are those
    of each page that may be figures, from top to bottom."""

    pages: list[str | None] = field(default_factory=list)
    pictures: list[list[Box]] = field(default_factory=list)
    outline: list[Bookmark] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)


def pdf_content(uri: str, data: bytes) -> PdfContent:
    """Texts, outline and metadata. Raises UnreadableDocument for a damaged or locked file."""
    import pypdfium2

    found = PdfContent()
    with _PDFIUM:
        try:
            pdf = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise _unreadable(uri, error) from error
        try:
            for index in range(len(pdf)):
                text, boxes = _page(pdf, index)
                found.pages.append(text)
                found.pictures.append(boxes)
            found.metadata = _metadata(pdf)
            found.outline = _outline(pdf)
        except pypdfium2.PdfiumError as error:
            raise _unreadable(uri, error) from error
        finally:
            pdf.close()
    return found


def picture_shares(data: bytes, pages: Sequence[int]) -> list[float]:
    """How much of each page (by index) pictures cover, from 0 to 1."""
    import pypdfium2

    found = []
    with _PDFIUM, closing(pypdfium2.PdfDocument(data)) as pdf:
        for index in pages:
            with closing(pdf[index]) as page:
                width, height = page.get_size()
                area = 0.0
                pictures = page.get_objects(
                    filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=_DEEPEST_FORM
                )
                with suppress(pypdfium2.PdfiumError):
                    for picture in pictures:
                        left, bottom, right, top = picture.get_bounds()
                        area += abs((right - left) * (top - bottom))
                found.append(min(1.0, area / (width * height)) if width * height else 0.0)
    return found


def rendered(data: bytes, pages: Sequence[int], dpi: int) -> "Generator[Pixels | None, None, None]":
    """The pages (by index) as pixels, one after another; None for one that cannot be drawn.

    A page larger than a sheet of A1 comes in fewer dots an inch. The lock is free while a page is
    looked at.
    """
    import pypdfium2

    with _PDFIUM:
        pdf = pypdfium2.PdfDocument(data)
    try:
        for index in pages:
            with _PDFIUM:
                pixels = _pixels(pdf, index, dpi)
            yield pixels
    finally:
        with _PDFIUM:
            pdf.close()


def _pixels(pdf: "pypdfium2.PdfDocument", index: int, dpi: int) -> "Pixels | None":
    import pypdfium2

    try:
        with closing(pdf[index]) as page:
            width, height = page.get_size()
            scale = min(dpi / _POINTS, math.sqrt(_MOST_PIXELS / max(1.0, width * height)))
            with closing(page.render(scale=scale, force_bitmap_format=_BGR)) as bitmap:
                pixels: Pixels = bitmap.to_numpy().copy()
                return pixels
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        return None


_BGR = 2  # FPDFBitmap_BGR


def _page(pdf: "pypdfium2.PdfDocument", index: int) -> tuple[str | None, list[Box]]:
    import pypdfium2

    try:
        with closing(pdf[index]) as page:
            text: str = page.get_textpage().get_text_range()
            return text, _pictures(page)
    except pypdfium2.PdfiumError:
        return None, []  # a damaged page; the others are still worth having


def _pictures(page: "pypdfium2.PdfPage") -> list[Box]:
    """The pictures on a page that are neither icons and rules nor its background."""
    import pypdfium2

    raw = pypdfium2.raw
    left, bottom, right, top = page.get_cropbox()
    area = max(1.0, (right - left) * (top - bottom))
    found = []
    for number in range(raw.FPDFPage_CountObjects(page)):
        thing = raw.FPDFPage_GetObject(page, number)
        if raw.FPDFPageObj_GetType(thing) != raw.FPDF_PAGEOBJ_IMAGE:
            continue
        sides = [ctypes.c_float() for _ in range(4)]
        if not raw.FPDFPageObj_GetBounds(thing, *map(ctypes.byref, sides)):
            continue
        box = Box(
            max(sides[0].value, left),
            max(sides[1].value, bottom),
            min(sides[2].value, right),
            min(sides[3].value, top),
        )
        width, height = box.right - box.left, box.top - box.bottom
        if min(width, height) >= _LEAST_FIGURE and width * height <= _BACKGROUND * area:
            found.append(box)
    return sorted(found, key=lambda box: -box.top)


def figure(data: bytes, index: int, box: Box, dpi: int) -> bytes:
    """What a page (by index) shows in a box, as a PNG; b"" where it cannot be drawn. A page that is
    turned comes whole."""
    import pypdfium2
    from PIL import Image

    with _PDFIUM, closing(pypdfium2.PdfDocument(data)) as pdf:
        try:
            with closing(pdf[index]) as page:
                left, bottom, right, top = page.get_cropbox()
                crop = (box.left - left, box.bottom - bottom, right - box.right, top - box.top)
                with closing(
                    page.render(
                        scale=dpi / _POINTS,
                        crop=(0, 0, 0, 0) if page.get_rotation() else crop,
                        force_bitmap_format=_BGR,
                    )
                ) as bitmap:
                    pixels = bitmap.to_numpy()[:, :, ::-1].copy()
        except (pypdfium2.PdfiumError, ValueError, MemoryError):
            return b""
    drawn = BytesIO()
    Image.fromarray(pixels).save(drawn, "PNG", compress_level=1)
    return drawn.getvalue()


def _metadata(pdf: "pypdfium2.PdfDocument") -> dict[str, str]:
    """Title and author, as far as they are text."""
    found = {}
    for key in ("Title", "Author"):
        with suppress(UnicodeError):  # damaged strings are no reason to refuse the pages
            found[key] = pdf.get_metadata_value(key)
    return found


def _outline(pdf: "pypdfium2.PdfDocument") -> list[Bookmark]:
    entries = []
    for bookmark in pdf.get_toc():
        with suppress(UnicodeError):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            title = bookmark.get_title()
            if title and page is not None:
                entries.append(Bookmark(bookmark.level + 1, title, page))
    return entries


def _unreadable(uri: str, error: "pypdfium2.PdfiumError") -> UnreadableDocument:
    name = file_name(uri)
    if getattr(error, "err_code", None) == _PASSWORD_ERROR:
        return UnreadableDocument(
            f"'{name}' is protected by a password; save a copy without one and index that"
        )
    return UnreadableDocument(
        f"'{name}' is damaged or no PDF; open it in a PDF viewer and save it again"
    )
