"""The conditional workflow as an agent of Google's Agent Development Kit (google-adk).

`root_agent` answers over the knowledge base of the settings, which are read with the first
question: `adk run` and `adk web` find it in a folder whose agent.py imports it. `workflow_agent`
makes one over a given knowledge base and model. No key of Google's is needed.

A question's events: one that empties the state, one for each stage with what it came to as
`state_delta`, the text as partial events where the runner streams, and last the whole answer with
its sources. An error is one event with a sentence as its text and its name as `error_code`.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from agentic_rag.errors import AragError
from agentic_rag.integrations.adk_text import message_of, withdrawn
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    RunFailed,
    RunFinished,
    StepFinished,
)
from agentic_rag.strategies.question import Turn


class AdkMissing(AragError, ImportError):
    """The package google-adk is not installed."""


try:
    from google.adk.agents import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.agents.run_config import StreamingMode
    from google.adk.events import Event, EventActions
    from google.genai import types
except ImportError as error:
    raise AdkMissing(
        f"The ADK agent needs google-adk, which cannot be imported ({error}); run "
        "`pip install 'agentic-rag[adk]'`."
    ) from None

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase

# The keys of the system that the workflow follows.
STATE_KEYS = (
    "rewritten_query",
    "retrieval_results",
    "quality_evaluation",
    "quality_score",
    "quality_passed",
    "web_search_results",
    "final_answer",
)
_OPENING = threading.Lock()


class WorkflowAgent(BaseAgent):
    """An ADK agent that answers the user's message by the strategy `workflow`.

    Earlier turns of the session are the conversation that the question belongs to.
    """

    _kb: "KnowledgeBase | str | Path | None" = PrivateAttr()
    _model: "str | Model | None" = PrivateAttr()
    _settings: "Settings | None" = PrivateAttr()

    def __init__(
        self,
        kb: "KnowledgeBase | str | Path | None",
        model: "str | Model | None",
        settings: "Settings | None",
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._kb, self._model, self._settings = kb, model, settings

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield self._event(ctx, state=dict.fromkeys(STATE_KEYS))
        try:
            async with aclosing(self._answer(ctx)) as events:
                async for event in events:
                    yield event
        except AragError as error:
            yield self._failed(ctx, str(error), type(error).__name__)

    async def _answer(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        from agentic_rag.strategies.run import stream

        question = _text(ctx.user_content)
        kb = await asyncio.to_thread(self._opened)
        streams = ctx.run_config is not None and ctx.run_config.streaming_mode == StreamingMode.SSE
        sent = ""
        events = stream(
            kb,
            question,
            strategy="workflow",
            settings=self._settings,
            model=self._model,
            history=_history(ctx),
        )
        async with aclosing(events):
            async for event in events:
                match event:
                    case StepFinished() if state := _found(event):
                        yield self._event(ctx, state=state, metadata=_spent(event))
                    case AnswerDelta(text=text) if streams and text:
                        sent += text
                        yield self._event(ctx, text, partial=True)
                    case AnswerReset() if sent:
                        sent = ""
                        yield self._event(ctx, withdrawn(question), partial=True)
                    case RunFinished(answer=answer):
                        whole = message_of(answer)
                        rest = whole.removeprefix(answer.text)
                        if streams and rest:  # the pieces joined are the whole
                            yield self._event(ctx, rest, partial=True)
                        yield self._event(
                            ctx,
                            whole,
                            state={"final_answer": whole},
                            metadata={"answer": _kept(answer)},
                        )
                    case RunFailed(code=code, error=error) if code != "unexpected":
                        yield self._failed(ctx, error, code)

    def _opened(self) -> "KnowledgeBase":
        """The knowledge base, opened with the first question; one that is not there yet is looked
        for again with the next."""
        from agentic_rag.config import load_settings
        from agentic_rag.knowledge_base import KnowledgeBase

        with _OPENING:
            if not isinstance(self._kb, KnowledgeBase):
                settings = self._settings
                if settings is None:
                    settings = load_settings(kb=self._kb)
                path = settings.kb if self._kb is None else self._kb
                self._kb = KnowledgeBase.open(path, settings=settings, create=False)
            return self._kb

    def _failed(self, ctx: InvocationContext, message: str, code: str) -> Event:
        return self._event(ctx, message, error_code=code)

    def _event(
        self,
        ctx: InvocationContext,
        text: str = "",
        *,
        state: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        partial: bool = False,
        error_code: str | None = None,
    ) -> Event:
        content = types.Content(role="model", parts=[types.Part(text=text)]) if text else None
        return Event(
            invocation_id=ctx.invocation_id,
            author=self.name,
            branch=ctx.branch,
            content=content,
            partial=partial or None,
            error_code=error_code,
            custom_metadata=metadata,
            actions=EventActions(state_delta=state or {}),
        )


def workflow_agent(
    *,
    kb: "KnowledgeBase | str | Path | None" = None,
    model: "str | Model | None" = None,
    settings: "Settings | None" = None,
    name: str = "agentic_rag",
    description: str = "Answers questions from the indexed documents, with sources; searches the "
    "web where they fall short.",
) -> WorkflowAgent:
    """An ADK agent over the knowledge base `kb`: one that is open, its folder, or that of the
    settings. `model` overrides the settings and may be a Pydantic AI model. `settings` default to
    arag.toml and the ARAG_* environment, read with the first question. `name` is the agent's in
    ADK, a Python identifier. Nothing is opened before a question is asked, and what fails then is
    told as an event.
    """
    return WorkflowAgent(kb, model, settings, name=name, description=description)


def _found(event: StepFinished) -> dict[str, Any]:
    """What a stage adds to the session's state."""
    output = dict(event.output)
    match event.name:
        case "rewrite":
            return {"rewritten_query": output.get("query", "")}
        case "retrieve" | "rerank" if not event.error:
            return {"retrieval_results": [hit.model_dump(mode="json") for hit in event.hits]}
        case "evaluate":
            problem = {"problem": event.error} if event.error else {}
            return {
                "quality_evaluation": {**output, **problem},
                "quality_score": output.get("score"),
                "quality_passed": bool(output.get("passed")),
            }
        case "web_search":
            shown = [
                {"title": hit.title, "uri": hit.uri, "snippet": hit.snippet} for hit in event.hits
            ]
            return {"web_search_results": shown}
    return {}


