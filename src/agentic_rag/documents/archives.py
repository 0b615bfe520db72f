"""A ZIP archive as a folder: its files, each named by the archive's path with its own behind it.

Names are what others wrote: what is absolute, climbs out, or could be no file's name is made one
that stays inside. Of a name that stands twice, the later file is the valid one, as unpacking would
leave it; different names that come to be the same are told apart by a number.
"""

import os
import stat
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.source import Content, too_large
from agentic_rag.documents.zip_safety import Archive, Member, open_archive_file, read_member

_SUFFIXES = (".zip", ".zedx")
_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
# Files that are ZIP archives to their programs only (ECMA-376 part 2, EPUB, OpenDocument).
_PACKAGE_MARKS = ("[Content_Types].xml", "mimetype")
_LONGEST_NAME = 255  # bytes of a part of a path, which is what file systems take
_LONGEST_SUFFIX = 20
_LINK_MODE = 16  # Unix systems put a file's mode into the upper half of the attributes


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file in an archive; `path` is its safe path in it, with forward slashes."""

    path: str
    member: Member = field(repr=False)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link: its content would be the name of another file."""
        return stat.S_ISLNK(self.member.info.external_attr >> _LINK_MODE)


def is_archive(path: str) -> bool:
    """Whether the file at `path` may be an archive to look into: by its suffix, or without
    any by its content. Raises OSError."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix and suffix not in _SUFFIXES:
        return False
    with Path(path).open("rb") as file:
        starts_as_one = file.read(4).startswith(_SIGNATURES)
        return starts_as_one or (bool(suffix) and zipfile.is_zipfile(file))


def archive_above(path: str) -> tuple[str, str] | None:
    """The archive that a path leads into and the path inside it; None if it leads into none."""
    above = path
    while (parent := os.path.dirname(above)) != above:  # noqa: PTH120 - strings, as in `discover`
        above = parent
        if os.path.isfile(above):  # noqa: PTH113
            named = PurePosixPath(above).suffix.lower() in _SUFFIXES
            try:
                inside = named or is_archive(above)
            except OSError:
                inside = False
            return (above, path[len(above) :].strip("/")) if inside else None
        if os.path.isdir(above):  # noqa: PTH112
            return None
    return None


def archived_files(archive: Archive) -> list[ArchivedFile]:
    """The files of an archive in the order of its directory, each path once."""
    last: dict[str, Member] = {}
    for member in archive.members:
        last.pop(member.name, None)
        last[member.name] = member
    paths = safe_paths(list(last))
    return [ArchivedFile(*pair) for pair in zip(paths, last.values(), strict=True)]


def list_archive(path: Path) -> list[ArchivedFile] | None:
    """The files of the archive at `path`; None for the package of an office program, which is one
    document. Raises UnreadableDocument, OSError."""
    archive = open_archive_file(path)
    archive.file.close()
    if any(member.name in _PACKAGE_MARKS for member in archive.members):
        return None
    return archived_files(archive)


def is_certainly_missing(path: str) -> bool:
    """Whether a path that leads into a file is in no archive. Of an archive that cannot be opened
    nobody knows."""
    found = archive_above(path)
    if found is None:
        return True
    archive, inside = found
    try:
        status = Path(archive).stat()
        return inside not in _paths(archive, status.st_mtime_ns, status.st_size)
    except (OSError, UnreadableDocument):
        return False


@lru_cache(maxsize=8)
def _paths(archive: str, mtime_ns: int, size: int) -> frozenset[str]:
    return frozenset(file.path for file in list_archive(Path(archive)) or ())


def safe_paths(names: Sequence[str]) -> list[str]:
    """Names of archived files as paths that stay inside the archive, no two alike."""
    taken: set[str] = set()
    paths = []
    for name in names:
        parts = [_shortened(one_line(part)) for part in name.replace("\\", "/").split("/")]
        if parts[0][1:] == ":":  # a drive
            parts = parts[1:]
        path = "/".join(part for part in parts if part.strip(". ")) or "file"
        free, number = path, 1
        while free in taken:
            number += 1
            suffix = PurePosixPath(path).suffix
            free = f"{path.removesuffix(suffix)} ({number}){suffix}"
        taken.add(free)
        paths.append(free)
    return paths


def _shortened(part: str) -> str:
    if len(part.encode()) <= _LONGEST_NAME:
        return part
    suffix = PurePosixPath(part).suffix
    if len(suffix.encode()) > _LONGEST_SUFFIX:
        suffix = ""
    kept = part.encode()[: _LONGEST_NAME - len(suffix.encode())].decode("utf-8", "ignore")
    return kept.removesuffix(suffix) + suffix


class OpenArchive:
    """Reads files out of archives and keeps the last archive open, since the files of one come
    one after another, and opening it reads its whole directory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[Path, int] | None = None
        self._archive: Archive | None = None

    def read(self, path: Path, mtime_ns: int, member: Member, most: int) -> Content:
        """A file's content. Raises TooLarge, UnreadableDocument, OSError."""
        if member.size > most:
            raise too_large(most)
        with self._lock:
            return Content(read_member(self._opened(path, mtime_ns), member, most))

    def _opened(self, path: Path, mtime_ns: int) -> Archive:
        if self._archive is None or self._key != (path, mtime_ns):
            if self._archive is not None:
                self._archive.file.close()
                self._archive = None
            if path.stat().st_mtime_ns != mtime_ns:
                raise UnreadableDocument(
                    f"'{file_name(str(path))}' was changed while it was read; index it again"
                )
            self._archive, self._key = open_archive_file(path), (path, mtime_ns)
        return self._archive
