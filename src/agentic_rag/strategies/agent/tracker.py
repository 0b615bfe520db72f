"""The context tracker of one question: what was searched, shown and read, and in which result.

It is the only state of the tools. It says what need not be sent again, which passages an answer
may cite, and how many tokens each tool brought in.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentic_rag.knowledge_base.records import Hit
from agentic_rag.strategies.agent.arguments import KeywordSearch, SemanticSearch
from agentic_rag.strategies.support import Passage
from agentic_rag.text.chunking import PATH_SEPARATOR
from agentic_rag.text.words import words

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Chunk

Search = KeywordSearch | SemanticSearch

_BETWEEN_SENTENCES = " … "  # as snippets join them
_SMALL_WORDS = frozenset(
    (
        *("a", "an", "the", "of", "in", "on", "at", "by", "for", "from", "to", "with", "and", "or"),
        *("is", "was", "were", "are", "be", "did", "do", "does", "has", "have", "had", "that"),
        *("who", "what", "which", "when", "where", "why", "how", "whom", "whose", "this", "it"),
        *("的", "了", "和", "是", "在", "与", "吗", "什么", "谁", "哪", "哪个", "哪里", "何时"),
        *("如何", "怎么"),
    )
)


@dataclass(slots=True)
class Searched:
    """A search that was made: in which result, with how many hits asked for, and what it found."""

    result: int
    top_k: int
    ids: tuple[str, ...]


@dataclass(slots=True)
class Shown:
    """What was shown of a chunk: sentences of snippets, or the text whole (or from its start)."""

    hit: Hit
    sentences: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def passage(self) -> Passage:
        """The chunk as a passage that holds no more than what was shown."""
        hit = self.hit
        return Passage(
            chunk_id=hit.chunk_id,
            text=self.text or " ".join(self.sentences),
            title=hit.title,
            section=hit.section,
            uri=hit.uri,
            page=hit.page,
            source_id=hit.source_id,
            snippet=hit.snippet,
        )


@dataclass(slots=True)
class Tracker:
    """The state; `results` counts the results given so far, which are numbered from 1."""

    results: int = 0
    read: dict[str, int] = field(default_factory=dict)  # id -> the result it was shown whole in
    read_to: dict[str, int] = field(default_factory=dict)  # id -> where a cut text goes on
    shown: dict[str, Shown] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)  # ids that the model asked to read
    tokens: Counter[str] = field(default_factory=Counter)  # by tool
    _sentences: dict[tuple[str, str], int] = field(default_factory=dict)
    _bodies: dict[str, str] = field(default_factory=dict)  # hash of a text -> id shown whole
    _searches: dict[object, Searched] = field(default_factory=dict)
    _empty: list[frozenset[str]] = field(default_factory=list)

    # -- searches

    def searched(self, search: Search, top_k: int) -> Searched | None:
        """The same search made before, however its words were ordered or cased; none where that
        one asked for fewer hits."""
        before = self._searches.get(_same(search))
        return before if before is not None and before.top_k >= top_k else None

    def note_search(self, search: Search, top_k: int, ids: Iterable[str]) -> None:
        """Remember a search of the current result."""
        self._searches[_same(search)] = Searched(self.results, top_k, tuple(ids))

    def note_empty(self, search: Search) -> bool:
        """Remember that a search found nothing; True if one for the same thing did so before."""
        thing = _thing(search)
        known = any(thing & other for other in self._empty)
        self._empty.append(thing)
        return known

    # -- what was shown

    def split(self, hit: Hit) -> tuple[list[str], list[int]]:
        """The sentences of a hit that have not been shown, and the results that showed the
        others."""
        sentences = [s for s in hit.snippet.split(_BETWEEN_SENTENCES) if s.strip()]
        if hit.chunk_id in self.read:
            return [], [self.read[hit.chunk_id]]
        where = [self._sentences.get((hit.chunk_id, _plain(s))) for s in sentences]
        new = [s for s, at in zip(sentences, where, strict=True) if at is None]
        return new, sorted({at for at in where if at is not None})

    def note_sentences(self, hit: Hit, sentences: Iterable[str]) -> None:
        """Remember sentences of a hit as shown in the current result."""
        shown = self.shown.setdefault(hit.chunk_id, Shown(hit))
        for sentence in sentences:
            self._sentences.setdefault((hit.chunk_id, _plain(sentence)), self.results)
            if sentence not in shown.sentences:
                shown.sentences.append(sentence)

    def note_whole(self, chunk: "Chunk", hit: Hit | None = None) -> None:
        """Remember a chunk as shown whole in the current result."""
        self._note_text(chunk, hit, chunk.text)
        self.read.setdefault(chunk.chunk_id, self.results)
        self._bodies.setdefault(body_hash(chunk), chunk.chunk_id)
        self.read_to.pop(chunk.chunk_id, None)

    def note_part(self, chunk: "Chunk", end: int) -> None:
        """Remember a chunk as shown up to `end`."""
        self._note_text(chunk, None, chunk.text[:end])
        self.read_to[chunk.chunk_id] = end

    def same_text(self, chunk: "Chunk") -> str | None:
        """The id of another chunk of equal text that was shown whole."""
        other = self._bodies.get(body_hash(chunk))
        return other if other != chunk.chunk_id else None

    def _note_text(self, chunk: "Chunk", hit: Hit | None, text: str) -> None:
        shown = self.shown.setdefault(chunk.chunk_id, Shown(hit or as_hit(chunk)))
        shown.text = text

    # -- what came of it

    def passages(self) -> list[Passage]:
        """All that was shown, a passage a chunk: first those that the model asked to read, then
        others shown whole, then those of which it saw sentences."""
        return [shown.passage for shown in self._best_first()]

    def hits(self) -> list[Hit]:
        """The same as hits."""
        return [shown.hit for shown in self._best_first()]

    def _best_first(self) -> list[Shown]:
        return sorted(
            self.shown.values(), key=lambda s: (s.hit.chunk_id not in self.chosen, not s.text)
        )


def body(chunk: "Chunk") -> str:
    """A chunk's text without first lines that only repeat its title and section."""
    names = {chunk.title, *chunk.section.split(PATH_SEPARATOR)}
    text = chunk.text
    while True:
        first, _, rest = text.lstrip().partition("\n")
        line = first.strip("#=*- \t")
        if not rest.strip() or not all(part in names for part in line.split(PATH_SEPARATOR)):
            return text
        text = rest


