"""The three retrieval tools of one question, as the model calls them.

keyword_search, semantic_search and read_chunk of A-RAG.

A call never raises: what goes wrong is told to the model in the result. Where no other call could
do better, the result says so too.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.records import DamagedKnowledgeBase
from agentic_rag.strategies.agent.arguments import (
    EXAMPLES,
    MOST_HITS,
    MOST_NEIGHBOURS,
    BadArguments,
    KeywordSearch,
    ReadChunk,
    understood,
)
from agentic_rag.strategies.agent.display import Page, listed, show_chunks, show_hits
from agentic_rag.strategies.agent.prompts import TOOLS as TOOLS
from agentic_rag.strategies.agent.prompts import Language, described, note
from agentic_rag.strategies.agent.tracker import Search, Tracker, as_hit
from agentic_rag.strategies.support import Support, names_met
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, Hit, SearchResult, Snapshot

_UNLIMITED = 1_000_000_000
_LEAST_ROOM = 80  # o200k tokens; less cannot hold a result
_WORDS_OF_KEYWORD = 3  # A-RAG
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "keywords": {"type": "array", "items": {"type": "string"}},
    "query": {"type": "string"},
    "chunk_ids": {"type": "array", "items": {"type": "string"}},
    "top_k": {"type": "integer", "minimum": 1, "maximum": MOST_HITS},
    "neighbours": {"type": "integer", "minimum": 0, "maximum": MOST_NEIGHBOURS, "default": 0},
    "whole_words": {"type": "boolean", "default": False},
    "require_all": {"type": "boolean", "default": False},
}
_REQUIRED = frozenset(["keywords", "query", "chunk_ids"])


def schema(
    tool: str, language: Language, top_k: int, given: Sequence[str] = TOOLS
) -> dict[str, Any]:
    """The JSON schema of a tool's arguments; `top_k` is the default it names."""
    properties: dict[str, Any] = {}
    for name, meaning in described(tool, language, tuple(given)).parameters.items():
        properties[name] = {**_KINDS[name], "description": meaning}
        if name == "top_k":
            properties[name]["default"] = min(top_k, MOST_HITS)
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name in _REQUIRED],
        "additionalProperties": False,
    }


