"""The configured parts, each tried once: settings, knowledge base, embedder, chat model, strategy.

A trial costs one embedded text and a few tokens of the chat model, and takes no longer than
`LIMIT` seconds.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.doctor.records import Finding, Part
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel

LIMIT = 30.0  # seconds for the chat model; a large one may have to be loaded first
_TOKENS = 32  # of the reply; some providers refuse fewer than 16
_QUESTION = "Say the word: yes."
_NO_CALL = "not tried"


def settings_part(file: Path | None) -> Part:
    """Where the settings come from."""
    named = sorted(name for name in os.environ if name.startswith("ARAG_"))
    why = f"the environment sets {', '.join(named)}" if named else ""
    return Part("settings", str(file) if file else "no arag.toml: the defaults", why, works=True)


def failed_settings(error: AragError) -> Part:
    """The same where the settings cannot be used; then nothing else can be tried."""
    return Part("settings", "", works=False, detail=_said(error), cure=_cure_of(error))


def parts(settings: "Settings", *, calls: bool = True) -> Iterator[Part]:
    """Every part but the settings themselves, in the order in which they are needed.

    Without `calls` nothing is embedded and no model is asked.
    """
    yield _knowledge_base(settings)
    yield _embedder(settings, calls)
    chat, part = _chat_model(settings, calls)
    yield part
    yield _strategy(settings, chat)


def failures(parts: list[Part]) -> list[Finding]:
    """A finding for each part that does not work."""
    return [
        Finding(part.name.replace(" ", "_"), f"{part.name}: {part.detail}", part.cure)
        for part in parts
        if part.works is False
    ]


def _knowledge_base(settings: "Settings") -> Part:
    from agentic_rag.knowledge_base import KnowledgeBase, NoKnowledgeBase

    name, value = "knowledge base", str(settings.kb)
    began = time.monotonic()
    try:
        documents = KnowledgeBase.open(settings.kb, settings=settings, create=False).documents()
    except NoKnowledgeBase:
        return Part(
            name,
            value,
            works=False,
            detail=f"there is none at {settings.kb}",
            cure="`arag index PATH` makes it; `--kb` or the setting `kb` names another place.",
        )
    except Exception as error:  # whatever is wrong with it, the other parts are still looked at
        return Part(name, value, works=False, detail=_said(error), cure=_cure_of(error))
    counts = {status: sum(d.status == status for d in documents) for status in ("failed", "empty")}
    chunks = sum(d.chunks for d in documents)
    plural = "" if len(documents) == 1 else "s"
    told = [f"{len(documents):,} document{plural}, {chunks:,} chunks"]
    told += [f"{count} {status}" for status, count in counts.items() if count]
    return Part(name, value, works=True, detail=", ".join(told), seconds=time.monotonic() - began)


def _embedder(settings: "Settings", calls: bool) -> Part:
    import numpy as np

    from agentic_rag.knowledge_base import DamagedKnowledgeBase, KnowledgeBase, NoKnowledgeBase
    from agentic_rag.models.embedder import resolve_embedder

    name, value = "embedder", settings.embedding.model
    began = time.monotonic()
    try:
        embedder = resolve_embedder(settings.embedding.model)
        value = embedder.name
        with suppress(NoKnowledgeBase, DamagedKnowledgeBase):  # that is told elsewhere
            KnowledgeBase.open(settings.kb, settings=settings, create=False).embedder()
        if not calls:
            return Part(name, value, works=None, detail=_NO_CALL)
        vectors = np.asarray(embedder.embed_passages([_QUESTION]))
    except Exception as error:  # an engine may raise anything
        return Part(name, value, works=False, detail=_said(error), cure=_cure_of(error))
    if vectors.shape != (1, embedder.dimensions) or not (
        np.isfinite(vectors).all() and vectors.any()
    ):
        return Part(
            name,
            value,
            works=False,
            detail=f"it gave no usable vector (shape {vectors.shape})",
            cure="Set embedding.model to another one.",
        )
    return Part(
        name,
        value,
        works=True,
        detail=f"{embedder.dimensions} dimensions",
        seconds=time.monotonic() - began,
    )


def _chat_model(settings: "Settings", calls: bool) -> "tuple[ChatModel | None, Part]":
    from agentic_rag.models.chat import resolve_chat_model

    name = "chat model"
    try:
        chat = resolve_chat_model(settings)
    except AragError as error:
        value = settings.model or "none"
        return None, Part(name, value, works=False, detail=_said(error), cure=_cure_of(error))
    why = f"{chat.why} {chat.hint}".strip()
    if chat.connect is None:
        return chat, Part(name, chat.name, why, detail="there is nothing to try")
    if not calls:
        return chat, Part(name, chat.name, why, detail=_NO_CALL)
    began = time.monotonic()
    limit = min(LIMIT, settings.model_timeout)
    try:
        said = asyncio.run(_asked(chat, settings, limit))
    except AragError as error:
        return chat, Part(
            name,
            chat.name,
            why,
            works=False,
            detail=_said(error),
            cure=_cure_of(error),
            seconds=time.monotonic() - began,
        )
    return chat, Part(
        name, chat.name, why, works=True, detail=said, seconds=time.monotonic() - began
    )


async def _asked(chat: "ChatModel", settings: "Settings", limit: float) -> str:
    """One request of a few tokens, as the agent makes them; what came of it.

    Raises ModelCallFailed, ModelWithoutTools, and what loading a model file raises.
    """
    from agentic_rag.strategies.reply import ModelCallFailed, describe_failure

    assert chat.connect is not None
    try:
        async with asyncio.timeout(limit), chat.connect() as model:
            tokens = await _one_request(chat, model, settings, limit)
    except AragError:
        raise
    except Exception as error:  # every provider has errors of its own
        raise ModelCallFailed(describe_failure(error, limit, chat.unreachable).message) from error
    tools = ", and takes tools" if chat.tools else ", without tools"
    return f"it answered with {tokens} tokens{tools}"


async def _one_request(
    chat: "ChatModel", model: "Model", settings: "Settings", limit: float
) -> int:
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

    from agentic_rag.strategies.agent.requests import ModelTurn, Requests

    # The agent's requests carry tools, and a model that refuses them is better found out here.
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
        ModelSettings(max_tokens=_TOKENS, timeout=limit),
        [tool] if chat.tools else [],
        limit,
        chat.cost,
        settings.agent.streaming,
    )
    tokens = 0
    async with aclosing(requests.ask([ModelRequest.user_text_prompt(_QUESTION)], 0)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelTurn):
                tokens = piece.usage.output_tokens
    return tokens


def _strategy(settings: "Settings", chat: "ChatModel | None") -> Part:
    from agentic_rag.strategies.run import STRATEGIES

    name = "strategy"
    if settings.strategy:
        value, why = settings.strategy, "The setting `strategy` names it."
    elif chat is not None and chat.tools:
        value, why = "agent", "The chat model can call tools."
    else:
        value, why = "naive", "The chat model is not known to call tools."
    if value not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        return Part(
            name,
            value,
            why,
            works=False,
            detail=f"there is no strategy {value!r}",
            cure=f"Set `strategy` to one of: {known}; or leave it empty.",
        )
    if value == "agent" and chat is not None and not chat.tools:
        return Part(
            name,
            value,
            why,
            works=False,
            detail=f"the agent needs a model that can call tools, and {chat.name} cannot",
            cure="Set `strategy` to naive, or `model` to one that calls tools.",
        )
    return Part(name, value, why)


def _said(error: Exception) -> str:
    """An error's words; of our own errors without what to do."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.rpartition("; ")[0] or text if isinstance(error, AragError) else text


def _cure_of(error: Exception) -> str:
    """What to do, with which the message of each of our errors ends."""
    text = " ".join(str(error).split())
    if not isinstance(error, AragError) or "; " not in text:
        return "Correct it, and run `arag doctor` again."
    cure = text.rpartition("; ")[2]
    return cure[:1].upper() + cure[1:] if cure.split()[0].isalpha() else cure
