"""Before the first step: how the model is asked, and the question in its conversation."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.strategies.agent.conversation import (
    Standalone,
    evidence_ids,
    stand_alone,
    user_message,
)
from agentic_rag.strategies.agent.effort import NAMES, effort_settings
from agentic_rag.strategies.agent.limits import longest_reply
from agentic_rag.strategies.agent.requests import LeftOut, Requests
from agentic_rag.strategies.agent.state import State
from agentic_rag.strategies.agent.turns import left_out
from agentic_rag.strategies.events import (
    Event,
    Notice,
    StepFinished,
    StepStarted,
    Usage,
    UsageReported,
)
from agentic_rag.strategies.reply import Retrying
from agentic_rag.strategies.support import Passage

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.knowledge_base import Chunk


def requests_to(model: "Model", state: State) -> Requests:
    """How `model` is asked throughout the run."""
    settings, chat = state.question.settings, state.question.chat
    profile = model.profile
    chosen: dict[str, Any] = {
        "max_tokens": longest_reply(settings, chat, state.limits.budget),
        "timeout": settings.model_timeout,
        "max_retries": 0,  # tried again in reply.py, where it is told
    }
    if settings.agent.calls_per_turn == 1:
        chosen["parallel_tool_calls"] = False
    thinking = effort_settings(model, settings.agent.effort)
    chosen |= thinking
    takes_temperature = not (
        thinking
        or profile.get("openai_supports_reasoning", False)
        or profile.get("anthropic_disallows_sampling_settings", False)
    )
    if settings.temperature is not None:
        chosen["temperature"] = settings.temperature
    elif takes_temperature:
        chosen["temperature"] = 0.0  # A-RAG
    if profile.get("supports_cache", False):
        chosen["cache"] = True  # each step sends the whole history again
    return Requests(
        model,
        cast("ModelSettings", chosen),
        state.history.tools,
        settings.model_timeout,
        chat.cost,
        settings.agent.streaming,
        chat.cures,
    )


async def open_conversation(state: State, requests: Requests) -> AsyncGenerator[Event, None]:
    """Put the question into the history; a follow-up is made self-contained first."""
    question = state.question
    if question.settings.agent.effort and not any(name in requests.settings for name in NAMES):
        message = (
            f"The model {question.chat.name} is not known to reason, so `agent.effort` is not sent."
        )
        yield Notice(level="warning", code="effort_not_sent", message=message)
    turns = question.history
    evidence: list[Chunk] = []
    if turns:
        found = await asyncio.to_thread(
            question.snapshot.read_chunk, evidence_ids(turns), where=question.where
        )
        evidence = list(found.chunks)
        state.earlier = [
            Passage(c.chunk_id, c.text, c.title, c.section, c.uri, c.page, c.source_id)
            for c in evidence
        ]
        async with aclosing(_rewrite(state, requests)) as events:
            async for event in events:
                yield event
    tools = state.question.settings.agent.tools
    state.history.add_user(user_message(state.asked, turns, evidence, state.language, tools))


async def _rewrite(state: State, requests: Requests) -> AsyncGenerator[Event, None]:
    question = state.question
    state.step += 1
    step, started = str(state.step), time.monotonic()
    yield StepStarted(
        step=step, name="rewrite", input={"model": question.chat.name, "question": question.text}
    )
    without = replace(requests, tools=[])
    pieces = stand_alone(question.text, question.history, state.language, without)
    made: Standalone | None = None
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Standalone):
                made = piece
            elif isinstance(piece, Retrying):
                yield Notice(level="info", code="model_retried", message=piece.reason)
            elif isinstance(piece, LeftOut):
                for event in left_out(state, piece):
                    yield event
    requests.learn_from(without)
    assert made is not None  # it is the last of the pieces
    failed = Usage(model_requests=made.requests, cost=question.chat.cost)
    used = made.turn.usage if made.turn else failed
    state.asked = made.text
    state.usage += used
    if made.problem:
        message = f"The question is asked as it stands: {made.problem}"
        yield Notice(level="info", code="not_rewritten", message=message)
    yield StepFinished(
        step=step,
        name="rewrite",
        output={"question": made.text},
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        duration=time.monotonic() - started,
        error=made.problem or None,
    )
    yield UsageReported(usage=state.usage)
