"""`/api/search`: the chunks that fit a query, best first, as JSON or by the query string."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic.dataclasses import dataclass

from agentic_rag.knowledge_base.keyword import split_keywords
from agentic_rag.knowledge_base.records import BadQuery, Hit, Mode, SearchResult
from agentic_rag.server.errors import responses
from agentic_rag.server.given import Filtered, Short, Text
from agentic_rag.server.state import ServerState, State

_ERRORS = responses(400, 422, 503)

router = APIRouter(prefix="/api", tags=["Search"])


class SearchBody(Filtered):
    """What to look for. In keyword mode each word is a keyword, and quotes keep a phrase."""

    query: Annotated[Text, Field(examples=["pump"])]
    mode: Mode = "hybrid"
    top_k: Annotated[int | None, Field(ge=1, le=1000)] = None
    whole_words: bool = False
    require_all: bool = False


@dataclass(frozen=True)
class SearchHits:
    """Hits, best first; `related` is false where nothing is clearly related. `terms` are to be
    highlighted, `counts` says how many chunks hold each keyword."""

    mode: Mode
    query: str
    hits: tuple[Hit, ...]
    terms: tuple[str, ...]
    counts: Mapping[str, int]
    related: bool
    notices: tuple[str, ...]


@router.post("/search", summary="Search", responses=_ERRORS)
async def search(body: SearchBody, state: State) -> SearchHits:
    """The chunks that fit a query."""
    return await _searched(state, body)


@router.get("/search", summary="Search by the query string", responses=_ERRORS)
async def search_by_query_string(
    state: State,
    query: Annotated[Text, Query(examples=["pump"])],
    mode: Mode = "hybrid",
    top_k: Annotated[int | None, Query(ge=1, le=1000)] = None,
    path: Annotated[list[Short] | None, Query(max_length=100)] = None,
    where: Annotated[
        list[Short] | None,
        Query(max_length=100, description="Metadata as KEY=VALUE; all must fit."),
    ] = None,
    whole_words: bool = False,
    require_all: bool = False,
) -> SearchHits:
    """The chunks that fit a query."""
    body = SearchBody(
        query=query,
        mode=mode,
        top_k=top_k,
        path=path or [],
        metadata=_pairs(where or []),
        whole_words=whole_words,
        require_all=require_all,
    )
    return await _searched(state, body)


async def _searched(state: ServerState, body: SearchBody) -> SearchHits:
    if (body.whole_words or body.require_all) and body.mode != "keyword":
        raise BadQuery("`whole_words` and `require_all` need the mode keyword.")
    found = await state.in_search_thread(_search, state, body)
    return SearchHits(
        found.mode,
        found.query,
        found.hits,
        found.terms,
        found.counts,
        bool(found.related),
        found.notices,
    )


def _search(state: ServerState, body: SearchBody) -> SearchResult:
    snapshot = state.kb.snapshot()
    where = body.filter()
    if body.mode != "keyword":
        return snapshot.search(body.query, body.mode, body.top_k, where)
    return snapshot.keyword_search(
        split_keywords(body.query),
        body.top_k,
        whole_words=body.whole_words,
        require_all=body.require_all,
        where=where,
    )


def _pairs(where: list[str]) -> dict[str, str]:
    found = {}
    for pair in where:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise BadQuery("`where` is written KEY=VALUE, as in where=lang=en.")
        found[key.strip()] = value.strip()
    return found
