"""Paths to sources: which files a folder holds that are meant to be read.

Obeyed, the later the stronger: names left out by default (hidden ones, `node_modules`,
`__pycache__`, virtual environments), `.gitignore` files from the named folder downwards, and the
caller's own patterns in the same syntax, of which `!pattern` brings back what was left out. A
file that is named itself is always taken. A ZIP archive is a folder, in which the caller's
patterns and the names left out by default hold, and no .gitignore file; a zedx is one whose tree
of contents names the folders.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.documents import zedx
from agentic_rag.documents.archive_document import locked_files
from agentic_rag.documents.archives import (
    ArchivedFile,
    OpenArchive,
    archive_above,
    is_archive,
    list_archive,
)
from agentic_rag.documents.beside import archive_beside, by_path, folder_beside
from agentic_rag.documents.clutter import is_clutter
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.source import Problem, Source, read_file
from agentic_rag.documents.zip_safety import Member
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class InvalidExclude(AragError):
    """A pattern to exclude is not in .gitignore syntax."""


def find_sources(paths: Sequence[Path], exclude: Sequence[str] = ()) -> Iterator[Source | Problem]:
    """The sources under `paths`, each real file once, and what could not be read.

    The order is that of `paths`, then of names; what is reached through a link inside a folder
    comes last, so that a file met both ways goes by its own path. Raises InvalidExclude before
    anything is read.
    """
    search = _Search(_spec(exclude))
    return search.run(paths)


def _spec(patterns: Sequence[str]) -> "GitIgnoreSpec":
    import pathspec

    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:  # what pathspec raises for a pattern it cannot read
        shown = ", ".join(f"'{pattern}'" for pattern in patterns)
        raise InvalidExclude(
            f"{shown} cannot be read as patterns to exclude ({error}); "
            "write them as in a .gitignore file"
        ) from error


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to list. `ignores` are the .gitignore files above it, each with the number of
    folders between the root and it."""

    path: str
    folders: tuple[str, ...]
    ignores: tuple[tuple[int, "GitIgnoreSpec"], ...]


@dataclass(frozen=True, slots=True)
class _Link:
    """A link met in a folder, looked at when all that is no link has been."""

    path: str
    name: str
    folder: _Folder