def body_hash(chunk: "Chunk") -> str:
    """Equal for chunks whose text is the same but for title, white space, case and width."""
    return hashlib.blake2b(_plain(body(chunk)).encode(), digest_size=16).hexdigest()


def as_hit(chunk: "Chunk") -> Hit:
    """A chunk that was read without having been found, as a hit: its text begins its snippet."""
    text = " ".join(body(chunk).split())
    return Hit(
        chunk_id=chunk.chunk_id,
        source_id=chunk.source_id,
        score=0.0,
        title=chunk.title,
        uri=chunk.uri,
        page=chunk.page,
        section=chunk.section,
        snippet=text if len(text) <= 300 else f"{text[:300]}…",
    )


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def _same(search: Search) -> object:
    """Equal for searches that cannot find anything different."""
    if isinstance(search, KeywordSearch):
        keywords = frozenset(keyword.lower() for keyword in search.keywords)
        return "keyword", keywords, search.whole_words, search.require_all
    return "semantic", frozenset(re.findall(r"\w+", _plain(search.query)))


def _thing(search: Search) -> frozenset[str]:
    """The words that say what a search is for."""
    text = " ".join(search.keywords) if isinstance(search, KeywordSearch) else search.query
    return frozenset(words(text)) - _SMALL_WORDS
