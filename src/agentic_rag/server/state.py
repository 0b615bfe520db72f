"""What the routes of a server share: the knowledge base, the places for questions, the stores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from agentic_rag.config import Settings
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.server.question_gate import QuestionGate
from agentic_rag.server.traces import TraceStore
from agentic_rag.sessions import SessionStore

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_KEPT_TRACES = 1000


@dataclass(frozen=True, slots=True)
class ServerState:
    """Made when the server starts. `model` overrides the settings; methods of `kb`, `sessions`
    and `traces` block, so that routes call them by `asyncio.to_thread`."""

    settings: Settings
    kb: KnowledgeBase
    gate: QuestionGate
    sessions: SessionStore
    traces: TraceStore
    model: "str | Model | None" = None


def new_state(
    settings: Settings, kb: KnowledgeBase, model: "str | Model | None" = None
) -> ServerState:
    """The state of a server over `kb`."""
    server = settings.server
    return ServerState(
        settings,
        kb,
        QuestionGate(server.concurrent_questions, server.queued_questions),
        SessionStore(kb.directory),
        TraceStore(kb.directory, _KEPT_TRACES),
        model,
    )


async def server_state(connection: HTTPConnection) -> ServerState:
    """The state of the server that a request came to."""
    state: ServerState = connection.app.state.server
    return state


State = Annotated[ServerState, Depends(server_state)]
