"""Files out of a `multipart/form-data` body (RFC 7578), written to disk as their bytes come.

Bytes are counted on the way, so that a body that is too large ends when it is, whatever length it
said it has, and leaves nothing behind. Parts that are no files are passed over.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from agentic_rag.errors import AragError

_MOST_FILES = 1_000  # in one request
_WHOLE = 5  # times as large as one file may a request be
_HEAD = 64_000  # bytes that tell what a file is
_PIECE = 1_000_000  # bytes, written at a time
_CLOSE = {"Connection": "close"}  # the rest of the body is not read
_EXTENDED = re.compile(rb"filename\*\s*=\s*(?:utf-8)''([^;\s]+)", re.IGNORECASE)  # RFC 5987


class NoFiles(AragError):
    """A request to add documents brings no file."""

    status = 422


class NotMultipart(AragError):
    """A body is no `multipart/form-data`, or a broken one."""

    status = 400


@dataclass(slots=True)
class Received:
    """A file as it came: the name that the client gave it, where its bytes are, its first ones."""

    name: str
    path: Path
    file: BinaryIO
    size: int = 0
    head: bytes = b""
    waiting: bytearray = field(default_factory=bytearray)

    def write(self, at_least: int) -> None:
        """Put on disk what waits, if it is so much. Blocks. Raises OSError."""
        if len(self.waiting) >= at_least:
            self.file.write(self.waiting)
            self.waiting.clear()

    def finish(self) -> None:
        """Put all on disk, to stay. Blocks. Raises OSError."""
        self.write(0)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class _Parts:
    """What the parser tells of a body's parts; the files go to `folder`."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._field = b""
        self._value = b""
        self._disposition = b""
        self._current: Received | None = None
        self.files: list[Received] = []
        self.is_whole = False
        self.callbacks = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._disposition, self._current = b"", None

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._disposition = self._value
        self._field = self._value = b""

    def _headers_finished(self) -> None:
        name = _file_name(self._disposition)
        if not name:  # no file, or a field for files into which none was put
            return
        if len(self.files) >= _MOST_FILES:
            raise HTTPException(
                413, f"One request brings {_MOST_FILES:,} files at most; send more of them", _CLOSE
            )
        path = self._folder / str(len(self.files))
        self._current = Received(name, path, path.open("wb"))
        self.files.append(self._current)

    def _data(self, data: bytes, start: int, end: int) -> None:
        current = self._current
        if current is None:
            return
        current.size += end - start
        if current.size > self._most:
            what = f"{current.name[:100]!r} is larger than {_megabytes(self._most)}"
            raise HTTPException(413, f"{what}; split it, or raise server.max_upload_mb", _CLOSE)
        if len(current.head) < _HEAD:
            current.head += data[start : min(end, start + _HEAD - len(current.head))]
        current.waiting += data[start:end]

    def _end(self) -> None:
        self.is_whole = True


async def receive(request: Request, folder: Path, most: int) -> list[Received]:
    """The files of a request, each at most `most` bytes, in `folder`. Raises NotMultipart, NoFiles,
    OSError, and HTTPException for what is too large or was cut short."""
    kind, parameters = parse_options_header(request.headers.get("content-type"))
    boundary = parameters.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise NotMultipart("Send the files as multipart/form-data, a part for each file.")
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > most * _WHOLE:
        raise _whole_too_large(most)
    parts = _Parts(folder, most)
    try:
        parser = MultipartParser(boundary, parts.callbacks)  # type: ignore[arg-type]
        async for data in _bounded(request, most):
            parser.write(data)
            for received in parts.files:
                if len(received.waiting) >= _PIECE:
                    await asyncio.to_thread(received.write, _PIECE)
        parser.finalize()
        if not parts.is_whole:  # its end may be missing, and with it that of a file
            raise FormParserError
        for received in parts.files:
            await asyncio.to_thread(received.finish)
    except FormParserError:
        raise NotMultipart(
            "The body is no whole multipart/form-data; send the files again, a part for each."
        ) from None
    except ClientDisconnect:
        raise HTTPException(400, "The upload was cut short; send it again", _CLOSE) from None
    finally:
        for received in parts.files:
            received.file.close()
    if not parts.files:
        raise NoFiles("The request brings no file; send at least one as a part with a file name.")
    return parts.files


async def _bounded(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body, as long as it is not too large."""
    received = 0
    async for data in request.stream():
        received += len(data)
        if received > most * _WHOLE:
            raise _whole_too_large(most)
        yield data


def _whole_too_large(most: int) -> HTTPException:
    allowed = _megabytes(most * _WHOLE)
    return HTTPException(413, f"One request brings {allowed} at most; send fewer files", _CLOSE)


def _megabytes(size: int) -> str:
    return f"{size // 1_000_000:,} MB"


def _file_name(disposition: bytes) -> str:
    """The file's name in a `Content-Disposition`, "" where there is none."""
    _, options = parse_options_header(disposition)
    # Browsers write a quotation mark in a name so (HTML, "multipart/form-data").
    name = options.get(b"filename", b"").replace(b"%22", b'"')
    if not name and (extended := _EXTENDED.search(disposition)):  # of clients before RFC 7578
        name = unquote_to_bytes(extended[1])
    for encoding in ("utf-8", "gb18030"):
        try:
            return name.decode(encoding)
        except UnicodeDecodeError:
            continue
    return name.decode("latin-1")
