"""The passages that stand in for an answer, or go with one that cites none: a search of ours, told
as a step like any other."""

import asyncio
import time
from collections.abc import AsyncGenerator

from agentic_rag.strategies.agent.found import Evidence
from agentic_rag.strategies.agent.state import State, hit_record
from agentic_rag.strategies.events import Event, StepFinished, StepStarted


async def find_evidence(state: State) -> AsyncGenerator[Event | Evidence, None]:
    """The step's events, and last the best of what was shown; where that is nothing, what one
    search finds."""
    state.step += 1
    step, started = str(state.step), time.monotonic()
    most = state.question.settings.answer.passages
    wanted = {"query": state.asked, "mode": "hybrid", "top_k": most}
    yield StepStarted(step=step, name="search", input=wanted)
    hits = await asyncio.to_thread(state.tools.best, state.asked)
    yield StepFinished(
        step=step,
        name="search",
        output={"hits": len(hits)},
        hits=tuple(hit_record(hit) for hit in hits),
        duration=time.monotonic() - started,
    )
    yield Evidence(hits)
