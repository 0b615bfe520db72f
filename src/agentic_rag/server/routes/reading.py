"""`/api/chunks/ID`: a chunk whole, with its neighbours."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.records import Chunk
from agentic_rag.server.errors import responses
from agentic_rag.server.state import State

_NEIGHBOURS = 50

router = APIRouter(prefix="/api", tags=["Search"])


class UnknownChunk(AragError):
    """There is no chunk of that id."""

    status = 404


class Chunks(BaseModel):
    """Chunks in the order of their document."""

    chunks: tuple[Chunk, ...]


@router.get("/chunks/{chunk_id}", summary="Read a chunk", responses=responses(404, 422, 503))
async def read(
    state: State,
    chunk_id: Annotated[str, Path(max_length=40, examples=["12-3"])],
    before: Annotated[int, Query(ge=0, le=_NEIGHBOURS)] = 0,
    after: Annotated[int, Query(ge=0, le=_NEIGHBOURS)] = 0,
) -> Chunks:
    """A chunk, with so many neighbours of the same document before and after it."""

    def reading() -> Chunks:
        result = state.kb.snapshot().read_chunk([chunk_id], before=before, after=after)
        for unknown, nearest in result.unknown.items():
            hint = f"the nearest is {nearest}" if nearest else "ids look like 12-3, search for them"
            raise UnknownChunk(f"There is no chunk {unknown!r} here; {hint}.")
        return Chunks(chunks=result.chunks)

    return await state.in_search_thread(reading)
