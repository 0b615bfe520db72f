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
class Turn:
    """An earlier question of the same conversation, its answer, and the ids of the chunks that
    the answer rests on."""

    question: str
    answer_text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question, the version of the knowledge base it is asked of, the model in force, and
    the turns of the conversation before it, oldest first."""

    text: str
    snapshot: "Snapshot"
    settings: "Settings"
    chat: ChatModel
    where: "Filter | None" = None
    history: tuple[Turn, ...] = ()


# A strategy yields events and ends with `run_finished`. Times, the trace and the notices of the
# answer are filled in by the runner.
Strategy = Callable[[Question], AsyncIterator[Event]]
