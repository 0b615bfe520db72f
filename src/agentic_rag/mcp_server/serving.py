"""What the tools work with, and what they give back."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.mcp_server.wording import Language
from agentic_rag.strategies.events import Event
from agentic_rag.text.language import is_chinese, language_code

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.server.state import ServerState

# Asks a question, by a strategy or the one of the settings: the events up to `run_finished` or
# `run_failed`, once there is a place for it. Raises AragError before the first one.
Ask = Callable[[str, str | None], AsyncGenerator[Event, None]]


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served. `knowledge_base` opens it, at the first call, and makes it where its
    argument says so; it blocks. `local`: the client runs on this machine as the same user, so it
    may name files."""

    settings: "Settings"
    knowledge_base: "Callable[[bool], KnowledgeBase]"
    ask: Ask
    local: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool gives back; `failed` where it could not do what was asked."""

    text: str
    failed: bool = False


def opened_when_needed(settings: "Settings") -> "Callable[[bool], KnowledgeBase]":
    """Opens the knowledge base of the settings at the first call, and once; where there is none
    yet, each call looks again."""
    lock = threading.Lock()
    known: list[KnowledgeBase] = []

    def opened(create: bool) -> "KnowledgeBase":
        from agentic_rag.knowledge_base import KnowledgeBase

        with lock:
            if not known:
                known.append(KnowledgeBase.open(settings.kb, settings=settings, create=create))
            return known[0]

    return opened


def asking(
    settings: "Settings",
    knowledge_base: "Callable[[bool], KnowledgeBase]",
    model: "str | Model | None" = None,
) -> Ask:
    """Asks as `arag serve` does, with its places, times and traces, but for itself alone."""
    states: list[ServerState] = []

    async def ask(question: str, strategy: str | None) -> AsyncGenerator[Event, None]:
        from agentic_rag.server.questions import Asked, events_of
        from agentic_rag.server.state import new_state

        kb = await asyncio.to_thread(knowledge_base, False)
        if not states:
            states.append(new_state(settings, kb, model))
        async with aclosing(events_of(states[0], Asked(question, strategy))) as events:
            async for event in events:
                yield event

    return ask


def language_of(text: str, otherwise: Language) -> Language:
    """The language to answer a call in: that of its words, where they show one."""
    if is_chinese(text):
        return "zh"
    has_words = language_code(text) == "en" and any(one.isalpha() for one in text)
    return "en" if has_words else otherwise
