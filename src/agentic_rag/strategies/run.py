"""Asking: one question of one version of a knowledge base, by a named strategy.

answer = await ask(kb, "…")
async for event in stream(kb, "…"): ...
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypedDict, Unpack

from agentic_rag.errors import AragError
from agentic_rag.models.chat import ChatModel, given_model, resolve_chat_model, with_context
from agentic_rag.strategies.agent import agent, check_tools
from agentic_rag.strategies.agent import first_prompt as agent_prompt
from agentic_rag.strategies.events import (
    STOPPED,
    Event,
    Notice,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCalled,
    ToolReturned,
    TraceEvent,
    kept,
)
from agentic_rag.strategies.locating import located
from agentic_rag.strategies.naive import first_prompt as naive_prompt
from agentic_rag.strategies.naive import naive
from agentic_rag.strategies.pipeline import check_pipeline, pipeline
from agentic_rag.strategies.pipeline import first_prompt as pipeline_prompt
from agentic_rag.strategies.question import Question, Strategy, Turn
from agentic_rag.strategies.shown_prompt import ShownPrompt
from agentic_rag.strategies.workflow import check_workflow, workflow
from agentic_rag.strategies.workflow import first_prompt as workflow_prompt

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, KnowledgeBase
    from agentic_rag.strategies.answer import Answer

STRATEGIES: dict[str, Strategy] = {
    "agent": agent,
    "naive": naive,
    "pipeline": pipeline,
    "workflow": workflow,
}


class BadQuestion(AragError):
    """The question is empty, or the strategy is not one of those there are."""


class LoopIsRunning(AragError):
    """`ask_sync` was called inside an event loop."""


class NothingToSend(AragError):
    """A question is answered without a model, so there is no prompt to show."""


class AnswerFailed(AragError):
    """A question could not be brought to an answer; `trace` is what happened until then."""

    def __init__(self, message: str, trace: tuple[TraceEvent, ...] = ()) -> None:
        super().__init__(message)
        self.trace = trace


async def stream(
    kb: "KnowledgeBase",
    question: str,
    *,
    strategy: str | None = None,
    settings: "Settings | None" = None,
    model: "str | Model | ChatModel | None" = None,
    where: "Filter | None" = None,
    history: Sequence[Turn] = (),
) -> AsyncGenerator[Event, None]:
    """The events of answering `question`, as they happen.

    `strategy` and `model` override the settings; `model` may be a Pydantic AI model, or one that
    has been chosen already. `settings` default to the knowledge base's own. Where neither names a
    strategy, the agent answers if the model can call tools, else `naive`. `history` are the
    earlier turns of the conversation, oldest first. Raises `BadQuestion`, `ModelWithoutTools` or
    what choosing the model raises, before the first event; whatever fails later ends the stream
    with `run_failed`. Closing the iterator or cancelling its task ends the model's request; a task
    that is cancelled is first given what had come by then, and the ends of the steps that were cut
    short.
    """
    started = time.monotonic()
    settings = kb.settings if settings is None else settings
    _check_question(question, history)
    check_strategy(strategy or settings.strategy)
    chat = await asyncio.to_thread(_chat_model, settings, model)
    name, why = _chosen(strategy or settings.strategy, chat)
    if name == "agent":
        check_tools(chat)
    elif name == "workflow":
        await asyncio.to_thread(check_workflow, settings)
    elif name == "pipeline":
        check_pipeline(settings)

    events: list[Event] = []

    def stamped(event: Event) -> Event:
        event = event.model_copy(update={"seconds": round(time.monotonic() - started, 6)})
        events.append(event)
        return event

    yield stamped(RunStarted(question=question, strategy=name, model=chat.name, why=why))
    if chat.hint:
        yield stamped(Notice(level="info", code="model_hint", message=chat.hint))
    if name != "agent" and (unused := _for_the_agent(settings)):
        message = f"Only the strategy `agent` keeps {unused}; `{name}` does not."
        yield stamped(Notice(level="info", code="effort_not_sent", message=message))
    try:
        snapshot = await asyncio.to_thread(kb.snapshot)
        asked = Question(question.strip(), snapshot, settings, chat, where, tuple(history))
        async with aclosing(_closable(STRATEGIES[name](asked))) as steps:
            async for event in steps:
                if isinstance(event, RunFinished):
                    answer = event.answer
                    cited = await asyncio.to_thread(located, answer.citations, snapshot)
                    answer = answer.model_copy(update={"citations": cited})
                    yield stamped(RunFinished(answer=_completed(answer, events, started)))
                    return
                yield stamped(event)
    except asyncio.CancelledError:
        for event in _left_open(events, time.monotonic() - started):
            yield stamped(event)
        raise
    except AragError as error:
        yield stamped(RunFailed(error=str(error), code=type(error).__name__))
    except Exception as error:
        yield stamped(RunFailed(error=f"{type(error).__name__}: {error}", code="unexpected"))
        raise


class How(TypedDict, total=False):
    """What `stream` takes besides the knowledge base and the question."""

    strategy: str | None
    settings: "Settings | None"
    model: "str | Model | ChatModel | None"
    where: "Filter | None"
    history: Sequence[Turn]


async def ask(kb: "KnowledgeBase", question: str, **how: Unpack[How]) -> "Answer":
    """The answer to `question`; as `stream`, but a failure is raised as `AnswerFailed`."""
    seen: list[Event] = []
    events = stream(kb, question, **how)
    async with aclosing(events):
        async for event in events:
            seen.append(event)
            if isinstance(event, RunFinished):
                return event.answer
            if isinstance(event, RunFailed) and event.code != "unexpected":
                raise AnswerFailed(event.error, kept(seen))
    raise AnswerFailed(f"The strategy ended without an answer to {question!r}; report this.")


def ask_sync(kb: "KnowledgeBase", question: str, **how: Unpack[How]) -> "Answer":
    """As `ask`, for programs without an event loop. Raises `LoopIsRunning` where there is one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(ask(kb, question, **how))
    raise LoopIsRunning(
        "`ask_sync` cannot wait where an event loop is running, as in a notebook; "
        "write `await ask(...)` there."
    )


