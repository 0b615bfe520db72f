"""Where a document comes from: a file, a member of an archive, a URL, or bytes already here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentic_rag.documents.document import Document
from agentic_rag.errors import AragError

_GIVEN = "given:"

# The bytes of the file at a path relative to a source, if it lies in the same folder or archive as
# what was named; None where there is none. Raises UnreadableDocument.
Beside = Callable[[str], bytes | None]


class TooLarge(AragError):
    """A source is larger than the setting `index.max_file_mb` allows."""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a source. `media_type` is what a server said they are ("" lets the name and
    the first bytes decide)."""

    data: bytes
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to read. `uri` names it for good; `read` gives its content, refusing more bytes
    than it is told with TooLarge.

    Of a file, `uri` is its absolute path, the folders' links resolved but not its own, and of an
    archive's member the archive's path with the member's behind it; `folders` lie between what
    was named and the file; `size` is in bytes, 0 where only reading tells; `mtime_ns` is 0 where
    a source has no time of change, and then it is read to see whether it has changed; `explicit`
    says that the source itself was named. `path` is the file it is or lies in, if any. `beside`
    gives the files that it shows; `finish` adds to its document what its place is known to say,
    and `place` changes with that.
    """

    uri: str
    name: str
    folders: tuple[str, ...]
    size: int
    mtime_ns: int
    explicit: bool
    read: Callable[[int], Content] = field(compare=False, repr=False)
    path: Path | None = None
    beside: Beside | None = field(default=None, compare=False, repr=False)
    finish: Callable[[Document], Document] = field(
        default=lambda document: document, compare=False, repr=False
    )
    place: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something named or met that cannot be read, and why.

    `skipped`: it is nobody's mistake and no document is missing by it, as a link that leads
    nowhere. `of_version`, if not 0: only a remark on the documents inside the file `uri`, which can
    be read; it is the file's time of change, as their `mtime_ns`.
    """

    uri: str
    reason: str
    skipped: bool = False
    of_version: int = 0


def given_source(name: str, data: bytes, media_type: str = "") -> Source:
    """A source of bytes that are here already, as from standard input or an upload.

    Its URI is `name` behind "given:"; giving other bytes under the same name updates the
    document.
    """

    def read(most: int) -> Content:
        return Content(within(data, most), media_type)

    return Source(f"{_GIVEN}{name}", name, (), len(data), 0, True, read)


def is_given(uri: str) -> bool:
    """Whether a URI is that of bytes which were given."""
    return uri.startswith(_GIVEN)


def read_file(path: Path, most: int) -> Content:
    """The content of a file. Raises TooLarge, OSError."""
    size = path.stat().st_size
    if size > most:
        raise too_large(most)
    return Content(path.read_bytes())


def within(data: bytes, most: int) -> bytes:
    """`data`, if it is no more than `most` bytes. Raises TooLarge."""
    if len(data) > most:
        raise too_large(most)
    return data


def too_large(most: int) -> TooLarge:
    """The error for a source of more than `most` bytes."""
    return TooLarge(f"it is larger than {most // 1_000_000} MB; raise index.max_file_mb to take it")
