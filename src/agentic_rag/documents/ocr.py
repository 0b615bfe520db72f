"""Text in a picture: pixels in, lines with their places out, by PP-OCR (arXiv 2009.09941).

The models (PP-OCRv6 small: Chinese and English) lie in the wheel of `rapidocr`, the ocr extra, and
nothing is fetched. They are loaded once, when the first picture comes, and read one picture at a
time: a lock lets any thread call.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.reading_order import TextLine, rows
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from rapidocr import RapidOCR

INSTALL = "pip install 'agentic-rag[ocr]'"

Pixels = npt.NDArray[np.uint8]  # height x width x 3: blue, green, red

_MODEL = threading.Lock()
_LONGEST_SIDE = 2000  # pixels the models are given; a larger picture is scaled down to it
# A picture more than twice as high as wide (a page of the web, a long screenshot) would be scaled
# beyond reading; it is cut into bands of these proportions, no lower than so many pixels.
_TALL = 2.0
_BAND = 1.5
_LOWEST_BAND = 1500
# A wide one (a plotted chart, a time line) from here on is read both scaled down and in pieces that
# need no scaling, and the reading that says more counts: its letters may be as high as the picture.
_WIDE = 2 * _LONGEST_SIDE
# The detector blows a smaller picture up to this height or width, which takes three times as long
# and misses more than giving it a margin does.
_LEAST_SIDE = 736
_SMALLEST_SIDE = 8
_LEAST_CONTRAST = 16  # of 255; less is an empty page
# How a page lies is judged by its longest lines.
_JUDGES = 7
_SHORTEST_JUDGE = 3  # characters; a shorter line may be higher than wide
_SIDEWAYS = 1.5  # a line this much higher than wide


class OcrBroken(AragError):
    """The ocr extra is installed and cannot be used."""


@dataclass(frozen=True, slots=True)
class PictureText:
    """What a picture says. `lines` are those recognised surely enough, in no order; `unsure` is
    how many were left out. Boxes are of the picture as `turns` quarter turns against the clock
    make it upright."""

    lines: tuple[TextLine, ...] = ()
    unsure: int = 0
    turns: int = 0

    def rows(self) -> list[str]:
        """Rows of text as they are read, an empty one where a paragraph ends."""
        return rows(self.lines)


@cache
def is_installed() -> bool:
    """Whether the ocr extra is installed."""
    return all(find_spec(name) for name in ("rapidocr", "onnxruntime", "cv2", "PIL"))


def try_out() -> str:
    """Draw the number 1906, read it, and give what was read. Raises OcrBroken, and what the models
    raise."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (300, 120), "white")
    ImageDraw.Draw(picture).text((40, 30), "1906", "black", ImageFont.load_default(50))
    return " ".join(read_pixels(np.asarray(picture), 0.0).rows())


def read_pixels(pixels: Pixels, min_confidence: float) -> PictureText:
    """The text of a picture of any size, also one that lies on its side or head.

    Lines less sure than `min_confidence` (0 to 1) are counted and left out. Raises OcrBroken.
    """
    if min(pixels.shape[:2]) < _SMALLEST_SIDE or np.ptp(pixels) < _LEAST_CONTRAST:
        return PictureText()
    with _MODEL:
        if _is_tall(pixels):
            read, turns = _in_bands(pixels), 0
        else:
            read, turns = _upright(pixels)
        if _is_wide(pixels) and _said(cut := _in_columns(pixels)) > _said(read):
            read, turns = cut, 0
    sure = tuple(line for line in read if line.confidence >= min_confidence)
    return PictureText(sure, len(read) - len(sure), turns)


def _upright(pixels: Pixels) -> tuple[list[TextLine], int]:
    """The lines of a picture as a whole, and how often it was turned for them."""
    lines = _recognised(pixels)
    if turns := _turns(pixels, lines):
        lines = _recognised(np.ascontiguousarray(np.rot90(pixels, turns)))
    return lines, turns


def _is_tall(pixels: Pixels) -> bool:
    height, width = len(pixels), len(pixels[0])
    return height > max(_TALL * width, _LONGEST_SIDE)


def _is_wide(pixels: Pixels) -> bool:
    height, width = len(pixels), len(pixels[0])
    return width > max(_TALL * height, _WIDE)