class _Search:
    """One search: its patterns and what it has met."""

    def __init__(self, exclude: "GitIgnoreSpec") -> None:
        self._exclude = exclude
        self._seen: set[tuple[int, int] | str] = set()
        self._links: list[_Link] = []
        self._archive = OpenArchive()

    def run(self, paths: Sequence[Path]) -> Iterator[Source | Problem]:
        for path in paths:
            yield from self._named(path)
        while self._links:
            links, self._links = self._links, []
            for link in links:
                yield from self._follow(link)

    def _named(self, path: Path) -> Iterator[Source | Problem]:
        plain = os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps ".."
        if problem := _unspeakable(plain):
            yield problem
            return
        try:
            status = os.stat(plain)  # noqa: PTH116 - as below, strings until a Source is made
        except OSError as error:
            if isinstance(error, NotADirectoryError) and (found := archive_above(plain)):
                yield from self._named_inside(*found)
            else:
                yield Problem(Path(plain).as_posix(), _reason(error))
            return
        if stat.S_ISDIR(status.st_mode):
            root = os.path.realpath(plain)
            if problem := _unspeakable(root):
                yield problem
            elif self._first_time(root, status):
                yield from self._walk(_Folder(root, (), ()))
            return
        parent, name = os.path.split(plain)
        real = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
        if not stat.S_ISREG(status.st_mode):
            yield Problem(Path(real).as_posix(), "it is neither a file nor a folder")
        elif problem := _unspeakable(real):
            yield problem
        elif self._first_time(plain, status):
            yield from self._file(real, (), status, explicit=True)

    def _named_inside(self, archive: str, inside: str) -> Iterator[Source | Problem]:
        """What a path leads to that goes on inside an archive: a file or a folder there."""
        parent, name = os.path.split(archive)
        real = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
        met = False
        for item in self._file(real, (), os.stat(archive), True, inside):  # noqa: PTH116
            met = True
            if isinstance(item, Problem) or item.uri not in self._seen:
                self._seen.add(item.uri)
                yield item
        if not met:
            uri = f"{Path(real).as_posix()}/{inside}"
            yield Problem(uri, f"'{name}' holds no such file")

    def _walk(self, top: _Folder) -> Iterator[Source | Problem]:
        """Depth first, by name, with a stack of our own: depth is the disk's choice."""
        stack = [self._entries(top)]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, _Folder):
                stack.append(self._entries(item))
            else:
                yield item

    def _entries(self, folder: _Folder) -> Iterator[Source | Problem | _Folder]:
        try:
            with os.scandir(folder.path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            yield Problem(Path(folder.path).as_posix(), _reason(error))
            return
        names = {entry.name for entry in entries}
        if folder.folders and _VIRTUAL_ENVIRONMENT in names:
            return
        folder = _with_gitignore(folder, names)
        for entry in entries:
            if problem := _unspeakable(entry.path):
                yield problem
                continue
            try:
                if entry.is_symlink():
                    self._links.append(_Link(entry.path, entry.name, folder))
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                yield Problem(Path(entry.path).as_posix(), _reason(error))
                continue
            yield from self._entry(folder, entry.name, entry.path, status)

    def _entry(
        self, folder: _Folder, name: str, path: str, status: os.stat_result
    ) -> Iterator[Source | Problem | _Folder]:
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and not stat.S_ISREG(status.st_mode):
            return  # sockets, pipes, devices
        if self._is_excluded(folder, name, is_folder) or not self._first_time(path, status):
            return
        if is_folder:
            yield _Folder(path, (*folder.folders, name), folder.ignores)
        else:
            yield from self._file(path, folder.folders, status, explicit=False)

    def _file(
        self,
        path: str,
        folders: tuple[str, ...],
        status: os.stat_result,
        explicit: bool,
        inside: str = "",
    ) -> Iterator[Source | Problem]:
        """A file, or the files of an archive; of those `inside`, if anything, only that file or
        folder."""
        files: Sequence[ArchivedFile] | None = None
        manual = None
        try:
            if is_archive(path):
                if zedx.is_zedx(path):
                    manual = zedx.open_manual(Path(path))
                files = manual.files if manual else list_archive(Path(path))
        except UnreadableDocument as error:
            yield Problem(Path(path).as_posix(), str(error))
            return
        except OSError:
            pass  # reading it will say why
        if files is None:
            yield _source(path, folders, status, explicit)
            return
        name = Path(path).name
        if not explicit and self._is_excluded(_Folder(path, folders, ()), name, is_folder=True):
            return
        archive = _Folder(path, (*folders, name), ())
        kept = [file for file in files if self._is_wanted(archive, file, inside)]
        locked = [file.path for file in kept if file.member.encrypted]
        if locked:
            yield Problem(Path(path).as_posix(), locked_files(locked, len(kept)))
        for problem in manual.problems if manual else ():
            yield Problem(Path(path).as_posix(), problem, of_version=status.st_mtime_ns)
        made = self._maker(archive, files, status, manual)
        for file in kept:
            if file.is_link:
                uri = f"{Path(path).as_posix()}/{file.path}"
                yield Problem(uri, "it is a link inside an archive", skipped=True)
            elif not file.member.encrypted:
                yield made(file, file.path == inside)

    def _is_wanted(self, archive: _Folder, file: ArchivedFile, inside: str) -> bool:
        if file.path == inside:
            return True
        if inside and not file.path.startswith(f"{inside}/"):
            return False
        *above, name = file.path.split("/")
        folder = archive
        for part in above:
            if self._is_excluded(folder, part, is_folder=True):
                return False
            folder = _Folder(archive.path, (*folder.folders, part), ())
        return not self._is_excluded(folder, name, is_folder=False)

    def _maker(
        self,
        archive: _Folder,
        files: Sequence[ArchivedFile],
        status: os.stat_result,
        manual: "zedx.Manual | None",
    ) -> Callable[[ArchivedFile, bool], Source]:
        """What makes the sources of an archive's files."""
        path, mtime_ns = Path(archive.path), status.st_mtime_ns

        def read(member: Member, most: int) -> bytes:
            return self._archive.read(path, mtime_ns, member, most).data

        everything = manual.everything if manual else files
        members = by_path({file.path: file.member for file in everything if not file.is_link})
        pages = manual and zedx.Pages(manual, partial(read, most=zedx.MOST_PAGE_BYTES))

        def made(file: ArchivedFile, explicit: bool) -> Source:
            *above, name = file.path.split("/")
            source = Source(
                uri=f"{path.as_posix()}/{file.path}",
                name=name,
                folders=(*archive.folders, *above),
                size=file.member.size,
                mtime_ns=mtime_ns,
                explicit=explicit,
                read=partial(self._archive.read, path, mtime_ns, file.member),
                path=path,
                beside=archive_beside(members, above, read),
            )
            if not manual or not pages:
                return source
            place = manual.places[file.path]
            return replace(
                source,
                folders=(*archive.folders, *place.path),
                finish=partial(pages.finish, file.path),
                place="\n".join((*place.path, place.name)),
            )

        return made

    def _follow(self, link: _Link) -> Iterator[Source | Problem]:
        try:
            status = os.stat(link.path)  # noqa: PTH116
        except OSError as error:
            if not self._is_excluded(link.folder, link.name, is_folder=False):
                nowhere = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
                reason = "it is a link that leads nowhere" if nowhere else _reason(error)
                yield Problem(Path(link.path).as_posix(), reason, skipped=nowhere)
            return
        for item in self._entry(link.folder, link.name, link.path, status):
            if isinstance(item, _Folder):
                yield from self._walk(item)
            else:
                yield item

    def _first_time(self, path: str, status: os.stat_result) -> bool:
        # Two hard links are two files to their owner; only links and loops are one.
        key: tuple[int, int] | str = os.path.realpath(path)
        if stat.S_ISDIR(status.st_mode):
            key = (status.st_dev, status.st_ino)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _is_excluded(self, folder: _Folder, name: str, is_folder: bool) -> bool:
        parts = (*folder.folders, name)
        end = "/" if is_folder else ""
        asked = self._exclude.check_file("/".join(parts) + end).include
        if asked is not None:
            return asked
        if is_clutter(name):
            return True
        for depth, ignore in reversed(folder.ignores):
            ignored = ignore.check_file("/".join(parts[depth:]) + end).include
            if ignored is not None:
                return ignored
        return False


def _with_gitignore(folder: _Folder, names: set[str]) -> _Folder:
    if ".gitignore" not in names:
        return folder
    try:
        text = Path(folder.path, ".gitignore").read_text(encoding="utf-8", errors="replace")
        ignore = _spec(text.splitlines())
    except (OSError, InvalidExclude):
        return folder  # someone else's file: a fault in it is not ours to report
    here = (len(folder.folders), ignore)
    return _Folder(folder.path, folder.folders, (*folder.ignores, here))


def _source(path: str, folders: tuple[str, ...], status: os.stat_result, explicit: bool) -> Source:
    located = Path(path)
    return Source(
        uri=located.as_posix(),
        name=located.name,
        folders=folders,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        explicit=explicit,
        read=partial(read_file, located),
        path=located,
        beside=folder_beside(located, len(folders)),
    )


def _unspeakable(path: str) -> Problem | None:
    """A problem if the name is not UTF-8: it could be neither shown nor stored."""
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        return Problem(shown, "its name is not valid UTF-8; rename it")
    return None


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, PermissionError):
        return "permission denied"
    return (error.strerror or str(error)).lower()
