"""`/v1/models` and `/v1/chat/completions`: each strategy as a model of OpenAI's protocol."""

import json
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from agentic_rag.errors import AragError
from agentic_rag.server import openai_wire as wire
from agentic_rag.server.errors import code_of, invalid, status_of
from agentic_rag.server.event_stream import ClientGone, EventStream, while_connected
from agentic_rag.server.question_gate import TooManyQuestions
from agentic_rag.server.questions import Asked, events_of, raised
from agentic_rag.server.state import ServerState, State
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    RunFailed,
    RunFinished,
)
from agentic_rag.strategies.run import AnswerFailed
from agentic_rag.strategies.step_line import step_line

_logger = logging.getLogger(__name__)
_DONE = "data: [DONE]\n\n"


_GONE = 499  # nginx's status for a client that went; nobody gets it
# What OpenAI's client does by itself: it asks again at 408, 409, 429 and from 500 on. A question
# that failed would fail, and cost, again.
_NOT_AGAIN = {"x-should-retry": "false"}
_TYPES = {401: "authentication_error", 404: "invalid_request_error", 429: "rate_limit_error"}


class _Route(APIRoute):
    """Tells what is wrong in OpenAI's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except (RequestValidationError, AragError) as error:
                return refused(error)

        return told


router = APIRouter(prefix="/v1", tags=["OpenAI protocol"], route_class=_Route)


@router.get("/models")
async def list_models() -> dict[str, Any]:
    """Each strategy as a model."""
    return {"object": "list", "data": wire.models()}


@router.get("/models/{name}")
async def get_model(name: str) -> dict[str, Any]:
    """One model."""
    return wire.model(name)


@router.post("/chat/completions", response_model=None)
async def chat_completions(request: Request, body: wire.ChatRequest, state: State) -> Response:
    """Answer the last message, with its sources; streamed where `stream` is set."""
    asked = wire.asked(body)
    events = _events(state, asked)
    named: dict[str, Any] = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": body.model,
    }
    link = wire.Link(str(request.base_url))
    if body.stream:
        usage = bool(body.stream_options and body.stream_options.include_usage)
        frames = wire.Frames(**named, include_usage=usage, link=link, question=asked.question)
        return EventStream(_streamed(events, frames), refused, failed)
    steps: list[str] = []

    async def answered() -> Answer:
        async with aclosing(events):
            async for event in events:
                if said := step_line(event):
                    steps.append(said)
                if isinstance(event, RunFinished):
                    return event.answer
        raise AnswerFailed("The strategy ended without an answer; ask again.")

    try:
        answer = await while_connected(request, answered())
    except ClientGone:
        return Response(status_code=_GONE)
    return JSONResponse(wire.completion(answer, **named, link=link, steps=steps))


async def _events(state: ServerState, asked: wire.Asked) -> AsyncGenerator[Event, None]:
    """The events of the question; a run that fails raises."""
    question = Asked(asked.question, asked.strategy, history=asked.history)
    async with aclosing(events_of(state, question)) as events:
        async for event in events:
            if isinstance(event, RunFailed):
                raise raised(event)
            yield event


async def _streamed(
    events: AsyncGenerator[Event, None], frames: wire.Frames
) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        async for event in events:
            for frame in _of(event, frames):
                yield _frame(frame)
    yield _DONE


def _of(event: Event, frames: wire.Frames) -> list[dict[str, Any]]:
    match event:
        case AnswerDelta(text=text):
            return list(frames.text(text))
        case AnswerReset():
            return list(frames.reset())
        case RunFinished(answer=answer):
            return list(frames.end(answer))
        case _:
            said = step_line(event)
            return list(frames.step(said)) if said else []


def _frame(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def refused(error: Exception) -> JSONResponse:
    """The response that tells an error."""
    status, body = _told(error)
    headers = {} if status == 429 else dict(_NOT_AGAIN)
    if isinstance(error, TooManyQuestions):
        headers["Retry-After"] = str(error.retry_after)
    return JSONResponse(body, status, headers)


def failed(error: Exception) -> str:
    """The event that tells an error in the middle of an answer."""
    return _frame(_told(error)[1])


def _told(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error."""
    param: str | None = None
    match error:
        case wire.UnknownModel():
            status, code, message = 404, "model_not_found", str(error)
        case wire.NotAChat():
            status, code, message, param = 400, "invalid_value", str(error), error.param
        case RequestValidationError():
            status, code, message = 400, "invalid_request", invalid(error.errors())
        case AragError():
            status, code, message = status_of(error), code_of(error), str(error)
        case _:
            _logger.error("a question failed", exc_info=error)
            status, code = 500, "unexpected"
            message = "The server met something it did not expect; its log says what."
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return status, wire.error(message, kind, code, param)
