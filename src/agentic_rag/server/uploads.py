"""Uploaded files: `uploads/FOLDER/NAME` in the knowledge base.

A file replaces the one of its name in its folder, and with that the document made of it. What is
being received lies in a folder of its own, and is moved when it is whole.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

from agentic_rag.documents import file_types
from agentic_rag.documents.source import Problem
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.scanning import UPLOADS
from agentic_rag.server.receiving import Received
from agentic_rag.server.upload_names import safe_name

_INCOMING = ".incoming"
_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16, which is text and holds zero bytes


class UploadsUnwritable(AragError):
    """Uploaded files cannot be kept."""

    status = 503


class SameName(AragError):
    """Two files of one request have the same name, or a file that of a folder."""

    status = 409


class UploadStore:
    """The uploads of the knowledge base in `directory`. Every method blocks."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / UPLOADS
        self._incoming = self.folder / _INCOMING

    def sweep(self) -> None:
        """Delete what uploads left that a crash cut short."""
        shutil.rmtree(self._incoming, ignore_errors=True)

    @asynccontextmanager
    async def incoming(self) -> AsyncIterator[Path]:
        """A folder for the files of one request, gone after the block. Raises UploadsUnwritable."""
        made: Path | None = None
        try:
            made = await asyncio.to_thread(self._made)
            yield made
        except OSError as error:
            raise self._unwritable(error) from None
        finally:
            if made is not None:
                await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)

    def _made(self) -> Path:
        self._incoming.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._incoming))

    def keep(self, files: Sequence[Received], folder: str) -> list[str]:
        """Move files to where they stay; their paths, as documents will have them. Raises SameName
        before anything is moved, UploadsUnwritable."""
        try:
            root = self.folder.resolve()
            place = (self.folder / folder).resolve()
            if not place.is_relative_to(root):
                raise SameName(f"The folder {folder} leads out of the uploads; name another one.")
            paths = [place / safe_name(one.name) for one in files]
            _check(paths, place, folder)
            place.mkdir(parents=True, exist_ok=True)
            for one, path in zip(files, paths, strict=True):
                one.path.replace(path)
        except OSError as error:
            raise self._unwritable(error) from None
        return [path.as_posix() for path in paths]

    def upload_of(self, uri: str) -> Path | None:
        """The upload that a document is, or lies in as a file of an archive; None for others."""
        root = self.folder.resolve()
        path = Path(uri)
        for one in (path, *path.parents):
            if root not in one.parents:
                return None
            if one.is_symlink() or one.is_file():
                return one
        return None

    def delete(self, upload: Path) -> None:
        """Delete an upload, and the folders that are empty without it."""
        root = self.folder.resolve()
        try:
            upload.unlink(missing_ok=True)
            for above in upload.parents:
                if root not in above.parents:
                    break
                above.rmdir()
        except OSError:  # it is in use, or a folder is not empty
            pass

    def _unwritable(self, error: OSError) -> UploadsUnwritable:
        return UploadsUnwritable(
            f"The upload cannot be kept in {self.folder} ({error.strerror or error}); free some "
            "space there, or make it writable."
        )


def _check(paths: Sequence[Path], place: Path, folder: str) -> None:
    """Raise SameName where files would take each other's place, or that of a folder."""
    met: set[str] = set()
    for path in paths:
        if path.name.casefold() in met:
            raise SameName(
                f"Two of the files are named {path.name}; send them one by one, each into a folder "
                "of its own by ?folder=NAME."
            )
        met.add(path.name.casefold())
        if path.is_dir():
            raise SameName(f"There is a folder {path.name}; name the file otherwise.")
    if any(above.is_file() for above in (place, *place.parents)):
        raise SameName(f"There is a file where the folder {folder} would be; name another one.")


def not_supported(received: Received) -> Problem | None:
    """Why a file is none that is read here, by its name and its first bytes; None for all others,
    of which indexing will tell."""
    name, head = safe_name(received.name), received.head
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in file_types.BY_SUFFIX or not head:
        return None
    if any(is_one(head) for is_one in _READ) or (file_types.is_zip(head) and not suffix):
        return None
    known = file_types.known_type(head)
    if known is None and (b"\0" not in head or head.startswith(_BOMS)):
        return None
    what = f"it is {known or 'a binary file'}"
    return Problem(name, f"{what}; supported are {file_types.supported_types()}")


_READ = (
    file_types.is_pdf,
    file_types.is_epub,
    file_types.is_picture,
    file_types.is_mail,
    file_types.is_mailbox,
    file_types.is_ole2,
    file_types.is_rich_text,
)
