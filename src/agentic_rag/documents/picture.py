"""Pictures (PNG, JPEG, TIFF, BMP, WebP, GIF) as documents: their text by OCR.

A TIFF has pages; of an animation the first frame is read. Pixels are not unpacked before their
number is known to be bearable.
"""

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from agentic_rag.documents import reading
from agentic_rag.documents.document import Document, Scalar
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.ocr import Pixels
from agentic_rag.documents.printed_pages import flow_pages
from agentic_rag.documents.scanned_pages import on_pages, read_pictures

if TYPE_CHECKING:
    from PIL import Image

# The only ones that Pillow may try: others start programs or are no pictures.
_MEDIA_TYPES = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "TIFF": "image/tiff",
    "BMP": "image/bmp",
    "WEBP": "image/webp",
    "GIF": "image/gif",
}
# A sheet of A0 in 300 dots an inch has 140 million; Pillow itself refuses 179 million.
_MOST_PIXELS = 150_000_000
# What is larger is scaled down: OCR looks at half of that. A long screenshot may be longer, a chart
# wider: they are read in pieces.
_MOST_SIDE = 4_000
_LONGEST = 60_000
_MOST_PAGES = 5_000
# What Pillow raises of damaged files; tags that are missing or of a wrong kind are the last three.
_FAULTS = (OSError, EOFError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError)


def parse_picture(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a picture file's bytes, named by its file.

    Raises UnsupportedDocument where OCR is off, UnreadableDocument for a damaged or huge file,
    and ReadingStopped.
    """
    how = reading.in_force()
    name = file_name(uri)
    if not how.reads_pictures:
        raise UnsupportedDocument(f"pictures are not read; {how.cure}")
    with _opened(name, data) as image:
        media_type = _MEDIA_TYPES.get(image.format or "", media_type)
        total = min(_page_count(name, image), _MOST_PAGES)
        with closing(_pages(name, image, total)) as pictures:
            found = read_pictures(enumerate(pictures), total, how, _place(total))
    printed = flow_pages([found.pages.get(index, []) for index in range(total)])
    several = total > 1
    metadata: dict[str, Scalar] = {"pages": total} if several else {}
    if found.pages:
        metadata["ocr_pages"] = len(found.pages)
    return Document(
        uri=uri,
        title=name,
        media_type=media_type,
        text=printed.text,
        pages=printed.pages if several else (),
        metadata=metadata,
        warnings=found.warnings,
    )


def _place(total: int) -> Callable[[Iterable[int]], str]:
    """How pages are named to a person: not at all where there is only one."""
    return on_pages if total > 1 else lambda numbers: ""


def picture_pixels(name: str, data: bytes) -> Pixels:
    """A picture file's (first) picture, upright, on white, a huge one scaled down. Raises
    UnreadableDocument for a damaged file, and for one of too many pixels to unpack."""
    with _opened(name, data) as image:
        return _pixels(name, image)


def shorter_side(name: str, data: bytes) -> int:
    """The shorter side of a picture file's picture in pixels, as it is stored. Raises
    UnreadableDocument."""
    with _opened(name, data) as image:
        return min(image.size)


@contextmanager
def _opened(name: str, data: bytes) -> "Iterator[Image.Image]":
    from PIL import Image

    try:
        with _quiet():
            image = Image.open(BytesIO(data), formats=tuple(_MEDIA_TYPES))
    except Image.DecompressionBombError as error:
        raise _too_large(name) from error
    except _FAULTS as error:
        raise _damaged(name) from error
    with image:
        yield image


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Pillow's warnings to itself: of many pixels (they are counted here), of a file that is
    not quite as its format asks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _page_count(name: str, image: "Image.Image") -> int:
    try:
        return int(getattr(image, "n_frames", 1)) if image.format == "TIFF" else 1
    except _FAULTS as error:
        raise _damaged(name) from error


def _pages(name: str, image: "Image.Image", total: int) -> Generator[Pixels | None, None, None]:
    """One after another; in a file of several, None for a page that is damaged or too large."""
    for index in range(total):
        try:
            if index:
                image.seek(index)
            yield _pixels(name, image)
        except UnreadableDocument:
            if total == 1:
                raise
            yield None
        except _FAULTS:
            yield None


def _pixels(name: str, image: "Image.Image") -> Pixels:
    """A frame as it is meant to be seen: upright, on white, no larger than is bearable."""
    from PIL import ImageOps

    width, height = image.size
    if width * height > _MOST_PIXELS:
        raise _too_large(name)
    most = (
        _LONGEST if width > 2 * height else _MOST_SIDE,
        _LONGEST if height > 2 * width else _MOST_SIDE,
    )
    try:
        with _quiet():
            if image.format == "JPEG":
                image.draft("RGB", most)  # unpacks fewer pixels
            frame = _in_rgb(image)
            frame.thumbnail(most)
            upright = ImageOps.exif_transpose(frame)
    except (*_FAULTS, MemoryError) as error:
        raise _damaged(name) from error
    return np.ascontiguousarray(np.asarray(upright)[:, :, ::-1])


def _in_rgb(image: "Image.Image") -> "Image.Image":
    """The frame in 8-bit colours, on white where it is transparent."""
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        # Pillow would cut off what is brighter than 255 of 65,535.
        values = np.asarray(image, dtype=np.float32)
        low, high = float(values.min()), float(values.max())
        grey = (values - low) * (255 / ((high - low) or 1))
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        white.info = image.info
        return white.convert("RGB")
    return image.convert("RGB")


def _too_large(name: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"'{name}' has more than {_MOST_PIXELS // 1_000_000} million pixels; save it smaller"
    )


def _damaged(name: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"'{name}' is a damaged picture; open it in an image viewer and save it again"
    )
