"""The best passages as the answer: without a model, for want of one, or when one failed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.strategies.answer import Citation
from agentic_rag.strategies.phrases import say

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit

_LEADS_ON = re.compile(r"[^.!?。！？]*[:：]\s*\Z")
# Marks in a document's own text would be read as ours.
_FOREIGN_MARK = re.compile(r"\s?[\[【［]\s*\^?[\d０-９]+(?:\s*[-,，、–]\s*[\d０-９]+)*\s*[\]】］]")


@dataclass(frozen=True, slots=True)
class Listed:
    """A text that lists passages, each ended by its mark, and their citations."""

    text: str
    citations: tuple[Citation, ...]


def list_passages(lead: str, hits: Sequence["Hit"]) -> Listed:
    """`lead`, then the snippet of each hit with its number; without hits the lead without the
    words that lead to them."""
    if not hits:
        lead = _LEADS_ON.sub("", lead).rstrip() or say("nothing_found", lead)
    shown = [(hit, _FOREIGN_MARK.sub("", " ".join(hit.snippet.split()))) for hit in hits]
    paragraphs = [f"{snippet} [{i}]" for i, (_, snippet) in enumerate(shown, start=1)]
    citations = tuple(
        Citation(
            number=i,
            chunk_id=hit.chunk_id,
            source_id=hit.source_id,
            title=hit.title,
            uri=hit.uri,
            page=hit.page,
            section=hit.section,
            snippet=hit.snippet,
            made_by="passage",
            origin="documents" if hit.chunk_id else "web",
        )
        for i, (hit, _) in enumerate(shown, start=1)
    )
    return Listed("\n\n".join([lead, *paragraphs]), citations)
