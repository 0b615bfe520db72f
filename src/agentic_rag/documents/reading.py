"""How a source is read besides what its bytes say: the settings of OCR and of figures, where the
pictures lie that it shows, and how a reader that takes long tells how far it is and is stopped.

`parse` puts a reading in force for as long as it runs, so that a scan inside a mail inside an
archive is read like one on disk.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agentic_rag.config import Images, Ocr
from agentic_rag.documents import ocr
from agentic_rag.documents.ocr import Pixels
from agentic_rag.documents.source import Beside
from agentic_rag.errors import AragError


class ReadingStopped(AragError):
    """Reading was stopped as asked, before the document was whole."""


# A picture, "zh" or "en", and its caption -> what the picture shows. Raises AragError.
Describe = Callable[[Pixels, str, str], str]


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """Figures inside documents: how many there are, how many pictures were read by OCR (one that is
    shown again is not read again), and how many are in the text now; `dropped` says how many were
    left out for which reason, so that with those kept they are all, `cure` what to do where none is
    read. What would have to be fetched from elsewhere is not counted."""

    seen: int = 0
    read: int = 0
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    cure: str = ""

    def __add__(self, other: "ImageCounts") -> "ImageCounts":
        reasons = dict.fromkeys((*self.dropped, *other.dropped))
        return ImageCounts(
            self.seen + other.seen,
            self.read + other.read,
            self.kept + other.kept,
            {why: self.dropped.get(why, 0) + other.dropped.get(why, 0) for why in reasons},
            self.cure or other.cure,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """`on_page` is told after how many of how many pages of a file OCR is, `stopped` is asked
    before each one, `on_images` is told of the figures of each document. `beside` gives the files
    that a document shows; `describe` says what is in a picture."""

    ocr: Ocr = field(default_factory=Ocr)
    on_page: Callable[[int, int], None] = lambda done, total: None
    stopped: Callable[[], bool] = lambda: False
    images: Images = field(default_factory=Images)
    on_images: Callable[[ImageCounts], None] = lambda counts: None
    beside: Beside | None = None
    describe: Describe | None = None

    @property
    def reads_pictures(self) -> bool:
        """Whether OCR is on: installed, and not switched off."""
        return self.ocr.enabled and ocr.is_installed()

    @property
    def reads_figures(self) -> bool:
        """Whether figures inside documents are read: asked for, and OCR is on."""
        return self.images.read and self.reads_pictures

    @property
    def cure(self) -> str:
        """Where pictures are not read, what to do to have them read."""
        if not ocr.is_installed():
            return f"for OCR: {ocr.INSTALL}"
        return "OCR is off, ocr.enabled = true has it on"

    @property
    def figures_cure(self) -> str:
        """Where figures are not read, what to do to have them read."""
        if self.images.read:
            return self.cure
        extra = "" if ocr.is_installed() else f", with the ocr extra ({ocr.INSTALL})"
        return f"images.read = true reads them{extra}"

    def page(self, done: int, total: int) -> None:
        """To be called before each page, and with `done` = `total` at the end. Raises
        ReadingStopped."""
        if self.stopped():
            raise ReadingStopped("reading was stopped; index it again to have it whole")
        self.on_page(done, total)


_BY_DEFAULT = Reading()
_IN_FORCE: ContextVar[Reading] = ContextVar("reading", default=_BY_DEFAULT)


def in_force() -> Reading:
    """The reading of the `parse` that runs."""
    return _IN_FORCE.get()


@contextmanager
def put_in_force(reading: Reading | None) -> Iterator[None]:
    """Make a reading the one in force; None leaves the one that is."""
    if reading is None:
        yield
        return
    token = _IN_FORCE.set(reading)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)
