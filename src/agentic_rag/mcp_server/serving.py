"""What the tools work with, and what they give back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.mcp_server.wording import Language
from agentic_rag.text.language import is_chinese, language_code

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase

# Entered for the length of a question; limits how many are answered at a time.
Gate = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served. `knowledge_base` opens it, at the first call, and makes it where its
    argument says so; it blocks. `local`: the client runs on this machine as the same user, so it
    may name files. `model` overrides the settings."""

    settings: "Settings"
    knowledge_base: "Callable[[bool], KnowledgeBase]"
    gate: Gate
    local: bool = False
    model: "str | Model | None" = None


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


def so_many_at_a_time(count: int) -> Gate:
    """A gate that lets `count` in; others wait."""
    places = asyncio.Semaphore(count)

    @asynccontextmanager
    async def entered() -> AsyncIterator[None]:
        async with places:
            yield

    return entered


def language_of(text: str, otherwise: Language) -> Language:
    """The language to answer a call in: that of its words, where they show one."""
    if is_chinese(text):
        return "zh"
    has_words = language_code(text) == "en" and any(one.isalpha() for one in text)
    return "en" if has_words else otherwise
