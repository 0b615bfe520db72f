"""A ZIP archive that is no file on disk (attached to a mail, in another archive, sent by a server)
as one document: each of its files under a heading that is its path."""

from agentic_rag.documents.archives import archived_files
from agentic_rag.documents.attachments import Attachment, add_attachments, attachment
from agentic_rag.documents.clutter import is_clutter
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.zip_safety import Archive, Member, open_archive, read_member

_MEDIA_TYPE = "application/zip"
_NAMES_TOLD = 10


def parse_zip(uri: str, data: bytes, media_type: str) -> Document:
    """A document of all files in an archive. Raises UnreadableDocument for a damaged one and for
    one that would unpack to too much."""
    return read_zip(uri, data, 0)


def read_zip(uri: str, data: bytes, depth: int) -> Document:
    """The same of an archive that lies `depth` files deep in others. Archives in it are only
    named: how much comes out of archives in archives cannot be bounded beforehand."""
    archive = open_archive(uri, data)
    composition = Composition()
    taken: list[Attachment] = []
    locked: list[str] = []
    nested: list[str] = []
    for file in archived_files(archive):
        if file.is_link or any(map(is_clutter, file.path.split("/"))):
            continue
        if file.member.encrypted:
            locked.append(file.path)
        elif file.path.lower().endswith((".zip", ".zedx")):
            nested.append(file.path)
        else:
            taken.append(_attachment(archive, file.path, file.member))
    add_attachments(composition, uri, taken, depth, label="")
    if locked:
        composition.warn(locked_files(locked, len(locked) + len(taken)))
    if nested:
        composition.warn(f"archives inside an archive are not read: {told(nested)}; unpack them")
    return composition.finish(uri, file_name(uri), _MEDIA_TYPE, {"files": len(taken)})


def locked_files(names: list[str], of: int) -> str:
    """The sentence about files that need a password."""
    return (
        f"{len(names)} of its {of} files need a password: {told(names)}; unpack it and index the "
        "folder"
    )


def told(names: list[str]) -> str:
    """Names for a person, the first of many."""
    shown = ", ".join(names[:_NAMES_TOLD])
    more = len(names) - _NAMES_TOLD
    return f"{shown} and {more} more" if more > 0 else shown


def _attachment(archive: Archive, path: str, member: Member) -> Attachment:
    def read(uri: str, depth: int) -> Document:
        return attachment(path, read_member(archive, member)).read(uri, depth)

    return Attachment(path, read)
