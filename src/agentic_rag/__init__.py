"""Answers with citations from your own documents.

    kb = KnowledgeBase.open("kb")
    kb.add(["docs/", "handbook.pdf"])
    answer = await ask(kb, "What is ...?")

Names are loaded when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic_rag.config import Settings, load_settings
    from agentic_rag.errors import AragError
    from agentic_rag.knowledge_base import Filter, KnowledgeBase
    from agentic_rag.strategies.answer import Answer
    from agentic_rag.strategies.run import ask, ask_sync, stream

__version__ = "0.1.0"

_HOME = {
    "Answer": "agentic_rag.strategies.answer",
    "AragError": "agentic_rag.errors",
    "Filter": "agentic_rag.knowledge_base",
    "KnowledgeBase": "agentic_rag.knowledge_base",
    "Settings": "agentic_rag.config",
    "ask": "agentic_rag.strategies.run",
    "ask_sync": "agentic_rag.strategies.run",
    "load_settings": "agentic_rag.config",
    "stream": "agentic_rag.strategies.run",
}

__all__ = [
    "Answer",
    "AragError",
    "Filter",
    "KnowledgeBase",
    "Settings",
    "ask",
    "ask_sync",
    "load_settings",
    "stream",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
