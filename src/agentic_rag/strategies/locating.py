"""Where what an answer cites stands: the section and page of the cited sentence, which need not be
those of the sentence that the search had found in the same chunk."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from agentic_rag.knowledge_base.fragments import key
from agentic_rag.knowledge_base.snippets import JOINER, Place, Snippet

if TYPE_CHECKING:
    from agentic_rag.knowledge_base.snapshot import Snapshot
    from agentic_rag.strategies.answer import Citation


def located(citations: "Sequence[Citation]", snapshot: "Snapshot") -> "tuple[Citation, ...]":
    """The citations, each of a chunk with the section and the page of the first sentence of its
    snippet. What is from the web, or is a search's own passage, stays as it is. Blocks."""
    named = {
        citation.number: citation
        for citation in citations
        if citation.origin == "documents" and citation.made_by != "passage"
    }
    found = snapshot.hits_of(
        [(_key(one.chunk_id), 0.0, partial(_quoted, one.snippet)) for one in named.values()]
    )
    places = {
        number: {"section": hit.section, "page": hit.page}
        for number, hit in zip(named, found, strict=True)
        if hit.snippet
    }
    return tuple(one.model_copy(update=places.get(one.number, {})) for one in citations)


def _key(chunk_id: str) -> int:
    document, _, chunk = chunk_id.partition("-")
    return key(int(document), int(chunk))


def _quoted(snippet: str, text: str, places: Sequence[Place]) -> Snippet:
    """The first sentence of `snippet` with its place; "" where no sentence of the chunk is it."""
    first = snippet.partition(JOINER)[0].removesuffix("…").strip()
    for place in places:
        sentence = " ".join(text[place.start : place.end].split())
        if sentence and first and (first in sentence or first.startswith(sentence)):
            return Snippet(first, place)
    return Snippet("", None)
