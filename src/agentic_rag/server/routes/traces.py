"""`/api/traces`: past questions, each with every step that was taken."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from agentic_rag.server.errors import responses
from agentic_rag.server.state import State
from agentic_rag.server.traces import TraceInfo
from agentic_rag.strategies.answer import Answer

router = APIRouter(prefix="/api/traces", tags=["Questions"])


class Traces(BaseModel):
    """Past questions, the newest first; `next` is the `cursor` of the next page, if there is
    one."""

    traces: list[TraceInfo]
    next: str | None = Field(None, examples=["20261130-062654-3f9a"])


@router.get("", summary="List past questions", responses=responses(422))
async def list_traces(
    state: State,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=40)] = None,
) -> Traces:
    """Past questions, those that failed or were stopped too."""
    page = await asyncio.to_thread(state.traces.page, limit, cursor)
    return Traces(traces=list(page.traces), next=page.next)


@router.get("/{trace_id}", summary="A past question", responses=responses(404, 422))
async def trace(state: State, trace_id: Annotated[str, Path(max_length=60)]) -> Answer:
    """The answer to a past question, with its steps."""
    return await asyncio.to_thread(state.traces.load, trace_id)
