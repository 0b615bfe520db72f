"""What the routes of a server share: the knowledge base, the places for questions, the stores."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar

from fastapi import Depends
from starlette.requests import HTTPConnection

from agentic_rag.config import Settings
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.server.counts import Counts
from agentic_rag.server.jobs import JobQueue
from agentic_rag.server.question_gate import QuestionGate
from agentic_rag.server.traces import TraceStore
from agentic_rag.server.uploads import UploadStore
from agentic_rag.sessions import SessionStore

if TYPE_CHECKING:
    from pydantic_ai.models import Model

P = ParamSpec("P")
T = TypeVar("T")

_KEPT_TRACES = 1000


@dataclass(frozen=True, slots=True)
class ServerState:
    """Made when the server starts. `model` overrides the settings; methods of `kb`, `sessions`,
    `traces`, `jobs` and `uploads` block, so that routes call them by `asyncio.to_thread`."""

    settings: Settings
    kb: KnowledgeBase
    gate: QuestionGate
    sessions: SessionStore
    traces: TraceStore
    counts: Counts
    searching: ThreadPoolExecutor
    jobs: JobQueue
    uploads: UploadStore
    model: "str | Model | None" = None

    def start(self) -> None:
        """Go on with the jobs that an earlier server left. Blocks."""
        if self.jobs.start():
            self.uploads.sweep()

    async def in_search_thread(self, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """The result of a blocking call that computes. Such calls have threads of their own, as
        many as there are processors, so that many searches delay one another and nothing else."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.searching, partial(call, *given, **named))


def new_state(
    settings: Settings, kb: KnowledgeBase, model: "str | Model | None" = None
) -> ServerState:
    """The state of a server over `kb`."""
    server = settings.server
    gate = QuestionGate(server.concurrent_questions, server.queued_questions)
    return ServerState(
        settings,
        kb,
        gate,
        SessionStore(kb.directory),
        TraceStore(kb.directory, _KEPT_TRACES),
        Counts(gate),
        ThreadPoolExecutor(max(2, os.cpu_count() or 2), "search"),
        JobQueue(kb),
        UploadStore(kb.directory),
        model,
    )


async def server_state(connection: HTTPConnection) -> ServerState:
    """The state of the server that a request came to."""
    state: ServerState = connection.app.state.server
    return state


State = Annotated[ServerState, Depends(server_state)]
