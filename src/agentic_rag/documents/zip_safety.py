"""ZIP archives read without harm: sizes are checked before unpacking and held to while unpacking,
in memory only, and the members' names come out as their writer meant them.

The format is PKWARE's APPNOTE 6.3.10. Office packages (docx, xlsx, odt, epub) are such archives.
"""

import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from agentic_rag.documents.cleaning import clean_text
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name

# More members than any office file has; the directory alone of a hostile one fills the memory.
MOST_MEMBERS = 100_000
# A member is unpacked whole into memory, and as a tree of XML takes five to ten times as much.
MOST_MEMBER_BYTES = 400_000_000
MOST_BYTES = 2_000_000_000
# Sheets of like rows shrink to a fiftieth, a bomb to a thousandth (deflate's own limit); what any
# archive may unpack to is not worth a check.
MOST_RATIO = 200
FREE_BYTES = 50_000_000

_LONGEST_DIRECTORY = 64_000_000
_LONGEST_END = 70_000  # the end of the directory and the comment behind it
_ENCRYPTED = 0x1
_UTF8_NAME = 0x800
_UNICODE_PATH = 0x7075  # Info-ZIP's extra field
# What zlib, bz2 and lzma give for this many packed bytes stays small; only the first two are told
# how much to give.
_PIECE = 4_096
_LARGE_PIECE = 1_000_000
_METHODS = (ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. `name` is its path with forward slashes, decoded and clean (it may
    still hold `..` or begin with a slash: it is a name, nothing to write to); `size` is what the
    archive says it unpacks to, in bytes."""

    name: str
    size: int
    info: ZipInfo = field(repr=False)

    @property
    def encrypted(self) -> bool:
        """Whether a password is needed."""
        return bool(self.info.flag_bits & _ENCRYPTED)


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive whose sizes are within the limits; `members` are its files in the order of its
    directory, folders left out."""

    uri: str
    members: tuple[Member, ...]
    file: ZipFile = field(repr=False)

    def find(self, name: str) -> Member | None:
        """The member of that name, or None; office packages do not tell cases apart."""
        wanted = name.lstrip("/")
        folded = wanted.casefold()
        found = None
        for member in self.members:
            if member.name == wanted:
                return member
            if member.name.casefold() == folded:
                found = member
        return found


def open_archive(uri: str, data: bytes) -> Archive:
    """The ZIP archive that `data` is. Raises UnreadableDocument for a damaged one and for one
    that would unpack to more than the limits above."""
    if _directory_bytes(data) > _LONGEST_DIRECTORY:
        raise _too_many_members(uri)
    archive = _opened(uri, io.BytesIO(data), len(data))
    if sum(member.size for member in archive.members) > MOST_BYTES:
        raise _too_much(
            file_name(uri), f"it would unpack to more than {MOST_BYTES // 1_000_000} MB"
        )
    return archive


def open_archive_file(path: Path) -> Archive:
    """The ZIP archive at `path`, to be closed by `archive.file`; its members are read one by one,
    so that it may unpack to any size. Raises UnreadableDocument as above, OSError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _LONGEST_END))
        if _directory_bytes(file.read()) > _LONGEST_DIRECTORY:
            raise _too_many_members(path.as_posix())
    return _opened(path.as_posix(), path, size)


def _opened(uri: str, source: Path | io.BytesIO, size: int) -> Archive:
    """The archive of `size` bytes, with its number of members and its ratio checked."""
    try:
        file = ZipFile(source)
    except (BadZipFile, struct.error, ValueError, NotImplementedError, EOFError) as error:
        raise damaged(uri) from error
    infos = [info for info in file.infolist() if not info.filename.endswith("/")]
    total = sum(info.file_size for info in infos)
    if len(infos) > MOST_MEMBERS:
        file.close()
        raise _too_many_members(uri)
    if total > max(FREE_BYTES, MOST_RATIO * size):
        file.close()
        raise _too_much(
            file_name(uri), f"it would unpack to {total // max(1, size)} times its size"
        )
    names = zip(member_names(infos), infos, strict=True)
    members = tuple(Member(name, info.file_size, info) for name, info in names)
    return Archive(uri, members, file)


def read_member(archive: Archive, member: Member, most: int = MOST_MEMBER_BYTES) -> bytes:
    """A member's bytes, at most `most`. Raises UnreadableDocument when it unpacks to more, needs a
    password or is damaged."""
    name = file_name(archive.uri)
    if member.size > most:
        raise _too_much(name, f"'{member.name}' in it is larger than {most // 1_000_000} MB")
    if member.encrypted:
        raise UnreadableDocument(
            f"'{name}' is protected by a password; save a copy without one and index that"
        )
    if member.info.compress_type not in _METHODS:
        raise UnreadableDocument(
            f"'{member.name}' in '{name}' is packed in a way that is not read here; "
            "pack it again as an ordinary ZIP file"
        )
    bounded = member.info.compress_type in (ZIP_STORED, ZIP_DEFLATED)
    piece = _LARGE_PIECE if bounded else _PIECE
    parts: list[bytes] = []
    length = 0
    try:
        with archive.file.open(member.info) as stream:
            # zipfile gives no more than the size in the directory and then checks the sum, so a
            # member that lies about its size ends in an error, not in memory.
            while part := stream.read(piece):
                parts.append(part)
                length += len(part)
                if length > most:
                    raise _too_much(
                        name, f"'{member.name}' in it is larger than {most // 1_000_000} MB"
                    )
    except (
        BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, struct.error,
        RuntimeError,
    ) as error:  # fmt: skip
        raise damaged(archive.uri) from error
    return b"".join(parts)


def member_names(infos: Sequence[ZipInfo]) -> list[str]:
    """The names of members as their writer meant them.

    UTF-8 where the archive says so. Otherwise the names of one archive are in one encoding, and
    only together are they text enough to tell which: UTF-8 (macOS), GBK or Big5 (Chinese
    Windows); code page 437, as the standard has it, where none of these is sense.
    """
    raw = [None if info.flag_bits & _UTF8_NAME else _raw_name(info) for info in infos]
    unsure = [name for name in raw if name is not None and not name.isascii()]
    encoding = _encoding(unsure) if unsure else ""
    names = []
    for info, given in zip(infos, raw, strict=True):
        name = _unicode_path(info) or info.filename
        if name == info.filename and given is not None and not given.isascii() and encoding:
            name = given.decode(encoding, "replace")
        names.append(clean_text(name.replace("\\", "/")))
    return names


def damaged(uri: str) -> UnreadableDocument:
    """The error for an archive that cannot be unpacked."""
    return UnreadableDocument(
        f"'{file_name(uri)}' is damaged or was cut short; open it in its own program and save it "
        "again, or fetch it again"
    )


def _raw_name(info: ZipInfo) -> bytes | None:
    try:
        return info.orig_filename.encode("cp437")
    except UnicodeEncodeError:
        return None


def _encoding(names: Sequence[bytes]) -> str:
    try:
        found = decode(b"\n".join(names)).encoding
    except NotText:
        return ""
    return "" if found == "cp1252" or found.startswith("utf-16") else found


def _unicode_path(info: ZipInfo) -> str:
    """The name in Info-ZIP's extra field, if it has one that belongs to the plain name."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        value, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_PATH and len(value) > 5 and value[0] == 1:
            raw = _raw_name(info)
            if raw is not None and zlib.crc32(raw) == struct.unpack_from("<I", value, 1)[0]:
                return value[5:].decode("utf-8", "replace")
    return ""


def _directory_bytes(data: bytes) -> int:
    """The length of the directory as the archive's end gives it; 0 where there is no end."""
    end = data.rfind(b"PK\x05\x06", -65_557 if len(data) > 65_557 else 0)
    if end < 0 or len(data) < end + 16:
        return 0
    size: int = struct.unpack_from("<I", data, end + 12)[0]
    if size == 0xFFFFFFFF:
        wide = data.rfind(b"PK\x06\x06", 0, end)
        if 0 <= wide <= len(data) - 48:
            size = struct.unpack_from("<Q", data, wide + 40)[0]
    return size


def _too_many_members(uri: str) -> UnreadableDocument:
    return _too_much(file_name(uri), f"it holds more than {MOST_MEMBERS} files")


def _too_much(name: str, reason: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"'{name}' is not unpacked: {reason}; unpack it yourself and index what you need"
    )
