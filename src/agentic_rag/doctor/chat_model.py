"""The chat model, tried by one request of a few tokens, as the strategy in force makes them."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from agentic_rag.doctor.records import Part
from agentic_rag.doctor.wording import cure_of, said
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel
    from agentic_rag.strategies.agent.requests import ModelTurn

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
        turn = asyncio.run(_asked(chat, settings, with_tool))
    except AragError as error:
        detail, cure = _failure(error, chat)
        part = replace(part, works=False, detail=detail, cure=cure)
        takes_tools = False if isinstance(error, ModelWithoutTools) else None
    else:
        how = "and takes tools" if with_tool else "asked without tools"
        tokens = turn.usage.output_tokens
        plural = "" if tokens == 1 else "s"
        if not (turn.text.strip() or turn.thoughts.strip() or turn.calls or turn.cut_off):
            cure = f"Look at {chat.cures.log}, or set `model` to another."
            part = replace(part, works=False, detail="its reply was empty", cure=cure)
            return chat, None, replace(part, seconds=time.monotonic() - began)
        part = replace(part, works=True, detail=f"it answered with {tokens} token{plural}, {how}")
        takes_tools = True if with_tool else None
    return chat, takes_tools, replace(part, seconds=time.monotonic() - began)


async def _asked(chat: "ChatModel", settings: "Settings", with_tool: bool) -> "ModelTurn":
    """One request of a few tokens; what came.

    Raises ModelCallFailed, ModelWithoutTools, and what loading a model file raises.
    """
    from agentic_rag.strategies.failures import describe_failure
    from agentic_rag.strategies.reply import ModelCallFailed

    assert chat.connect is not None
    try:
        async with asyncio.timeout(LIMIT) as whole, chat.connect() as model:
            return await _one_request(chat, model, settings, with_tool)
    except Exception as error:  # every provider has errors of its own
        if whole.expired():
            raise ModelCallFailed(
                f"It gave no whole reply in {LIMIT:g} seconds, and `arag doctor` waits no longer; "
                "try again in a minute, as a large model may still be loading, and if it stays "
                f"silent look at {chat.cures.log}."
            ) from error
        if isinstance(error, AragError):
            raise
        told = describe_failure(error, settings.model_timeout, chat.cures)
        raise ModelCallFailed(told) from error


async def _one_request(
    chat: "ChatModel", model: "Model", settings: "Settings", with_tool: bool
) -> "ModelTurn":
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
        chat.cures,
    )
    turn: ModelTurn | None = None
    async with aclosing(requests.ask([ModelRequest.user_text_prompt(_QUESTION)], 0)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelTurn):
                turn = piece
    assert turn is not None, "a request ends in a turn or an error"
    return turn


def _failure(error: AragError, chat: "ChatModel") -> tuple[str, str]:
    """What came of the request, and what to do about it."""
    from agentic_rag.strategies.reply import ModelCallFailed

    if isinstance(error, ModelCallFailed) and error.failure.cure:
        cure = error.failure.cure
        return error.failure.what, f"{cure[:1].upper()}{cure[1:]}."
    look = f"look at {chat.cures.log}"
    return said(error), cure_of(error, f"{look[:1].upper()}{look[1:]}, and try again.")
