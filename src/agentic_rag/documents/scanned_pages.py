"""Pages that are pictures -> their lines by OCR: which pages of a PDF need it, what it found on
them, and what a person is told."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from agentic_rag.documents import ocr, pdfium, reading
from agentic_rag.documents.cleaning import number_ranges
from agentic_rag.documents.ocr import OcrBroken, PictureText, Pixels
from agentic_rag.documents.reading import Reading

# A page with so few characters and a picture over more than half of it is a scan that a program
# has stamped: a page number, "Scanned by ...".
_STAMP = 80
_COVERED = 0.5


@dataclass(frozen=True, slots=True)
class ScannedPages:
    """The lines of pages (by index) that OCR has read, and sentences for a person."""

    pages: Mapping[int, list[str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_scanned_pages(
    data: bytes, raw: Sequence[str | None], lines: Sequence[Sequence[str]]
) -> ScannedPages:
    """Read the pages of a PDF that are scans. `raw` and `lines` are the pages' own text, None
    where a page is damaged. Raises ReadingStopped."""
    empty = [i for i, page in enumerate(lines) if not page and raw[i] is not None]
    few = [i for i, page in enumerate(lines) if 0 < _length(page) <= _STAMP]
    stamped = [
        index
        for index, share in zip(few, pdfium.picture_shares(data, few), strict=True)
        if share > _COVERED
    ]
    scans = sorted(empty + stamped)
    how = reading.in_force()
    if not scans:
        return ScannedPages()
    if not how.reads_pictures:
        where = on_pages(page + 1 for page in scans)
        only = "no text" if not stamped else "hardly any text"
        return ScannedPages(warnings=(f"{only}{where}; {how.cure}",))
    with closing(pdfium.rendered(data, scans, how.ocr.dpi)) as pictures:
        numbered = zip(scans, pictures, strict=True)
        found = read_pictures(numbered, len(scans), how, on_pages)
    # What a program stamped is in the picture too; where OCR sees less, the page's own text stays.
    better = {
        index: rows for index, rows in found.pages.items() if _length(rows) > _length(lines[index])
    }
    return ScannedPages(better, found.warnings)


def read_pictures(
    pictures: Iterable[tuple[int, Pixels | None]],
    total: int,
    how: Reading,
    place: Callable[[Iterable[int]], str],
) -> ScannedPages:
    """Read pages as pixels, given by index; None is a page that could not be drawn. `place` names
    pages, by number, to a person. Raises ReadingStopped."""
    pages: dict[int, list[str]] = {}
    unsure: dict[int, int] = {}
    without: dict[str, list[int]] = {}
    how.page(0, total)
    for done, (index, pixels) in enumerate(pictures, start=1):
        try:
            text = _read(pixels, how)
        except _Unread as reason:
            without.setdefault(str(reason), []).append(index)
        else:
            if rows := text.rows():
                pages[index] = rows
            elif not text.unsure:
                without.setdefault("OCR finds none", []).append(index)
            if text.unsure:
                unsure[index] = text.unsure
        how.page(done, total)
    told = [
        f"no text{place(index + 1 for index in indexes)}; {reason}"
        for reason, indexes in without.items()
    ]
    if unsure:
        told.append(f"{left_out(sum(unsure.values()), how)}{place(index + 1 for index in unsure)}")
    return ScannedPages(pages, tuple(told))


def left_out(count: int, how: Reading) -> str:
    """That so many lines were read without being sure enough of them."""
    lines = f"{count:,} line{'s' * (count > 1)}"
    return f"{lines} below confidence {how.ocr.min_confidence:g} left out"


class _Unread(Exception):
    """Why a page could not be read."""


def _read(pixels: Pixels | None, how: Reading) -> PictureText:
    if pixels is None:
        raise _Unread("it cannot be drawn")
    try:
        return ocr.read_pixels(pixels, how.ocr.min_confidence)
    except OcrBroken as error:
        raise _Unread(str(error)) from error
    except Exception as error:  # of the models; the other pages are still worth having
        raise _Unread(f"OCR failed ({type(error).__name__})") from error


def on_pages(numbers: Iterable[int]) -> str:
    """Sorted page numbers for a person: " on page 3", " on pages 2-4, 6"."""
    listed = list(numbers)
    return f" on page{'s' * (len(listed) > 1)} {number_ranges(listed)}"


def _length(lines: Iterable[str]) -> int:
    return sum(len("".join(line.split())) for line in lines)
