"""The third stage: one structured call scores what was retrieved; the threshold decides here."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from agentic_rag.strategies.events import Event, Notice, StepStarted, Usage, UsageReported
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.structured import Structured
from agentic_rag.strategies.workflow.parts import Run, finished, object_from
from agentic_rag.strategies.workflow.prompts import filled, read
from agentic_rag.strategies.workflow.quality import DIMENSIONS, MOST, Quality
from agentic_rag.text.tokens import count_tokens


async def evaluate(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.quality` and `run.passed`."""
    step, started = run.next_step(), time.monotonic()
    chat = run.question.chat
    if not run.passages or chat.connect is None or chat.demonstration:
        run.passed = bool(run.passages) and run.related
        yield StepStarted(step=step, name="evaluate", input={})
        reason = (
            "Nothing was found."
            if not run.passages
            else "There is no model that can judge; what the search calls related counts."
        )
        yield finished(step, "evaluate", started, {"passed": run.passed, "reason": reason})
        return
    yield StepStarted(step=step, name="evaluate", input={"model": chat.name})
    block = passages_block(run.passages)
    user = filled("evaluate.question", run.language, passages=block, question=run.main_query)
    prompt = Prompt(instructions=read("evaluate", run.language), user=user)
    judged: Structured[Quality] | None = None
    asked = object_from(run, chat, prompt, Quality, "evaluate", tries=2)
    async with aclosing(asked) as pieces:
        async for piece in pieces:
            if isinstance(piece, Structured):
                judged = piece
            else:
                yield piece
    assert judged is not None  # it is the last of the pieces
    run.usage += Usage(retrieved_tokens=count_tokens(block))
    run.quality = judged.value
    run.passed = judged.value is not None and judged.value.total >= run.settings.threshold
    if judged.value is None:
        message = f"The passages are unscored and count as falling short: {judged.problem}"
        yield Notice(level="warning", code="unscored", message=message)
    report = {"passed": run.passed, **_report(run)}
    yield finished(step, "evaluate", started, report, usage=judged.usage, error=judged.problem)
    yield UsageReported(usage=run.usage)


def _report(run: Run) -> dict[str, Any]:
    quality = run.quality
    if quality is None:
        return {}
    return {
        "score": quality.total,
        "of": MOST,
        "threshold": run.settings.threshold,
        "dimensions": {name: getattr(quality, name).model_dump() for name in DIMENSIONS},
        "suggestions": list(quality.suggestions),
    }
