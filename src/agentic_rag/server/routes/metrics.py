"""`/metrics`: what Prometheus collects."""

import asyncio
from collections import Counter

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from agentic_rag.errors import AragError
from agentic_rag.server.state import ServerState, State

router = APIRouter(tags=["Health"])


@router.get(
    "/metrics",
    summary="Counts for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
async def metrics(state: State) -> Response:
    """Requests, questions, tokens, cost, documents, memory."""
    text = await asyncio.to_thread(_text, state)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _text(state: ServerState) -> bytes:
    counts = dict.fromkeys(("ready", "empty", "failed"), 0)
    try:
        counts |= Counter(one.status for one in state.kb.snapshot().documents.values())
    except AragError:
        counts = {}  # readiness tells of that; the other counts still count
    state.counts.documents({str(status): count for status, count in counts.items()})
    return state.counts.text()
