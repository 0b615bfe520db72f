"""The file that a document was made of, as a browser may have it.

Only a PDF and pictures are shown; everything else is saved, since a page of someone's would run in
this server's name. A link is not followed: it may have come to lead elsewhere.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agentic_rag.documents import find_sources
from agentic_rag.documents.fetching import is_url
from agentic_rag.documents.source import Source, is_given
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.records import DocumentInfo

_SHOWN = ("application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_OTHER = "application/octet-stream"


class NoOriginal(AragError):
    """A document's file is not at hand."""

    status = 404


@dataclass(frozen=True, slots=True)
class Original:
    """A file: at `path`, or as `data` out of an archive."""

    name: str
    path: Path | None
    data: bytes
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """What keeps the file from being more than something to look at."""
        how = "attachment" if self.media_type == _OTHER else "inline"
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
        if self.media_type == "application/pdf":
            policy += "; object-src 'self'"  # in a sandbox Chromium shows no PDF
        else:
            policy += "; sandbox"
        return {
            "Content-Disposition": f"{how}; filename*=UTF-8''{quote(self.name, safe='')}",
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-cache",
        }


def original(document: DocumentInfo, most: int) -> Original:
    """The file of a document; of one in an archive at most `most` bytes. Blocks. Raises NoOriginal,
    TooLarge."""
    uri = document.uri
    if is_url(uri):
        raise NoOriginal(f"Document {document.number} came from {uri}; open it there.")
    if is_given(uri):
        raise NoOriginal(f"The file of document {document.number} was not kept; read its chunks.")
    media_type = document.media_type if document.media_type in _SHOWN else _OTHER
    path = Path(uri)
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            return Original(path.name, path, b"", media_type)
    except NotADirectoryError:
        for found in find_sources([path]):
            if isinstance(found, Source) and found.uri == uri:
                try:
                    return Original(found.name, None, found.read(most).data, media_type)
                except OSError:
                    break
    except OSError:
        pass
    raise NoOriginal(
        f"The file of document {document.number} is not at {uri} any more; read its chunks, or "
        "index it again."
    )
