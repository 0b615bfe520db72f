"""`/api/sessions`: conversations that are kept, and questions in them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from agentic_rag.server.conversations import no_session, unreadable
from agentic_rag.server.errors import responses
from agentic_rag.server.given import Body, QuestionBody
from agentic_rag.server.routes.ask import ANSWERS, answered
from agentic_rag.server.state import State
from agentic_rag.sessions import (
    Session,
    SessionInfo,
    SessionStore,
    UnknownSession,
    UnreadableSession,
)

router = APIRouter(prefix="/api/sessions", tags=["Conversations"])

SessionId = Annotated[str, Path(max_length=60, examples=["20261130-1"])]


class Sessions(BaseModel):
    """Conversations, the one changed last first; `total` is how many there are."""

    sessions: list[SessionInfo]
    total: int


class NewSession(Body):
    """Nothing is to be said of a new conversation."""


class SessionMade(BaseModel):
    """The id of a new conversation."""

    id: str
    started: str


@router.get("", summary="List the conversations", responses=responses(422))
async def list_sessions(
    state: State, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Sessions:
    """The conversations that are kept, with their first question as title."""
    found = await asyncio.to_thread(state.sessions.list)
    return Sessions(sessions=found[:limit], total=len(found))


@router.post("", status_code=201, summary="Begin a conversation", responses=responses(422, 503))
async def begin(state: State, _: NewSession | None = None) -> SessionMade:
    """A new conversation without turns."""
    made = await asyncio.to_thread(_begun, state.sessions)
    return SessionMade(id=made.id, started=made.started)


@router.get("/{session_id}", summary="A conversation's turns", responses=responses(404, 409, 422))
async def history(state: State, session_id: SessionId) -> Session:
    """The questions and answers of a conversation."""
    try:
        return await asyncio.to_thread(state.sessions.load, session_id)
    except UnknownSession:
        raise no_session(session_id) from None
    except UnreadableSession:
        raise unreadable(session_id) from None


@router.delete(
    "/{session_id}",
    status_code=204,
    summary="Delete a conversation",
    responses=responses(404, 409, 422, 503),
)
async def delete(state: State, session_id: SessionId) -> Response:
    """Delete a conversation for good."""
    try:
        await asyncio.to_thread(state.sessions.delete, session_id)
    except UnknownSession:
        raise no_session(session_id) from None
    return Response(status_code=204)


@router.post(
    "/{session_id}/ask",
    summary="Ask within a conversation",
    response_model=None,
    responses=ANSWERS,
)
async def ask(
    request: Request, state: State, session_id: SessionId, body: QuestionBody
) -> Response:
    """The answer to a question that may refer to what was said before; both are kept."""
    return await answered(request, state, body, session_id)


def _begun(sessions: SessionStore) -> Session:
    with sessions.started() as session:
        sessions.save(session)
        return session
