"""`ask`: a question answered by a strategy, with its sources."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from agentic_rag.mcp_server.arguments import given, text
from agentic_rag.mcp_server.serving import Reply, Serving, language_of
from agentic_rag.mcp_server.wording import Language, note
from agentic_rag.server.questions import TOOK_TOO_LONG
from agentic_rag.strategies.agent.display import title_line
from agentic_rag.strategies.events import RunFailed, RunFinished
from agentic_rag.strategies.step_line import step_line

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer, Citation

Tell = Callable[[float, str], Awaitable[None]]  # how many steps began, and what the last one is


async def ask(serving: Serving, arguments: object, language: Language, tell: Tell) -> Reply:
    """Answer a question. Raises AragError, and `Unusable` for what are no arguments of it."""
    values = given(arguments, ("question", "strategy"))
    question = text(values, "question")
    language = language_of(question, language)
    steps = 0
    events = serving.ask(question, text(values, "strategy").lower() or None)
    async with aclosing(events):
        async for event in events:
            if said := step_line(event):
                steps += 1
                await tell(steps, said)
            if isinstance(event, RunFinished):
                return Reply(shown(event.answer, language))
            if isinstance(event, RunFailed):
                return Reply(_failure(event, serving, language), failed=True)
    raise RuntimeError("The strategy ended without an answer.")


def _failure(event: RunFailed, serving: Serving, language: Language) -> str:
    if event.code == TOOK_TOO_LONG:
        seconds = serving.settings.server.question_timeout
        return note("time_out", language, seconds=f"{seconds:g}")
    return event.error


def shown(answer: "Answer", language: Language) -> str:
    """An answer as text: what was wrong with it if anything, its words, its sources."""
    parts = [answer.text.strip()]
    if answer.status != "answered":
        parts.insert(0, note(f"status_{answer.status}", language))
    if answer.citations:
        sources = [_source(citation) for citation in answer.citations]
        parts.append("\n".join([note("sources", language), *sources]))
    return "\n\n".join(part for part in parts if part)


def _source(citation: "Citation") -> str:
    line = title_line(citation.title, citation.section, citation.page)
    uri = " ".join(citation.uri.split())
    of = f"[{citation.number}] {citation.chunk_id}".rstrip()
    return " ".join(part for part in (of, line, f"({uri})" if uri else "") if part)
