"""`list_documents`, and the documents as resources: pages of them, and what one holds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.errors import AragError
from agentic_rag.mcp_server.arguments import Unusable, given, number, text
from agentic_rag.mcp_server.serving import Reply, Serving
from agentic_rag.mcp_server.tools import LISTED, MOST_LISTED
from agentic_rag.mcp_server.wording import Language, chunks, note
from agentic_rag.strategies.agent.display import BLOCK, Page, escaped, title_line
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Chunk, DocumentInfo, Snapshot

DOCUMENT = "arag://documents/{number}"
REST = "arag://documents/{number}/from/{chunk}"
CHUNK = "arag://chunks/{chunk}"
RESOURCES = 100  # of one page

_RESOURCE_TOKENS = 20_000  # o200k tokens; a person chose the document, so more than of a tool
_URI = re.compile(
    r"arag://(?:documents/(?P<number>\d{1,9})(?:/from/(?P<start>\d{1,9}-\d{1,9}))?"
    r"|chunks/(?P<chunk>\d{1,9}-\d{1,9}))/?"
)


class NoSuchResource(AragError):
    """A resource's URI names nothing that is there."""


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """Documents in order of numbers; `after` is where the next page begins, None at the end."""

    documents: "Sequence[DocumentInfo]"
    after: int | None


def list_documents(serving: Serving, arguments: object, language: Language) -> Reply:
    """One page of the documents. Blocks. Raises AragError, and `Unusable` for what are no
    arguments of it."""
    values = given(arguments, ("containing", "after", "limit"), lone=False)
    containing = text(values, "containing")
    after = number(values, "after", 0, 10**9) or 0
    limit = number(values, "limit", 1, MOST_LISTED) or LISTED
    documents = serving.knowledge_base(False).documents()
    if not documents:
        return Reply(note("no_documents", language))
    fitting = [one for one in documents if one.number > after and _fits(one, containing)]
    if not fitting:
        if containing:
            return Reply(note("none_containing", language, text=containing[:100]))
        return Reply(note("none_after", language, number=after))
    page = Page(serving.settings.agent.result_tokens)
    last = after
    for one in fitting[:limit]:
        if not page.add(_line(one, language)):
            break
        last = one.number
    lines = [BLOCK[0], *page.blocks, BLOCK[1]]
    if left := len(fitting) - len(page.blocks):
        lines.append(note("more", language, count=left, number=last))
    return Reply("\n".join(lines))


def resource_page(serving: Serving, cursor: str | None) -> ResourcePage:
    """The documents behind a cursor, those that hold text. Blocks. Raises AragError, `Unusable`."""
    if cursor is not None and not re.fullmatch(r"\d{1,9}", cursor):
        raise Unusable("The cursor is none of this server; list the resources from the beginning.")
    after = int(cursor or 0)
    found = [
        one
        for one in serving.knowledge_base(False).documents()
        if one.number > after and one.chunks
    ]
    page = found[:RESOURCES]
    return ResourcePage(page, page[-1].number if len(found) > len(page) else None)


def resource(serving: Serving, uri: str, language: Language) -> str:
    """The text of the resource at `uri`: each chunk under its id. Blocks. Raises NoSuchResource,
    AragError."""
    named = _URI.fullmatch(uri.strip())
    if named is None:
        raise NoSuchResource(
            f"There is no resource {uri[:100]}; documents are {DOCUMENT}, chunks {CHUNK}."
        )
    snapshot = serving.knowledge_base(False).snapshot()
    if named["chunk"]:
        found = snapshot.read_chunk([named["chunk"]]).chunks
        if not found:
            raise NoSuchResource(f"There is no chunk {named['chunk']}; search again for its id.")
        return _shown(found[0])
    return "\n\n".join(_document(snapshot, int(named["number"]), named["start"], language))


def _document(
    snapshot: "Snapshot", document: int, start: str | None, language: Language
) -> Iterator[str]:
    if document not in snapshot.documents:
        raise NoSuchResource(
            f"There is no document {document}; list_documents shows those there are."
        )
    held = snapshot.chunks(document)
    ids = [chunk.chunk_id for chunk in held]
    if start is not None and start not in ids:
        raise NoSuchResource(f"Document {document} has no chunk {start}; read it from the start.")
    used = 0
    for at in range(ids.index(start) if start else 0, len(held)):
        block = _shown(held[at])
        used += count_tokens(block)
        if used > _RESOURCE_TOKENS and at > (ids.index(start) if start else 0):
            rest = REST.format(number=document, chunk=ids[at])
            yield note("more_chunks", language, count=len(held) - at, uri=rest)
            return
        yield block


def _shown(chunk: "Chunk") -> str:
    line = title_line(chunk.title, chunk.section, chunk.page)
    return f"[{chunk.chunk_id}] {line}\n{escaped(chunk.text.strip())}"


def _fits(document: "DocumentInfo", containing: str) -> bool:
    wanted = containing.lower()
    return wanted in document.title.lower() or wanted in document.uri.lower()


def _line(document: "DocumentInfo", language: Language) -> str:
    state = chunks(document.chunks, language)
    if document.status != "ready":
        reason = escaped(" ".join(document.reason.split()))[:200]
        state = f"{document.status}: {reason}" if reason else document.status
    uri = escaped(" ".join(document.uri.split()))[:300]
    title = title_line(document.title, "", None)
    named = f"{title} ({uri})" if title and title != uri else uri
    return f"{document.number}. {named}, {state}"