def shown_prompt(
    kb: "KnowledgeBase",
    question: str,
    *,
    strategy: str | None = None,
    settings: "Settings | None" = None,
    where: "Filter | None" = None,
) -> ShownPrompt:
    """What `stream` would send the model first, of the strategy that would answer; asks nothing.

    The agent's prompt is shown without a model at hand too, since it is the same for all. Raises
    what `stream` raises, `NothingToSend` where no model would be asked, and `ModelWithoutTools`.
    """
    settings = kb.settings if settings is None else settings
    _check_question(question, ())
    check_strategy(strategy or settings.strategy)
    chat = _chat_model(settings, None)
    name, _ = _chosen(strategy or settings.strategy, chat)
    if name == "agent":
        if chat.connect is not None or settings.model:
            check_tools(chat)
        return agent_prompt(kb, question, settings)
    asked = Question(question.strip(), kb.snapshot(), settings, chat, where)
    prompts = {"naive": naive_prompt, "pipeline": pipeline_prompt, "workflow": workflow_prompt}
    prompt = prompts[name](asked)
    if prompt is None:
        reason = "there is no model" if chat.connect is None else "the documents hold too little"
        raise NothingToSend(
            f"No model would be asked, because {reason}: the best passages would be the answer. "
            "`--strategy agent` shows the prompt of the agent."
        )
    return prompt


def _check_question(question: object, history: Sequence[object]) -> None:
    """Raise `BadQuestion` where these are not what `stream` takes."""
    if not isinstance(question, str):
        kind = type(question).__name__
        raise BadQuestion(f"The question is no text but {kind}; ask something in words.")
    if not question.strip():
        raise BadQuestion("The question is empty; ask something.")
    for turn in history:
        if not isinstance(turn, Turn):
            raise BadQuestion(
                f"`history` holds a {type(turn).__name__}; give a Turn(question, answer_text) for "
                "each earlier question."
            )


def check_strategy(strategy: str) -> None:
    """Raise `BadQuestion` where there is no strategy of that name; "" leaves the choice open."""
    if strategy and strategy not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise BadQuestion(f"There is no strategy {strategy!r}; use one of: {known}.")


def _chosen(strategy: str, chat: ChatModel) -> tuple[str, str]:
    """The strategy that answers, and why this model and this strategy do."""
    if strategy:
        return strategy, chat.why
    name = "agent" if chat.tools else "naive"
    if chat.connect is None:
        return name, chat.why
    can = "It can" if chat.tools else "It is not known to"
    return name, f"{chat.why} {can} call tools, so the strategy is `{name}`."


def _chat_model(settings: "Settings", model: "str | Model | ChatModel | None") -> ChatModel:
    if isinstance(model, ChatModel):
        return model
    if model is None:
        return resolve_chat_model(settings)
    if isinstance(model, str):
        return resolve_chat_model(settings.model_copy(update={"model": model}))
    return with_context(given_model(model), settings)


def _for_the_agent(settings: "Settings") -> str:
    """The settings that only the agent keeps, where they are not as they come."""
    fields = type(settings.agent).model_fields
    names = ("max_steps", "token_budget", "max_cost", "effort")
    changed = [n for n in names if getattr(settings.agent, n) != fields[n].default]
    return ", ".join(f"`agent.{name}`" for name in changed)


def _completed(answer: "Answer", events: list[Event], started: float) -> "Answer":
    trace = kept(events)
    return answer.model_copy(
        update={
            "trace": trace,
            "notices": tuple(event for event in trace if isinstance(event, Notice)),
            "seconds": round(time.monotonic() - started, 6),
        }
    )


def _left_open(events: Sequence[Event], now: float) -> Iterator[Event]:
    """The ends of the steps and calls that were cut short, the innermost first; `now` is in
    seconds since the question was asked."""
    finished = {event.step for event in events if isinstance(event, StepFinished)}
    returned = {event.call_id for event in events if isinstance(event, ToolReturned)}
    for event in reversed(events):
        if isinstance(event, ToolCalled) and event.call_id not in returned:
            yield ToolReturned(
                call_id=event.call_id,
                name=event.name,
                text="",
                duration=now - event.seconds,
                error=STOPPED,
            )
        elif isinstance(event, StepStarted) and event.step not in finished:
            yield StepFinished(
                step=event.step, name=event.name, duration=now - event.seconds, error=STOPPED
            )


async def _closable(events: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
    try:
        async for event in events:
            yield event
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
