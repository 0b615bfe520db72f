"""What the model is shown of a search or a reading.

Each point of it is a setting in `[agent]`: labels, short chunks whole, marks for repeats, equal
chunks folded, a cap. Documents' text stands inside one marked block that no text can close.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.prompts import Language, note
from agentic_rag.strategies.agent.tracker import Tracker, body, body_hash
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens

if TYPE_CHECKING:
    from agentic_rag.config import AgentSettings
    from agentic_rag.knowledge_base import Chunk, Hit

BLOCK = ("<documents>", "</documents>")
_OVERHEAD = 40  # o200k tokens for the block's marks and "N more"
_LEAST_ROOM = 20
_LEAST_PART = 100  # o200k tokens; less of a chunk is not worth a line
_TAG = re.compile(r"<(?=\s*/?\s*documents?\b)", re.IGNORECASE)
_TURN = re.compile(r"<(?=[|｜])")
_FALSE_LABEL = re.compile(r"^(\s*)\[(\d+-\d+)\]", re.MULTILINE)
_STOP = re.compile(r"[.!?]\s|[。！？；\n]")
_MOST_IDS = 20  # named in one line


@dataclass(slots=True)
class Page:
    """A result being put together: remarks, then blocks of documents while there is room."""

    limit: int  # o200k tokens
    remarks: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # ids for which there was no room
    used: int = _OVERHEAD

    def remark(self, text: str) -> None:
        """Add a remark; remarks always have room."""
        self.remarks.append(text)
        self.used += count_tokens(text)

    def add(self, block: str) -> bool:
        """Add a block if it fits."""
        size = count_tokens(block) + 1
        if self.left_out or self.used + size > self.limit:
            return False
        self.blocks.append(block)
        self.used += size
        return True

    def text(self, language: Language) -> str:
        """The whole result."""
        parts = list(self.remarks)
        if self.blocks:
            parts += [BLOCK[0], "\n".join(self.blocks), BLOCK[1]]
        if self.left_out:
            ids = listed(self.left_out)
            parts.append(note("more_hits", language, count=len(self.left_out), ids=ids))
        return "\n".join(parts)


def listed(ids: Sequence[str]) -> str:
    """`[12-3], [12-4]`, cut short where there are many."""
    shown = ", ".join(f"[{one}]" for one in ids[:_MOST_IDS])
    return f"{shown}, …" if len(ids) > _MOST_IDS else shown


def show_hits(
    page: Page,
    hits: "Sequence[Hit]",
    chunks: "Mapping[str, Chunk]",
    tracker: Tracker,
    settings: "AgentSettings",
    language: Language,
) -> None:
    """Put hits on a page, best first, and remember in the tracker what was shown."""
    for hit, equal in _folded(hits, chunks) if settings.fold_equal else ((h, []) for h in hits):
        chunk = chunks.get(hit.chunk_id)
        label = _label(hit, settings)
        extra: list[str] = []
        if equal:
            extra.append(note("same_text", language, ids=listed([h.chunk_id for h in equal])))
        other = tracker.same_text(chunk) if chunk and settings.fold_equal else None
        new, before = tracker.split(hit) if settings.mark_repeats else (_sentences(hit), [])
        short = (
            settings.whole_short_chunks
            and chunk is not None
            and chunk.tokens <= settings.short_chunk_tokens
        )
        if other and hit.chunk_id not in tracker.read:
            at = tracker.read[other]
            extra.append(note("same_as", language, id=other, number=at))
            new, short = [], False
        elif not new and before:
            extra.append(note("nothing_new", language, numbers=_numbers(before)))
            short = False
        elif short:
            extra.append(note("whole", language))
        elif before:
            extra.append(note("as_before", language, numbers=_numbers(before)))
        text = body(chunk).strip() if short and chunk and settings.labels else ""
        if short and chunk and not text:
            text = chunk.text.strip()
        shown = escaped(text or " … ".join(new))
        if not page.add(_block(label, extra, shown)):
            if page.blocks or not shown:
                page.left_out += [h.chunk_id for h in (hit, *equal)]
                continue
            # Not even one fits: a part of it is better than none.
            part = prefix_of_tokens(shown, max(_LEAST_ROOM, page.limit - page.used))
            page.blocks.append(_block(label, extra, f"{part.strip()}…"))
            page.used, new, short = page.limit, [part.strip()], False
        for one in (hit, *equal):
            own = chunks.get(one.chunk_id)
            if own and (short or (other and one.chunk_id not in tracker.read)):
                tracker.note_whole(own, one)
            else:
                tracker.note_sentences(one, new)


def show_chunks(
    page: Page,
    chunks: "Sequence[Chunk]",
    tracker: Tracker,
    settings: "AgentSettings",
    language: Language,
) -> "list[Chunk]":
    """Put chunks on a page whole, a long one as far as there is room; returns those shown."""
    shown: list[Chunk] = []
    for chunk in chunks:
        if chunk.chunk_id in tracker.read:
            number = tracker.read[chunk.chunk_id]
            page.remark(note("read_before", language, id=chunk.chunk_id, number=number))
            continue
        label = _label(chunk, settings)
        other = tracker.same_text(chunk) if settings.fold_equal else None
        if other:
            at = tracker.read[other]
            extra = [note("same_as", language, id=other, number=at)]
            if page.add(_block(label, extra, "")):
                tracker.note_whole(chunk)
                shown.append(chunk)
            else:
                page.left_out.append(chunk.chunk_id)
            continue
        start = tracker.read_to.get(chunk.chunk_id, 0)
        text = chunk.text[start:] if start else (body(chunk) if settings.labels else chunk.text)
        offset = len(chunk.text) - len(text)
        went_on = [note("continued", language)] if start else []
        if page.add(_block(label, went_on, escaped(text.strip()))):
            tracker.note_whole(chunk)
            shown.append(chunk)
            continue
        room = page.limit - page.used - count_tokens(label) - _OVERHEAD
        if page.left_out or room < _LEAST_PART:
            page.left_out.append(chunk.chunk_id)
            continue
        part = _to_sentence_end(prefix_of_tokens(text, room))
        end = offset + len(part)
        more = count_tokens(chunk.text[end:])
        cut = note("cut", language, count=f"{more:,}", id=chunk.chunk_id)
        page.blocks.append(f"{_block(label, went_on, escaped(part.strip()))}\n({cut})")
        page.used = page.limit
        tracker.note_part(chunk, end)
        shown.append(chunk)
    return shown


def _to_sentence_end(text: str) -> str:
    """The text up to the last stop of its second half, where there is one."""
    stops = [m.end() for m in _STOP.finditer(text, len(text) // 2)]
    return text[: stops[-1]] if stops else text


def escaped(text: str) -> str:
    """A document's text that can neither close the block, nor open a turn, nor pose as a hit."""
    return _FALSE_LABEL.sub(r"\1(\2)", _TURN.sub("< ", _TAG.sub("&lt;", text)))