def _spent(event: StepFinished) -> dict[str, Any]:
    return {
        "stage": event.name,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "seconds": round(event.duration, 3),
        **({"error": event.error} if event.error else {}),
    }


def _kept(answer: Answer) -> dict[str, Any]:
    """The answer as JSON, but for the trace: the stages' own events hold that."""
    return answer.model_dump(mode="json", exclude={"trace"})


def _history(ctx: InvocationContext) -> tuple[Turn, ...]:
    """The earlier questions of the session that were answered, oldest first; ADK keeps the events
    of each under an invocation id. What the session was rewound over does not count."""
    turns: dict[str, Turn] = {}
    for event in ctx.session.events:
        if undone := event.actions.rewind_before_invocation_id:
            later = list(turns)
            for one in later[later.index(undone) :] if undone in turns else ():
                del turns[one]
        elif event.invocation_id == ctx.invocation_id or event.error_code:
            continue
        elif event.author == "user" and (asked := _text(event.content)):
            turns[event.invocation_id] = Turn(asked, "")
        elif (known := turns.get(event.invocation_id)) and (said := _text(event.content)):
            turns[event.invocation_id] = _answered(known.question, event, said)
    return tuple(turn for turn in turns.values() if turn.answer_text)


def _answered(question: str, event: Event, said: str) -> Turn:
    answer = (event.custom_metadata or {}).get("answer")
    if not isinstance(answer, dict):  # another agent's
        return Turn(question, said)
    ids = (cited.get("chunk_id") for cited in answer.get("citations", ()))
    return Turn(question, answer.get("text", said), tuple(one for one in ids if one))


def _text(content: Any) -> str:
    """The words of a message; pictures and files are no question."""
    return "".join(_texts(content)).strip()


def _texts(content: Any) -> Iterator[str]:
    for part in (content.parts if content else None) or ():
        if part.text and not part.thought:
            yield part.text


root_agent = workflow_agent()
