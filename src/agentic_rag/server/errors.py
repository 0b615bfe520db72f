"""Errors as the API tells them: `{"error": {"code", "message"}}`, one sentence, a fitting status.

A caller's mistake is 4xx; what the server itself cannot do just now is 503; what it did not
expect is 500, and its cause stands only in the log, under the request's id.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.records import (
    DamagedKnowledgeBase,
    EmbeddingModelMismatch,
    KnowledgeBaseBusy,
    KnowledgeBaseReadOnly,
    NoKnowledgeBase,
    UnknownDocument,
)
from agentic_rag.models.connect import ModelUnavailable
from agentic_rag.models.embedded import ModelFileUnusable
from agentic_rag.models.embedder import EmbeddingFailed
from agentic_rag.server.question_gate import ServerStopping, TooManyQuestions
from agentic_rag.server.traces import UnknownTrace
from agentic_rag.sessions import SessionBusy, SessionsUnwritable, UnknownSession, UnreadableSession
from agentic_rag.strategies.run import AnswerFailed

_STATUS: Mapping[type[AragError], int] = {
    UnknownDocument: 404,
    UnknownSession: 404,
    UnknownTrace: 404,
    KnowledgeBaseBusy: 409,
    SessionBusy: 409,
    UnreadableSession: 409,
    TooManyQuestions: 429,
    AnswerFailed: 502,
    ModelUnavailable: 503,
    ModelFileUnusable: 503,
    DamagedKnowledgeBase: 503,
    EmbeddingFailed: 503,
    EmbeddingModelMismatch: 503,
    KnowledgeBaseReadOnly: 503,
    NoKnowledgeBase: 503,
    ServerStopping: 503,
    SessionsUnwritable: 503,
}
_OTHERS = 400
_NAMES = {
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
}
_SAID = {
    404: "There is nothing at this address; /docs lists what there is.",
    405: "This address does not take that method; /docs lists what it takes.",
}
_WHAT = {"body": "the body", "query": "the query", "path": "the address", "header": "the headers"}


class ErrorTold(BaseModel):
    """What went wrong: `code` is for programs, `message` one sentence for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """The body of every error."""

    error: ErrorTold


def error_response(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """A response that tells an error."""
    body = {"error": {"code": code, "message": message}}
    return JSONResponse(body, status, headers=dict(headers or {}))


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: that these statuses have an error's body."""
    return {status: {"model": ErrorBody} for status in statuses}


def status_of(error: AragError) -> int:
    """The HTTP status that tells an error best."""
    own = getattr(error, "status", None)  # of an error that only a route raises
    found = (_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    return own if isinstance(own, int) else next(found, _OTHERS)


def code_of(error: AragError) -> str:
    """The name of an error, for programs: `UnknownSession` is "unknown_session"."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


def told(error: AragError) -> JSONResponse:
    """The response to an error that was raised on purpose."""
    headers = {}
    if isinstance(error, TooManyQuestions):
        headers["Retry-After"] = str(error.retry_after)
    return error_response(status_of(error), code_of(error), str(error), headers)


def invalid(problems: Sequence[Mapping[str, Any]]) -> str:
    """The first thing that is wrong with a request, in one sentence."""
    problem = problems[0]
    where, *inner = [str(part) for part in problem["loc"]]
    if problem["type"] == "json_invalid":
        return "The body is not valid JSON; send a JSON object."
    what = f"`{'.'.join(inner)}` in {_WHAT.get(where, where)}" if inner else _WHAT.get(where, where)
    wrong = str(problem["msg"]).removeprefix("Value error, ").rstrip(".")
    wrong = wrong.replace("Input should", "it should").replace("Field required", "it is missing")
    return f"{what[0].upper()}{what[1:]} cannot be used: {wrong}; /docs says what is taken."


def tell_errors(app: FastAPI) -> None:
    """Let `app` answer every error in this shape."""

    @app.exception_handler(AragError)
    async def _arag(_: Request, error: AragError) -> JSONResponse:
        return told(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, "invalid_request", invalid(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        status = error.status_code
        said = str(error.detail or "").rstrip(".")
        code, message = _NAMES.get(status, "bad_request"), _SAID.get(status, f"{said}.")
        return error_response(status, code, message, error.headers)