def title_line(title: str, section: str, page: int | None) -> str:
    """`Title › Section, p. 4`, on one line."""
    words = " › ".join(part for part in (title, section) if part)
    if page is not None:
        words = f"{words}, p. {page}" if words else f"p. {page}"
    return escaped(" ".join(words.split())[:300])


def _label(of: "Hit | Chunk", settings: "AgentSettings") -> str:
    line = title_line(of.title, of.section, of.page) if settings.labels else ""
    return f"[{of.chunk_id}] {line}".strip()


def _block(label: str, extra: Sequence[str], text: str) -> str:
    head = f"{label} ({'; '.join(extra)})" if extra else label
    return f"{head}\n{text}" if text else head


def _sentences(hit: "Hit") -> list[str]:
    return [hit.snippet]


def _numbers(results: Sequence[int]) -> str:
    return ", ".join(map(str, results))


def _folded(
    hits: "Sequence[Hit]", chunks: "Mapping[str, Chunk]"
) -> "Iterator[tuple[Hit, list[Hit]]]":
    """Each hit with the later ones whose chunk has the same text."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        chunk = chunks.get(hit.chunk_id)
        groups.setdefault(body_hash(chunk) if chunk else hit.chunk_id, []).append(hit)
    for first, *others in groups.values():
        yield first, others
