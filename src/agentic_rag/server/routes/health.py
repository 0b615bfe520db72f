"""`/api/health`: the server runs. `/api/ready`: it can answer questions."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from agentic_rag.server.errors import responses
from agentic_rag.server.state import State

router = APIRouter(prefix="/api", tags=["Health"])


class Health(BaseModel):
    """That the server runs."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """That the knowledge base can be read."""

    status: Literal["ready"] = "ready"


@router.get("/health", summary="Whether the server runs")
async def health() -> Health:
    return Health()


@router.get("/ready", summary="Whether questions can be answered", responses=responses(503))
async def ready(state: State) -> Ready:
    await asyncio.to_thread(lambda: state.kb.snapshot().documents)
    return Ready()
