"""The graph: four stages in a fixed order, and one decision.

    rewrite -> retrieve -> evaluate -> (pass) answer
                                    -> (fail) web search -> answer from both

With `workflow.rounds` above 1, a failed evaluation sends its suggestions back to retrieval before
the web is asked: cheap first, and an early end when it is good.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from agentic_rag.strategies.events import Event
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.shown_prompt import ShownPrompt
from agentic_rag.strategies.workflow.answer_stage import answer
from agentic_rag.strategies.workflow.evaluating import evaluate
from agentic_rag.strategies.workflow.parts import Run, opened
from agentic_rag.strategies.workflow.retrieving import retrieve
from agentic_rag.strategies.workflow.rewriting import rewrite, rewrite_prompt
from agentic_rag.strategies.workflow.searching_web import search_web


async def workflow(question: Question) -> AsyncIterator[Event]:
    """Answer `question`; the last event is `run_finished`."""
    run = opened(question)
    async with aclosing(_stages(run)) as events:
        async for event in events:
            yield event


async def _stages(run: Run) -> AsyncGenerator[Event, None]:
    async for event in rewrite(run):
        yield event
    for round_number in range(1, run.settings.rounds + 1):
        if round_number > 1:
            run.queries = run.suggested_queries()
            if not run.queries:
                break
        async for event in retrieve(run):
            yield event
        async for event in evaluate(run):
            yield event
        if run.passed:
            break
    if not run.passed:
        async for event in search_web(run):
            yield event
    async for event in answer(run):
        yield event


def first_prompt(question: Question) -> ShownPrompt | None:
    """What the model would be sent first; None where none is asked."""
    if question.chat.connect is None:
        return None
    prompt = rewrite_prompt(opened(question))
    return ShownPrompt("workflow", system=prompt.instructions, user=prompt.user)