def _in_bands(pixels: Pixels) -> list[TextLine]:
    """The lines of a tall picture, band by band."""
    most = max(int(_BAND * pixels.shape[1]), _LOWEST_BAND)
    bands = _ends(pixels, most)
    return [line for top, end in bands for line in _recognised(pixels[top:end], (0, top))]


def _in_columns(pixels: Pixels) -> list[TextLine]:
    """The lines of a wide picture, piece by piece."""
    columns = _ends(pixels.swapaxes(0, 1), _LONGEST_SIDE)
    return [
        line
        for left, end in columns
        for line in _recognised(np.ascontiguousarray(pixels[:, left:end]), (left, 0))
    ]


def _said(lines: Sequence[TextLine]) -> float:
    """How much was read, and how surely."""
    return sum(len(line.text) * line.confidence for line in lines)


def _ends(pixels: Pixels, most: int) -> list[tuple[int, int]]:
    """Where pieces of a picture begin and end along its first axis, each at most so long, cut where
    least is printed."""
    found = []
    begin = 0
    while len(pixels) - begin > most:
        first = begin + int(0.7 * most)
        printed = pixels[first : begin + most].std(axis=(1, 2))
        end = first + _middle_of_longest(printed <= printed.min() + 1) + 1
        found.append((begin, end))
        begin = end
    return [*found, (begin, len(pixels))]


def _middle_of_longest(empty: npt.NDArray[np.bool_]) -> int:
    """The middle of the longest run of what is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], empty.astype(np.int8), [0]))))
    begins, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - begins))
    return int(begins[longest] + ends[longest] - 1) // 2


def _recognised(pixels: Pixels, corner: tuple[int, int] = (0, 0)) -> list[TextLine]:
    pixels = _padded(pixels)
    found: Any = _model()(pixels, use_det=True, use_cls=True, use_rec=True, text_score=0.0)
    if not found.txts:
        return []
    left, top = corner
    return [
        TextLine(clean, float(score), tuple((float(x) + left, float(y) + top) for x, y in box))
        for text, score, box in zip(found.txts, found.scores, found.boxes, strict=True)
        if (clean := one_line(text))
    ]


def _padded(pixels: Pixels) -> Pixels:
    """A small picture with its background on to the right and below."""
    height, width = pixels.shape[:2]
    if min(height, width) >= _LEAST_SIDE:
        return pixels
    padded: Pixels = np.empty((max(height, _LEAST_SIDE), max(width, _LEAST_SIDE), 3), np.uint8)
    padded[:] = np.median(pixels.reshape(-1, 3), axis=0)
    padded[:height, :width] = pixels
    return padded


def _turns(pixels: Pixels, lines: Sequence[TextLine]) -> int:
    """Quarter turns against the clock that make the picture upright."""
    judges = sorted(
        (line for line in lines if len(line.text) >= _SHORTEST_JUDGE),
        key=lambda line: -len(line.text),
    )[:_JUDGES]
    if not judges:
        return 0
    sideways = sum(_is_upended(line) for line in judges) > len(judges) / 2
    quarter = 1 if sideways else 0
    headlong = sum(_is_headlong(np.rot90(_cut(pixels, line), quarter)) for line in judges)
    return quarter + 2 * (headlong > len(judges) / 2)


def _is_upended(line: TextLine) -> bool:
    box = np.array(line.box)
    width, height = np.ptp(box, axis=0)
    return bool(height > _SIDEWAYS * width)


def _cut(pixels: Pixels, line: TextLine) -> Pixels:
    box = np.array(line.box)
    (left, top), (right, bottom) = box.min(0).astype(int), np.ceil(box.max(0)).astype(int)
    return pixels[max(top, 0) : bottom + 1, max(left, 0) : right + 1]


def _is_headlong(line: Pixels) -> bool:
    """Whether a line's picture stands on its head."""
    found: Any = _model()(np.ascontiguousarray(line), use_det=False, use_cls=True, use_rec=False)
    return bool(found.cls_res and found.cls_res[0][0] == "180")


@cache
def _model() -> "RapidOCR":
    """The models, loaded. Only called under the lock."""
    try:
        from rapidocr import RapidOCR

        settings = {
            "Global.log_level": "critical",
            "Global.max_side_len": _LONGEST_SIDE,
        }
        return RapidOCR(params=settings)
    except Exception as error:  # an import of parts that do not fit, a model file that is gone
        raise OcrBroken(
            f"the ocr extra does not work here ({type(error).__name__}: {one_line(str(error))}); "
            f"install it anew: {INSTALL}"
        ) from error
