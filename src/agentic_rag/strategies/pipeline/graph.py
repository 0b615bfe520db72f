"""The stages in their order; which of them do anything, the settings say.

expand -> retrieve (two routes) -> rerank each -> fuse -> compress -> answer -> refine
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from agentic_rag.strategies.events import Event
from agentic_rag.strategies.pipeline.expanding import expand, first_expansion_prompt
from agentic_rag.strategies.pipeline.generating import first_answer_prompt, generate
from agentic_rag.strategies.pipeline.parts import Run, opened
from agentic_rag.strategies.pipeline.ranking import rank
from agentic_rag.strategies.pipeline.recalling import recall_routes, take_in_order
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.shown_prompt import ShownPrompt


async def pipeline(question: Question) -> AsyncIterator[Event]:
    """Answer `question`; the last event is `run_finished`."""
    async with aclosing(_stages(opened(question))) as events:
        async for event in events:
            yield event


async def _stages(run: Run) -> AsyncGenerator[Event, None]:
    async for event in expand(run):
        yield event
    async for event in recall_routes(run):
        yield event
    async for event in rank(run):
        yield event
    async for event in generate(run):
        yield event


def first_prompt(question: Question) -> ShownPrompt | None:
    """What the model would be sent first: to expand the question where that is set, else for the
    answer, by the order of the routes without a reranker. None where no model is asked."""
    run = opened(question)
    if question.chat.connect is None:
        return None
    prompt = first_expansion_prompt(run)
    if prompt is None:
        run.sparse = run.dense = [question.text]
        take_in_order(run)
        prompt = first_answer_prompt(run)
    if prompt is None:
        return None
    return ShownPrompt("pipeline", system=prompt.instructions, user=prompt.user)
