"""The agent's loop: the model searches, reads and answers by itself (ReAct; A-RAG).

One turn of the model is one step. It ends in a tool call, which is run and answered, or in the
answer. At a limit (limits.py) the answer is asked for (forcing.py).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.draft import Draft
from agentic_rag.strategies.agent.evidence import find_evidence
from agentic_rag.strategies.agent.finishing import model_answer, passages_answer
from agentic_rag.strategies.agent.forcing import (
    force_answer,
    model_failed,
    too_small,
    without_answer,
)
from agentic_rag.strategies.agent.limits import Limit
from agentic_rag.strategies.agent.opening import open_conversation, requests_to
from agentic_rag.strategies.agent.requests import ModelWithoutTools
from agentic_rag.strategies.agent.state import State, begun
from agentic_rag.strategies.agent.turns import put_aside, run_calls, take_turn
from agentic_rag.strategies.events import (
    Event,
    Notice,
    RunFinished,
    StepFinished,
    StepStarted,
    Thought,
    UsageReported,
)
from agentic_rag.strategies.naive import naive
from agentic_rag.strategies.searchable import nothing_to_search

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.models.chat import ChatModel
    from agentic_rag.models.connect import Connect
    from agentic_rag.strategies.question import Question

_EMPTY_IN_A_ROW = 2  # empty replies that are tolerated before the answer is asked for


async def agent(question: "Question") -> AsyncIterator[Event]:
    """Answer `question`; the last event is `run_finished`. Raises `ModelWithoutTools`."""
    chat = question.chat
    connect = check_tools(chat)
    state = begun(question)
    nothing = await asyncio.to_thread(nothing_to_search, question)
    if nothing is not None:  # known before a request is paid for
        for event in passages_answer(state.ending(None), nothing, (), "insufficient"):
            yield event
        return
    async with connect() as model, aclosing(_steps(state, model)) as events:
        async for event in events:
            yield event
    if state.gave_up:
        async with aclosing(_without_tools(state)) as events:
            async for event in events:
                yield event


def check_tools(chat: "ChatModel") -> "Connect":
    """What connects `chat`. Raises `ModelWithoutTools` where it is none, or known not to do."""
    if chat.connect is None or chat.demonstration:
        who = "There is no model" if chat.connect is None else f"The model {chat.name} is too small"
        raise ModelWithoutTools(
            f"{who}, and the strategy `agent` needs one that can call tools; set `model` to one, "
            "or use `--strategy naive`, which works without."
        )
    return chat.connect


async def _steps(state: State, model: "Model") -> AsyncGenerator[Event, None]:
    requests = requests_to(model, state)
    async with aclosing(open_conversation(state, requests)) as events:
        async for event in events:
            yield event
    limit: Limit | None = "steps"
    empty = 0
    reminded = False
    for _ in range(state.limits.steps):
        early = state.limits.reached(state.history.tokens, state.next_costs, state.usage.cost)
        if early is not None:
            limit = early
            if state.never_asked and not state.earlier:
                yield too_small(state, early)
            elif early == "tokens" and state.limits.by_context:
                yield _context_is_full(state)
            break
        draft = Draft(state.passages() if state.tools.tracker.results or state.earlier else [])
        async with aclosing(take_turn(state, requests, draft)) as events:
            async for event in events:
                yield event
        turn = state.last
        if turn is None:
            if state.failure is not None and state.failure.too_long and state.passages():
                limit = "tokens"
                message = f"{state.failure} The answer is asked for with half of it."
                yield Notice(level="warning", code="history_too_long", message=message)
                break
            async with aclosing(model_failed(state, draft)) as events:
                async for event in events:
                    yield event
            return
        if turn.calls:
            empty = 0
            async with aclosing(run_calls(state, turn, draft)) as events:
                async for event in events:
                    yield event
        elif not turn.text:
            empty += 1
            if empty > _EMPTY_IN_A_ROW:
                limit = None
                break
            state.history.add_turn(turn.response)
            state.remind("cut_off_thinking" if turn.unclosed else "empty_reply")
            message = f"{without_answer(turn)[1].rstrip('.')}; it is asked again."
            yield Notice(level="info", code="asked_again", message=message)
        elif state.tools.tracker.results or state.cites_earlier(turn.text):
            ended = model_answer(state.ending(None), draft, turn, partial(find_evidence, state))
            async with aclosing(ended) as events:
                async for event in events:
                    yield event
            return
        else:  # an answer from memory
            for event in put_aside(draft, turn, state.step):
                yield event
            if reminded:
                state.gave_up = True
                return
            reminded = True
            state.history.add_turn(turn.response)
            state.remind("not_searched")
    async with aclosing(force_answer(state, requests, limit)) as events:
        async for event in events:
            yield event


def _context_is_full(state: State) -> Notice:
    chat = state.question.chat
    message = (
        f"The search ends because the model's context, {chat.context_tokens:,} tokens, is full. "
        f"{chat.more_context}"
    )
    return Notice(level="warning", code="context_full", message=message.strip())


async def _without_tools(state: State) -> AsyncGenerator[Event, None]:
    """The model got nothing by tools: the strategy that needs none goes on."""
    failed = state.tools.failed
    why = (
        f"No call of the model worked (the last one: {failed.rstrip('.')})"
        if failed
        else "The model answered twice without searching"
    )
    message = (
        f"{why}, so what it wrote does not count; "
        "the strategy `naive`, which works without tools, answers instead."
    )
    code = "no_tool_worked" if failed else "no_tool_called"
    yield Notice(level="warning", code=code, message=message)
    spent = state.usage
    async with aclosing(naive(state.question)) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, StepStarted | StepFinished | Thought):
                number = f"{state.step}.{event.step}"
                yield event.model_copy(update={"step": number})
            elif isinstance(event, UsageReported):
                yield event.model_copy(update={"usage": event.usage + spent})
            elif isinstance(event, RunFinished):
                usage = event.answer.usage + spent
                yield RunFinished(answer=event.answer.model_copy(update={"usage": usage}))
            else:
                yield event
