"""The files that a document shows: found beside it, in the folder or archive that was named, and
nowhere else. What lies outside, by `..`, by an absolute path or through a link, is as if it were
not there."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.source import Beside, TooLarge
from agentic_rag.documents.zip_safety import Member

MOST_BYTES = 50_000_000  # of a picture's file


def folder_beside(path: Path, depth: int) -> Beside:
    """For the file at `path`, which lies `depth` folders below the one that was named."""
    root = path.parents[min(depth, len(path.parents) - 1)]

    def beside(name: str) -> bytes | None:
        for written in _written(name):
            try:
                found = (path.parent / written).resolve()
                if not found.is_relative_to(root.resolve()) or not found.is_file():
                    continue
                if found.stat().st_size > MOST_BYTES:
                    raise too_large(name)
                return found.read_bytes()
            except (OSError, ValueError):  # a name that is none, a file that may not be read
                continue
        return None

    return beside


def archive_beside(
    members: Mapping[str, Member], folder: Sequence[str], read: Callable[[Member, int], bytes]
) -> Beside:
    """For a file in `folder` of an archive with these members (see `by_path`)."""

    def beside(name: str) -> bytes | None:
        for written in _written(name):
            path = posixpath.normpath(posixpath.join(*folder, written.replace("\\", "/")))
            member = members.get(path) or members.get(path.casefold())
            if member is not None and not member.encrypted:
                try:
                    return read(member, MOST_BYTES)
                except TooLarge as error:
                    raise too_large(name) from error
        return None

    return beside


def _written(name: str) -> list[str]:
    """A reference as the paths it may mean: as it stands, then without percent signs."""
    plain = name.strip()
    bare = plain.partition("?")[0].partition("#")[0]
    return list(dict.fromkeys(path for path in (plain, bare, unquote(bare)) if path))


def by_path(members: Mapping[str, Member]) -> dict[str, Member]:
    """Members by their paths, and where no other is called so, by these in lower case: pages made
    on Windows do not tell cases apart."""
    return {**{path.casefold(): member for path, member in members.items()}, **members}


def too_large(name: str) -> UnreadableDocument:
    """The error for a picture's file of too many bytes."""
    return UnreadableDocument(
        f"'{name}' is larger than {MOST_BYTES // 1_000_000} MB; save it smaller"
    )
