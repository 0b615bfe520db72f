"""`/api/jobs`: what is being indexed in the background, and what became of it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from agentic_rag.server.errors import responses
from agentic_rag.server.job_records import Job
from agentic_rag.server.state import State

_PAGE, _MOST_PAGE = 20, 100

router = APIRouter(prefix="/api/jobs", tags=["Documents"])
Number = Annotated[int, Path(ge=1, examples=[3])]


class JobPage(BaseModel):
    """A page of jobs, the newest first; `next` is the cursor of the next page, null at the end."""

    jobs: tuple[Job, ...]
    next: int | None


@router.get("", summary="List jobs", responses=responses(422))
async def list_jobs(
    state: State,
    limit: Annotated[int, Query(ge=1, le=_MOST_PAGE)] = _PAGE,
    cursor: Annotated[int | None, Query(ge=1)] = None,
) -> JobPage:
    """The newest jobs; of each at most 50 documents, those with a reason first."""
    found = await asyncio.to_thread(state.jobs.jobs, limit + 1, cursor)
    after = found[limit - 1].id if len(found) > limit else None
    return JobPage(jobs=tuple(found[:limit]), next=after)


@router.get("/{number}", summary="A job", responses=responses(404, 422))
async def job(state: State, number: Number) -> Job:
    """How far a job is, and what became of its documents."""
    return await asyncio.to_thread(state.jobs.job, number)


@router.delete("/{number}", summary="Cancel a job", responses=responses(404, 409, 422, 503))
async def cancel(state: State, number: Number) -> Job:
    """Take a job back. One that is running ends after the work in hand; documents of it that are
    in already stay."""
    return await asyncio.to_thread(state.jobs.cancel, number)
