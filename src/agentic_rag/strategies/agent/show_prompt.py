"""Exactly what is sent to the model for a question: `arag ask --show-prompt`."""

import json
from typing import TYPE_CHECKING

from agentic_rag.config import Settings
from agentic_rag.strategies.agent.conversation import evidence_ids, user_message
from agentic_rag.strategies.agent.history import as_json
from agentic_rag.strategies.agent.prompts import Language, system_prompt
from agentic_rag.strategies.agent.tools import definitions
from agentic_rag.strategies.shown_prompt import ShownPrompt
from agentic_rag.text.language import is_chinese

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import KnowledgeBase
    from agentic_rag.strategies.question import Turn


def show_prompt(
    kb: "KnowledgeBase",
    question: str,
    settings: Settings | None = None,
    history: "tuple[Turn, ...]" = (),
) -> str:
    """The system prompt, the tools as JSON and the user's message, as the first step sends them.

    In a conversation the question is made self-contained by the model first; here it stands as
    it was asked.
    """
    return first_prompt(kb, question, settings, history).text


def first_prompt(
    kb: "KnowledgeBase",
    question: str,
    settings: Settings | None = None,
    history: "tuple[Turn, ...]" = (),
) -> ShownPrompt:
    """The same in its parts."""
    settings = settings or kb.settings
    question = question.strip()
    language: Language = "zh" if is_chinese(question) else "en"
    evidence = kb.snapshot().read_chunk(evidence_ids(history)).chunks if history else ()
    return ShownPrompt(
        strategy="agent",
        system=system_prompt(language, settings.agent.tools),
        tools=tuple(
            json.loads(as_json(definitions(language, settings.search.top_k, settings.agent.tools)))
        ),
        user=user_message(question, history, list(evidence), language, settings.agent.tools),
    )
