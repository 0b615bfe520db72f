"""Files inside a document (attachments of a mail, members of a packed archive): each is parsed as
the file it is and stands under a heading of its own, its headings one level below."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from agentic_rag.documents import file_types, reading
from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.reading import ReadingStopped
from agentic_rag.documents.source import Beside

# A mail in a mail in a mail is still somebody's; deeper nesting is a loop or an attack.
MOST_DEPTH = 4
_NAMES_TOLD = 10


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside another. `read` takes the URI it goes by and how deep it lies (1: in a file
    of its own), gives its document, and raises what `parse` raises."""

    name: str
    read: Callable[[str, int], Document]


def attachment(
    name: str, data: bytes, media_type: str = "", beside: Beside | None = None
) -> Attachment:
    """A file of these bytes; its suffix counts for more than the media type a sender gave.
    `beside` gives the files that it shows: those beside the outer file are not meant."""

    def read(uri: str, depth: int) -> Document:
        known = PurePosixPath(name).suffix.lower() in file_types.BY_SUFFIX
        return _parse(uri, data, "" if known else media_type, depth, beside)

    return Attachment(name, read)


def add_attachments(
    composition: Composition,
    uri: str,
    attachments: Sequence[Attachment],
    depth: int,
    label: str = "Attachment: ",
) -> None:
    """Append each file under the heading `label` and its name. What is not supported or cannot be
    read is named in the warnings. `depth` is that of the file they lie in, 0 for one on disk."""
    unsupported: list[str] = []
    for item in attachments:
        name = one_line(item.name)
        try:
            if depth >= MOST_DEPTH:
                raise UnreadableDocument("it lies too deep, a file in a file in a file")
            document = item.read(f"{uri}/{name}", depth + 1)
        except UnsupportedDocument:
            unsupported.append(name)
        except UnreadableDocument as error:
            told = str(error)
            own = told.startswith(f"'{file_name(name)}'")
            composition.warn(f"in it: {told}" if own else f"'{name}' in it is not read: {told}")
        except ReadingStopped:
            raise
        except Exception as error:  # one attachment never costs the others
            composition.warn(f"'{name}' in it cannot be parsed ({type(error).__name__}: {error})")
        else:
            composition.add_document(document, below=1, heading=f"{label}{name}")
            for warning in document.warnings:
                composition.warn(f"'{name}' in it: {warning}")
    if unsupported:
        shown = ", ".join(unsupported[:_NAMES_TOLD])
        if len(unsupported) > _NAMES_TOLD:
            shown += f" and {len(unsupported) - _NAMES_TOLD} more"
        what = "file of a type" if len(unsupported) == 1 else "files of types"
        composition.warn(f"{len(unsupported)} {what} not supported in it: {shown}")


def _parse(uri: str, data: bytes, media_type: str, depth: int, beside: Beside | None) -> Document:
    from agentic_rag.documents import archive_document, mail, outlook, zedx
    from agentic_rag.documents.parse import family_of, parse

    # These hold files themselves, so they must know how deep they lie.
    nesting = {
        "eml": mail.read_eml,
        "mbox": mail.read_mbox,
        "msg": outlook.read_msg,
        "zip": archive_document.read_zip,
        "zedx": zedx.read_zedx,
    }
    read = nesting.get(family_of(uri, data, media_type) or "")
    if read:
        return read(uri, data, depth)
    return parse(uri, data, (), media_type, replace(reading.in_force(), beside=beside))