def definitions(
    language: Language, top_k: int, given: Sequence[str] = TOOLS
) -> "list[ToolDefinition]":
    """The tools `given` as they are sent to a model."""
    from pydantic_ai.tools import ToolDefinition

    return [
        ToolDefinition(
            name=tool,
            description=described(tool, language, tuple(given)).text,
            parameters_json_schema=schema(tool, language, top_k, given),
            strict=False,  # strict mode would make every parameter required
        )
        for tool in TOOLS
        if tool in given
    ]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call gives back: to the model `text`, to a person `hits` and `error`. `unusable`:
    the arguments were not understood, so nothing was done. `damage`: the tables cannot be read, so
    that every other call would fail too."""

    text: str
    hits: "tuple[Hit, ...]" = ()
    tokens: int = 0
    error: str | None = None
    unusable: bool = False
    damage: DamagedKnowledgeBase | None = None


class Retrieval:
    """The tools and the tracker of one question. Calls block; they may come from any thread, one
    at a time."""

    def __init__(
        self,
        snapshot: "Snapshot",
        settings: "Settings",
        language: Language,
        where: "Filter | None" = None,
    ) -> None:
        self.tracker = Tracker()
        self.failed = ""  # why the latest call that did not work did not
        self.language = language
        self._snapshot = snapshot
        self._settings = settings
        self._where = where
        self._lock = threading.Lock()

    def call(self, tool: str, arguments: object, room: int | None = None) -> Result:
        """Run a tool. The result takes at most about `room` o200k tokens, if that is given."""
        with self._lock:
            try:
                wanted = understood(tool, arguments)
            except BadArguments as problem:
                self.failed = str(problem)
                text = self._note("bad_arguments", problem=problem, example=EXAMPLES[tool])
                return Result(text, error=str(problem), unusable=True)
            if room is not None and room < _LEAST_ROOM:
                return Result(self._note("no_room"), error="no room is left")
            limit = _UNLIMITED if room is None else room
            if self._settings.agent.cap:
                limit = min(limit, self._settings.agent.result_tokens)
            before = self.tracker.results
            self.tracker.results += 1
            page = Page(limit)
            page.remark(self._note("result", number=self.tracker.results))
            try:
                hits = (
                    self._read(wanted, page)
                    if isinstance(wanted, ReadChunk)
                    else self._search(wanted, page)
                )
            except Exception as error:  # whatever it is, the model can go another way
                self.tracker.results = before
                said = str(error) if isinstance(error, AragError) else f"{type(error).__name__}."
                self.failed = str(error) or type(error).__name__
                text = self._note("tool_failed", name=tool, error=said)
                damage = error if isinstance(error, DamagedKnowledgeBase) else None
                return Result(text, error=self.failed, damage=damage)
            text = page.text(self.language)
            tokens = count_tokens("\n".join(page.blocks))  # documents, not what is said of them
            self.tracker.tokens[tool] += tokens
            return Result(text, hits, tokens)

    def best(self, question: str) -> "list[Hit]":
        """The best of what was shown, for a reader: what the model asked to read first, the rest
        as a hybrid search ranks it, each with the sentences that fit the question. Where nothing
        was shown, what that search finds."""
        most = self._settings.answer.passages
        shown = self.tracker.passages()
        pool = self._settings.search.pool if shown else most
        found = self._snapshot.hybrid_search(question, pool, where=self._where).hits
        if not shown:
            return list(found)
        rank = {hit.chunk_id: place for place, hit in enumerate(found)}
        chosen = self.tracker.chosen
        order = sorted(
            self.tracker.hits(),
            key=lambda hit: (hit.chunk_id not in chosen, rank.get(hit.chunk_id, pool)),
        )
        support = Support(shown)
        passages = {passage.chunk_id: passage for passage in shown}
        return [
            replace(hit, snippet=support.snippet(passages[hit.chunk_id], [question]))
            for hit in order[:most]
        ]

    # -- searching

    def _search(self, search: Search, page: Page) -> "tuple[Hit, ...]":
        top_k = search.top_k or min(self._settings.search.top_k, MOST_HITS)
        if self._settings.agent.mark_repeats:
            before = self.tracker.searched(search, top_k)
            if before:
                name = "repeated" if before.ids else "repeated_empty"
                page.remark(self._note(name, number=before.result, ids=listed(before.ids)))
                return ()
        found = self._found(search, top_k)
        self._remark_on(search, found, page)
        if "read_chunk" not in self._settings.agent.tools:
            return self._shown_whole(search, found, top_k, page)
        chunks = self._snapshot.read_chunk([hit.chunk_id for hit in found.hits]).chunks
        show_hits(
            page,
            found.hits,
            {chunk.chunk_id: chunk for chunk in chunks},
            self.tracker,
            self._settings.agent,
            self.language,
        )
        self.tracker.note_search(search, top_k, [hit.chunk_id for hit in found.hits])
        return found.hits

    def _shown_whole(
        self, search: Search, found: "SearchResult", top_k: int, page: Page
    ) -> "tuple[Hit, ...]":
        """The chunks themselves, where there is no tool to read them (A-RAG's ablation)."""
        ids = [hit.chunk_id for hit in found.hits]
        chunks = self._snapshot.read_chunk(ids).chunks if ids else ()
        agent = self._settings.agent
        shown = show_chunks(page, chunks, self.tracker, agent, self.language)
        self.tracker.note_search(search, top_k, ids)
        kept = {chunk.chunk_id for chunk in shown}
        return tuple(hit for hit in found.hits if hit.chunk_id in kept)

    def _found(self, search: Search, top_k: int) -> "SearchResult":
        if isinstance(search, KeywordSearch):
            return self._snapshot.keyword_search(
                search.keywords,
                top_k,
                whole_words=search.whole_words,
                require_all=search.require_all,
                where=self._where,
            )
        found = self._snapshot.semantic_search(search.query, top_k, where=self._where)
        if not found.related and names_met(search.query, (hit.snippet for hit in found.hits)):
            return replace(found, related=True)
        return found

    def _remark_on(self, search: Search, found: "SearchResult", page: Page) -> None:
        for notice in found.notices:
            page.remark(notice)
        if isinstance(search, KeywordSearch):
            counts = ", ".join(f'"{word}" {count}' for word, count in found.counts.items())
            page.remark(self._note("counts", counts=counts))
            if not found.hits:
                page.remark(self._note(self._why_none(search, found)))
            if any(
                not found.counts.get(word) and len(word.split()) > _WORDS_OF_KEYWORD
                for word in search.keywords
            ):
                page.remark(self._note("long_keyword"))
        elif not found.hits:
            page.remark(self._note("nothing"))
        elif not found.related:
            page.remark(self._note("unrelated"))
        if (not found.hits or not found.related) and self.tracker.note_empty(search):
            page.remark(self._note("may_not_hold"))

    @staticmethod
    def _why_none(search: KeywordSearch, found: "SearchResult") -> str:
        counts = found.counts.values()
        if not any(counts):
            return "none"
        return "none_all" if search.require_all else "none_here"

    # -- reading

    def _read(self, wanted: ReadChunk, page: Page) -> "tuple[Hit, ...]":
        around = wanted.neighbours
        found = self._snapshot.read_chunk(
            wanted.chunk_ids, before=around, after=around, where=self._where
        )
        for given, nearest in found.unknown.items():
            name = "unknown_id" if nearest else "no_such_id"
            page.remark(self._note(name, id=given, nearest=nearest))
        self.tracker.chosen.update(chunk.chunk_id for chunk in found.chunks)
        shown = show_chunks(page, found.chunks, self.tracker, self._settings.agent, self.language)
        return tuple(as_hit(chunk) for chunk in shown)

    def _note(self, name: str, /, **values: object) -> str:
        return note(name, self.language, **values)
