"""A question on its way: everything a strategy may use to answer it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.models.chat import ChatModel
from agentic_rag.strategies.events import Event

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, Snapshot


@dataclass(frozen=True, slots=True)
class Question:
    """One question, the version of the knowledge base it is asked of, and the model in force."""

    text: str
    snapshot: "Snapshot"
    settings: "Settings"
    chat: ChatModel
    where: "Filter | None" = None


# A strategy yields events and ends with `run_finished`. Times, the trace and the notices of the
# answer are filled in by the runner.
Strategy = Callable[[Question], AsyncIterator[Event]]
