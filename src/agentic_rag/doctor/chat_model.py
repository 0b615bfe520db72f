"""The chat model, tried by one request of a few tokens, as the strategy in force makes them."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentic_rag.doctor.records import Part
from agentic_rag.doctor.wording import cure_of, said
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel

LIMIT = 30.0  # seconds for the whole trial; a large model may have to be loaded first
NOT_TRIED = "not tried"
_TOKENS = 32  # of the reply; some providers refuse fewer than 16
_QUESTION = "Say the word: yes."


def chat_model(settings: "Settings", calls: bool) -> "tuple[ChatModel | None, bool | None, Part]":
    """The chat model, or None where it cannot be had; whether it takes tools, or None where that
    was not seen; and how its trial went. Without `calls` it is not asked."""
    from agentic_rag.models.chat import resolve_chat_model
    from agentic_rag.strategies.agent.requests import ModelWithoutTools

    name = "chat model"
    try:
        chat = resolve_chat_model(settings)
    except AragError as error:
        value, cure = settings.model or "none", cure_of(error, "Set `model` to another.")
        return None, None, Part(name, value, works=False, detail=said(error), cure=cure)
    part = Part(name, chat.name, f"{chat.why} {chat.hint}".strip())
    if chat.connect is None:
        return chat, None, replace(part, detail="there is nothing to try")
    if not calls:
        return chat, None, replace(part, detail=NOT_TRIED)
    # Only the agent's requests carry tools; a model that refuses them serves the other strategies.
    with_tool = chat.tools and settings.strategy in ("", "agent")
    began = time.monotonic()
    try:
        tokens = asyncio.run(_asked(chat, settings, with_tool))
    except AragError as error:
        detail, cure = _failure(error, chat, settings)
        part = replace(part, works=False, detail=detail, cure=cure)
        takes_tools = False if isinstance(error, ModelWithoutTools) else None
    else:
        how = "and takes tools" if with_tool else "asked without tools"
        plural = "" if tokens == 1 else "s"
        part = replace(part, works=True, detail=f"it answered with {tokens} token{plural}, {how}")
        takes_tools = True if with_tool else None
    return chat, takes_tools, replace(part, seconds=time.monotonic() - began)


async def _asked(chat: "ChatModel", settings: "Settings", with_tool: bool) -> int:
    """One request of a few tokens; how many came.

    Raises ModelCallFailed, ModelWithoutTools, and what loading a model file raises.
    """
    from agentic_rag.strategies.reply import ModelCallFailed, describe_failure

    assert chat.connect is not None
    try:
        async with asyncio.timeout(LIMIT) as whole, chat.connect() as model:
            return await _one_request(chat, model, settings, with_tool)
    except Exception as error:  # every provider has errors of its own
        if whole.expired():
            raise ModelCallFailed(
                f"It gave no whole reply in {LIMIT:g} seconds, and `arag doctor` waits no longer; "
                "try again in a minute, as a large model may still be loading, and if it stays "
                f"silent look at {_log(chat, settings)}."
            ) from error
        if isinstance(error, AragError):
            raise
        told = describe_failure(error, settings.model_timeout, chat.unreachable)
        raise ModelCallFailed(told.message) from error


async def _one_request(
    chat: "ChatModel", model: "Model", settings: "Settings", with_tool: bool
) -> int:
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

    from agentic_rag.strategies.agent.requests import ModelTurn, Requests

    # A model that refuses tools is better found out here than by a question.
    tool = ToolDefinition(
        name="look_up",
        description="Looks a word up. Not needed here.",
        parameters_json_schema={
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    )
    requests = Requests(
        model,
        ModelSettings(max_tokens=_TOKENS, timeout=settings.model_timeout),
        [tool] if with_tool else [],
        settings.model_timeout,
        chat.cost,
        settings.agent.streaming,
        chat.unreachable,
    )
    tokens = 0
    async with aclosing(requests.ask([ModelRequest.user_text_prompt(_QUESTION)], 0)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelTurn):
                tokens = piece.usage.output_tokens
    return tokens


def _failure(error: AragError, chat: "ChatModel", settings: "Settings") -> tuple[str, str]:
    """What came of the request, and what to do about it."""
    address = _address(settings)
    status = getattr(error.__cause__, "status_code", None)
    if status == 404 and address:
        cure = f"Check `model` ({settings.model}) and `base_url` ({address}): most end in /v1."
        return said(error), cure
    look = f"look at {_log(chat, settings)}"
    if not str(error).startswith("The model failed"):  # the rest say themselves what to do
        return said(error), cure_of(error, f"{look[:1].upper()}{look[1:]}, and try again.")
    if status is not None and status >= 500:
        cure = f"The fault is on the other side: {look}, and try again."
    elif status is not None:
        cure = f"It refused the request: mend what it complains of, or {look}."
    elif address:
        cure = f"Check that the server at `base_url` ({address}) is one of a chat model."
    else:
        cure = f"Try again; if it stays so, {look}."
    return " ".join(str(error).split()), cure


def _log(chat: "ChatModel", settings: "Settings") -> str:
    """Where the model's side of a failure is to be read, in words."""
    if chat.name.startswith("local"):
        return "the model file"
    if address := _address(settings):
        return f"the log of the server at `base_url` ({address})"
    return "the log of Ollama" if chat.name.startswith("ollama:") else "the provider's status page"


def _address(settings: "Settings") -> str:
    """`base_url` without a password in it."""
    url = urlsplit(settings.base_url)
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
