"""Pictures of text, Western and Chinese, with the fonts that the ocr extra's opencv brings."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from PIL import Image

SIZE = 30
LEADING = 50
MARGIN = 40


def need_ocr() -> None:
    """Skip the tests of a module where the ocr extra is not installed."""
    pytest.importorskip("rapidocr", reason="the ocr extra is not installed")
    cv2 = pytest.importorskip("cv2", reason="the ocr extra is not installed")
    if not hasattr(cv2, "FontFace"):
        pytest.skip("opencv before 5 has no Chinese font to draw with", allow_module_level=True)


def drawn(
    lines: Sequence[str], width: int = 800, height: int = 0, size: int = SIZE
) -> npt.NDArray[np.uint8]:
    """Black lines on white; an empty one leaves its place free."""
    leading = LEADING * size // SIZE
    pixels = np.full((height or 2 * MARGIN + leading * len(lines), width, 3), 255, np.uint8)
    return draw_on(pixels, lines, MARGIN, MARGIN + size, size)


def draw_on(
    pixels: npt.NDArray[np.uint8], lines: Sequence[str], left: int, top: int, size: int = SIZE
) -> npt.NDArray[np.uint8]:
    """Draw lines into a picture, `top` being the foot of the first."""
    import cv2

    font = cv2.FontFace("uni")
    for number, line in enumerate(lines):
        foot = top + number * (LEADING * size // SIZE)
        cv2.putText(pixels, line, (left, foot), (0, 0, 0), font, size, 0)
    return pixels


def image(lines: Sequence[str], **kind: int) -> "Image.Image":
    """The same as an image of Pillow's."""
    from PIL import Image

    return Image.fromarray(drawn(lines, **kind))


def encoded(picture: "Image.Image", kind: str, **options: object) -> bytes:
    """A picture as a file of one of Pillow's formats."""
    data = BytesIO()
    picture.save(data, kind, **options)
    return data.getvalue()
