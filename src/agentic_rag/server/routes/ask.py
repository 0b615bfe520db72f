"""`/api/ask`: a question and its answer, at once or as the events on the way to it."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from agentic_rag.errors import AragError
from agentic_rag.server.conversations import events_in
from agentic_rag.server.errors import error_response, responses, told
from agentic_rag.server.event_stream import ClientGone, EventStream, while_connected
from agentic_rag.server.given import AskBody, QuestionBody
from agentic_rag.server.questions import (
    UNEXPECTED,
    Asked,
    Finished,
    events_of,
    raised,
)
from agentic_rag.server.state import ServerState, State
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import Event, RunFailed
from agentic_rag.strategies.run import BadQuestion, check_strategy

_logger = logging.getLogger(__name__)
_GONE = 499  # nginx's status for a client that went; nobody gets it
_STREAM = "text/event-stream"
_EVENTS = (
    "With `stream`, or where `Accept` is `text/event-stream`: server-sent events, one for each "
    "event of the trace as it happens. `event` is its type, `data` its JSON; the last one is "
    "`run_finished` with the whole answer, or `run_failed`. Closing the connection ends the work."
)

router = APIRouter(prefix="/api", tags=["Questions"])


class AnswerWithTrace(Answer):
    """An answer, and under which id its trace is kept."""

    trace_id: str | None = Field(None, description="None where it could not be kept.")


ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": AnswerWithTrace, "content": {_STREAM: {}}, "description": _EVENTS},
    **responses(400, 404, 409, 422, 429, 502, 503, 504),
}


@router.post("/ask", summary="Ask a question", response_model=None, responses=ANSWERS)
async def ask(request: Request, body: AskBody, state: State) -> Response:
    """The answer to a question, with numbered sources and every step that led to it."""
    if body.session is not None and body.history:
        raise BadQuestion("Give `session` or `history`, not both.")
    return await answered(request, state, body, body.session, body)


async def answered(
    request: Request,
    state: ServerState,
    body: QuestionBody,
    session: str | None,
    with_history: AskBody | None = None,
) -> Response:
    """The response to a question, in a kept conversation where `session` names one."""
    check_strategy(body.strategy or "")
    asked = Asked(
        body.question,
        body.strategy or None,
        body.model,
        body.settings(state.settings),
        body.filter(),
        with_history.turns() if with_history else (),
    )
    events = events_of(state, asked) if session is None else events_in(state, session, asked)
    if body.stream or _STREAM in request.headers.get("accept", ""):
        return EventStream(_frames(events), _refused, _failed)
    try:
        finished = await while_connected(request, _finished(events))
    except ClientGone:
        return Response(status_code=_GONE)
    return await asyncio.to_thread(_json, finished)


async def _finished(events: AsyncGenerator[Event, None]) -> Finished:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return event
            if isinstance(event, RunFailed):
                raise raised(event)
    raise RuntimeError("The strategy ended without an answer.")


def _json(finished: Finished) -> Response:
    answer = finished.answer.model_dump(mode="json")
    return JSONResponse({**answer, "trace_id": finished.trace_id})


async def _frames(events: AsyncGenerator[Event, None]) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        async for event in events:
            yield f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"


def _refused(error: Exception) -> Response:
    """The response to an error before the first event."""
    if isinstance(error, AragError):
        return told(error)
    _logger.error("a question failed", exc_info=error)
    return error_response(500, UNEXPECTED, _unexpected())


def _failed(error: Exception) -> str:
    """The event that tells of an error later on."""
    if isinstance(error, AragError):
        failed = RunFailed(error=str(error), code=type(error).__name__)
    else:
        _logger.error("a question failed", exc_info=error)
        failed = RunFailed(error=_unexpected(), code=UNEXPECTED)
    return f"event: run_failed\ndata: {json.dumps(failed.model_dump(mode='json'))}\n\n"


def _unexpected() -> str:
    return "The server met something it did not expect; its log says what."
