"""Query expansion: keywords by the model, and HyDE, a hypothetical answer (arXiv 2212.10496).

Both help questions that are vague; on well-written ones EasyRAG measured a loss, so both are off by
default.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agentic_rag.strategies.events import Event, Notice, StepStarted, UsageReported
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.pipeline.parts import Run, finished, text_from
from agentic_rag.strategies.pipeline.prompts import filled, read
from agentic_rag.strategies.reply import Prompt, Reply
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.language import is_chinese
from agentic_rag.text.tokens import prefix_of_tokens

_LONGEST = 400  # o200k tokens of what is searched with
_TEXT_TOKENS = 500  # of the chunk that HyDE is shown


async def expand(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.sparse` and `run.dense`, the queries of each route, the main one first."""
    text = run.question.text
    run.sparse, run.dense = [text], [text]
    wanted = run.settings.expansion
    if wanted == "none":
        return
    if not _can_expand(run):
        message = "There is no model to expand the question: it is searched for as it stands."
        yield Notice(level="info", code="not_expanded", message=message)
        return
    if wanted in ("keywords", "both"):
        async for event in _keywords(run):
            yield event
    if wanted == "both" and run.unreachable:  # one that does not answer is not asked for more
        yield _without("hyde", run.unreachable)
    elif wanted in ("hyde", "both"):
        async for event in _hyde(run):
            yield event


def first_expansion_prompt(run: Run) -> Prompt | None:
    """The first request of `expand`; None where it makes none. Blocks."""
    wanted = run.settings.expansion
    if wanted == "none" or not _can_expand(run):
        return None
    return _hyde_prompt(run) if wanted == "hyde" else _keywords_prompt(run)


def _can_expand(run: Run) -> bool:
    chat = run.question.chat
    in_chinese = is_chinese(run.question.text)
    return chat.connect is not None and not (chat.demonstration and in_chinese)


def _keywords_prompt(run: Run) -> Prompt:
    return Prompt(read("keywords", run.language), _question(run, "question"))


def _hyde_prompt(run: Run) -> Prompt:
    user = _question(run, "question")
    if run.settings.hyde_with_text:
        block = passages_block(_best_by_words(run))
        user = filled("hyde.with_text", run.language, question=run.question.text, passages=block)
    return Prompt(read("hyde", run.language), user)


async def _keywords(run: Run) -> AsyncGenerator[Event, None]:
    async for said in _said(run, "keywords", _keywords_prompt(run)):
        if isinstance(said, str):
            run.sparse.append(said)
        else:
            yield said


async def _hyde(run: Run) -> AsyncGenerator[Event, None]:
    prompt = await asyncio.to_thread(_hyde_prompt, run)
    async for said in _said(run, "hyde", prompt):
        if not isinstance(said, str):
            yield said
        elif run.settings.hyde_alone:
            run.sparse[0] = run.dense[0] = said
        else:
            run.sparse.append(said)
            run.dense.append(said)


async def _said(run: Run, name: str, prompt: Prompt) -> AsyncGenerator[Event | str, None]:
    """The events of one request, and what the model wrote if it wrote anything of use."""
    step, started = run.next_step(), time.monotonic()
    yield StepStarted(step=step, name=name, input={"model": run.question.chat.name})
    before = run.usage
    last: Reply | str = "The model said nothing."
    async with aclosing(text_from(run, prompt, {"max_tokens": 512})) as pieces:
        async for piece in pieces:
            if isinstance(piece, Notice):
                yield piece
            elif not isinstance(piece, Piece):
                last = piece
    problem = last if isinstance(last, str) else ""
    text = ""
    if isinstance(last, Reply):
        text = prefix_of_tokens(" ".join(last.text.split()), _LONGEST)
        problem = "" if text else "The model's reply was empty."
    if problem:
        yield _without(name, problem)
    usage = last.usage if isinstance(last, Reply) else None
    yield finished(step, name, started, {"query": text}, usage=usage, error=problem)
    if run.usage != before:
        yield UsageReported(usage=run.usage)
    if text:
        yield text


def _without(name: str, problem: str) -> Notice:
    message = f"The question is searched for without {name}: {problem}"
    return Notice(level="warning", code="not_expanded", message=message)


def _question(run: Run, name: str) -> str:
    return filled(name, run.language, question=run.question.text)


def _best_by_words(run: Run) -> list[Passage]:
    found = run.question.snapshot.bm25_search(run.question.text, 1, where=run.question.where)
    read_chunks = run.question.snapshot.read_chunk([hit.chunk_id for hit in found.hits])
    return [
        Passage(chunk.chunk_id, prefix_of_tokens(chunk.text, _TEXT_TOKENS), chunk.title)
        for chunk in read_chunks.chunks
    ]
