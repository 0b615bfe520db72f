"""Passages on their way into a prompt: cut to a budget, and marked as data in a closed block."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentic_rag.strategies.support import Passage
from agentic_rag.text.sentences import sentence_spans
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Chunk, Hit
    from agentic_rag.strategies.question import Question

_LEAST = 60  # o200k tokens; less of a chunk than this says nothing
_WINDOW = 250  # o200k tokens; where fewer fit, the snippet's sentences say more than a stretch
# What could end a block, open another, or be read as a turn of the conversation.
_TAG = re.compile(r"<(?=\s*/?\s*passages?\b)", re.IGNORECASE)
_TURN = re.compile(r"<(?=[|｜])")


def chosen_passages(
    hits: Sequence["Hit"], chunks: Mapping[str, "Chunk"], budget: int
) -> list[Passage]:
    """The hits' chunks, best first, together at most about `budget` o200k tokens.

    Chunks shorter than their share leave the rest to the others; one that is longer is shown
    from the sentence before its snippet on, or by its snippet alone. Hits whose chunk is
    gone are left out.
    """
    found = [(hit, chunks[hit.chunk_id]) for hit in hits if hit.chunk_id in chunks]
    while found and budget // len(found) < _LEAST:
        found.pop()
    sizes = {hit.chunk_id: count_tokens(chunk.text) for hit, chunk in found}
    share = _fair_share(list(sizes.values()), budget)
    return [
        Passage(
            chunk_id=hit.chunk_id,
            text=chunk.text
            if sizes[hit.chunk_id] <= share
            else _part(chunk.text, hit.snippet, share),
            title=chunk.title,
            # The hit's place is that of its best sentence, the chunk's that of its first.
            section=hit.section or chunk.section,
            uri=chunk.uri,
            page=chunk.page if hit.page is None else hit.page,
            source_id=chunk.source_id,
            snippet=hit.snippet,
        )
        for hit, chunk in found
    ]


def passages_for(question: "Question", hits: Sequence["Hit"]) -> list[Passage]:
    """What of these hits goes into a prompt for `question`, within its model's budget. Blocks."""
    if not hits:
        return []
    read = question.snapshot.read_chunk([hit.chunk_id for hit in hits])
    chunks = {chunk.chunk_id: chunk for chunk in read.chunks}
    chat = question.chat
    budget = question.settings.answer.passage_tokens
    if chat.passage_tokens is not None:
        budget = min(budget, chat.passage_tokens)
    return chosen_passages(hits[: chat.most_passages], chunks, budget)


def passages_block(passages: Sequence[Passage]) -> str:
    """The passages as one marked block; no text in them can close it."""
    blocks = [_block(passage) for passage in passages]
    return "\n".join(["<passages>", *blocks, "</passages>"])


def _block(passage: Passage) -> str:
    facts = {
        "id": passage.chunk_id,
        "title": passage.title,
        "section": passage.section,
        "page": "" if passage.page is None else str(passage.page),
        "web": passage.uri if passage.origin == "web" else "",
    }
    shown = " ".join(f'{name}="{_attribute(value)}"' for name, value in facts.items() if value)
    return f"<passage {shown}>\n{_escaped(passage.text)}\n</passage>"


def _escaped(text: str) -> str:
    return _TURN.sub("< ", _TAG.sub("&lt;", text))


def _attribute(text: str) -> str:
    plain = " ".join(text.split())[:300]
    return (
        plain.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )


def _fair_share(sizes: Sequence[int], budget: int) -> int:
    """The most that each may have so that all together keep to `budget`."""
    left, share = budget, 0
    for i, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - i)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _part(text: str, snippet: str, limit: int) -> str:
    if limit < _WINDOW and snippet:
        return prefix_of_tokens(snippet, limit)
    return _around_snippet(text, snippet, limit)


def _around_snippet(text: str, snippet: str, limit: int) -> str:
    spans = sentence_spans(text)
    first = snippet.split(" … ")[0].strip()[:60]
    at = text.find(first) if first else -1
    place = next((i for i, (_, end) in enumerate(spans) if end > at), 0) if at >= 0 else 0
    # One sentence before the snippet, since pronouns look back.
    start = max(0, place - 1)
    room, end = limit, start
    while end < len(spans):
        size = count_tokens(text[slice(*spans[end])])
        if size > room:
            break
        room -= size
        end += 1
    if end <= place:  # the matched sentence itself is longer than the room
        return prefix_of_tokens(text[spans[place][0] :] if spans else text, limit).strip()
    return text[spans[start][0] : spans[end - 1][1]].strip()
