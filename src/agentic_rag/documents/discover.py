"""Paths to sources: which files a folder holds that are meant to be read.

Obeyed, the later the stronger: names left out by default (hidden ones, `node_modules`,
`__pycache__`, virtual environments), `.gitignore` files from the named folder downwards, and the
caller's own patterns in the same syntax, of which `!pattern` brings back what was left out. A
file that is named itself is always taken.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.documents.source import Problem, Source, read_file
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_DEFAULT_EXCLUDES = frozenset(("node_modules", "__pycache__"))
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
            yield _source(real, (), status, explicit=True)

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
    ) -> Iterator[Source | _Folder]:
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and not stat.S_ISREG(status.st_mode):
            return  # sockets, pipes, devices
        if self._is_excluded(folder, name, is_folder) or not self._first_time(path, status):
            return
        if is_folder:
            yield _Folder(path, (*folder.folders, name), folder.ignores)
        else:
            yield _source(path, folder.folders, status, explicit=False)

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
        if name.startswith(".") or name in _DEFAULT_EXCLUDES:
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
