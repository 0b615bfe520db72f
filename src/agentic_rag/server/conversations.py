"""Questions within a kept conversation: its turns go before them, and the answer is added."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from agentic_rag.server.questions import Asked, Finished, events_of
from agentic_rag.server.state import ServerState
from agentic_rag.sessions import (
    Session,
    SessionStore,
    SessionsUnwritable,
    UnknownSession,
    UnreadableSession,
)
from agentic_rag.strategies.events import Event, Notice
from agentic_rag.strategies.question import Turn

_logger = logging.getLogger(__name__)


def no_session(session_id: str) -> UnknownSession:
    """That there is no such conversation."""
    return UnknownSession(
        f"There is no conversation {session_id!r}; GET /api/sessions lists those there are."
    )


def unreadable(session_id: str) -> UnreadableSession:
    """That a conversation's file is damaged."""
    return UnreadableSession(
        f"The conversation {session_id!r} cannot be read; delete it, or upgrade agentic-rag."
    )


@asynccontextmanager
async def opened(sessions: SessionStore, session_id: str) -> AsyncIterator[Session]:
    """The conversation of that id, locked until the end of the block. Raises UnknownSession,
    UnreadableSession, SessionBusy."""
    holding = sessions.opened(session_id)
    try:
        session = await asyncio.to_thread(holding.__enter__)
    except UnknownSession:
        raise no_session(session_id) from None
    except UnreadableSession:
        raise unreadable(session_id) from None
    try:
        yield session
    finally:
        holding.__exit__(None, None, None)  # lets the lock go, which does not block


async def events_in(
    state: ServerState, session_id: str, asked: Asked
) -> AsyncGenerator[Event, None]:
    """As `events_of`, in a kept conversation. Raises what `opened` raises, too."""
    async with opened(state.sessions, session_id) as session:
        earlier = [Turn(t.question, t.answer.text, t.evidence) for t in session.turns]
        async with aclosing(events_of(state, replace(asked, history=earlier))) as events:
            async for event in events:
                if isinstance(event, Finished):
                    added = session.with_turn(asked.question, event.answer)
                    try:
                        await asyncio.to_thread(state.sessions.save, added)
                    except SessionsUnwritable as error:
                        _logger.warning("%s", error)
                        yield Notice(
                            seconds=event.seconds,
                            level="warning",
                            code="not_kept",
                            message="The answer could not be added to the kept conversation.",
                        )
                yield event
