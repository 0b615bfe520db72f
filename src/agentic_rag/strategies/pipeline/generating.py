"""The answer: from compressed passages, in one of four forms, refined by the best passage."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from agentic_rag.retrieval.compression import bm25_extract
from agentic_rag.strategies.answer import Status
from agentic_rag.strategies.answering import AnswerForm, model_answer, passages_answer
from agentic_rag.strategies.demonstration import demonstration_prompt, readable
from agentic_rag.strategies.events import Event, Notice, StepStarted, Usage, UsageReported
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.phrases import say, says_not_found
from agentic_rag.strategies.pipeline.parts import Ranking, Run, finished, text_from
from agentic_rag.strategies.pipeline.prompts import filled, read
from agentic_rag.strategies.pipeline.refining import Draft, Writing, given, refine, so_far
from agentic_rag.strategies.reply import Prompt, Reply
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit

_NAME = "pipeline"


async def generate(run: Run) -> AsyncGenerator[Event, None]:
    """The answer; the last event is `run_finished`."""
    question = run.question
    rankings = [one for one in run.rankings if one.passages or one.hits]
    hits = list({hit.chunk_id: hit for one in rankings for hit in one.hits}.values())
    if not hits:
        lead = say(
            "nothing_matches_filter" if question.where else "empty_knowledge_base", question.text
        )
        events = passages_answer(question, _NAME, lead, (), "insufficient", run.usage)
    elif question.chat.connect is None:
        related = run.coarse is None or run.coarse.related
        lead = say("no_model" if related else "nearest", question.text)
        status: Status = "answered" if related else "insufficient"
        events = passages_answer(question, _NAME, lead, hits, status, run.usage)
    else:
        events = _by_model(run, rankings, hits)
    async with aclosing(events):
        async for event in events:
            yield event


async def _by_model(
    run: Run, rankings: list[Ranking], hits: "list[Hit]"
) -> AsyncGenerator[Event, None]:
    if run.settings.compression != "none":
        rankings = [replace(one, passages=_compressed(run, one.passages)) for one in rankings]
    everything = list({p.chunk_id: p for one in rankings for p in one.passages}.values())
    everything = readable(run.question, everything)
    if not everything:
        lead = say("demonstration_chinese", run.question.text)
        async for event in passages_answer(run.question, _NAME, lead, hits, "answered", run.usage):
            yield event
        return
    demonstration = run.question.chat.demonstration
    if demonstration or (len(rankings) == 1 and not run.settings.refine):
        form = AnswerForm(_NAME, lambda kept: _prompt(run, kept), spent=run.usage)
        async for event in model_answer(run.question, form, hits, everything, step=run.step + 1):
            yield event
        return
    drafts: list[Draft] = []
    writing = Writing(run, hits, everything)
    try:
        for one in rankings:
            async for said in _draft(run, one):
                if isinstance(said, Draft):
                    drafts.append(said)
                else:
                    yield said
            if run.unreachable:  # one that does not answer is not asked for more
                break
        draft = _chosen(run, drafts)
        if draft is None and run.unreachable:
            message = f"{run.unreachable} The best passages stand in for an answer."
            yield Notice(level="error", code="model_failed", message=message)
            lead = say("model_failed", run.question.text)
            events = passages_answer(run.question, _NAME, lead, hits, "model_failed", run.usage)
        elif draft is None:
            form = AnswerForm(_NAME, lambda kept: _prompt(run, kept), spent=run.usage)
            events = model_answer(run.question, form, hits, everything, step=run.step + 1)
        elif run.unreachable:
            events = given(writing, draft, run.unreachable if run.settings.refine else "")
        elif run.settings.refine and not says_not_found(draft.text):
            events = refine(writing, draft, rankings[0].passages[:1])
        else:
            events = given(writing, draft)
        async with aclosing(events):
            async for event in events:
                yield event
    except asyncio.CancelledError:  # the question is stopped: the draft is the answer so far
        if draft := _chosen(run, drafts):
            for event in so_far(writing, draft):
                yield event
            yield UsageReported(usage=run.usage)
        raise


async def _draft(run: Run, one: Ranking) -> AsyncGenerator[Event | Draft, None]:
    """An answer from one ranking's passages, not yet shown."""
    step, started = run.next_step(), time.monotonic()
    chat = run.question.chat
    ids = [passage.chunk_id for passage in one.passages]
    yield StepStarted(step=step, name="draft", input={"model": chat.name, "passages": ids})
    tokens = count_tokens(passages_block(one.passages))
    run.usage += Usage(retrieved_tokens=tokens)
    last: Reply | str = ""
    try:
        async with aclosing(text_from(run, _prompt(run, one.passages))) as pieces:
            async for piece in pieces:
                if isinstance(piece, Notice):
                    yield piece
                elif not isinstance(piece, Piece):
                    last = piece
    except asyncio.CancelledError:
        yield UsageReported(usage=run.usage)
        raise
    text, usage, problem = "", Usage(retrieved_tokens=tokens), ""
    if isinstance(last, Reply):
        text = last.text
        usage = last.usage.model_copy(update={"retrieved_tokens": tokens})
        problem = "" if text else "The model's reply was empty."
    else:
        problem = last
    yield finished(step, "draft", started, {"text": text}, usage=usage, error=problem)
    yield UsageReported(usage=run.usage)
    if isinstance(last, Reply) and text:
        yield Draft(text, last.cut_off, last.broken_off)


def _chosen(run: Run, drafts: Sequence[Draft]) -> Draft | None:
    """The answer of one route, the longer of two, or both one after the other."""
    useful = [draft for draft in drafts if not says_not_found(draft.text)] or list(drafts[:1])
    if run.settings.fusion == "joined" and useful:
        return Draft(
            "\n\n".join(dict.fromkeys(draft.text for draft in useful)),
            any(draft.cut_off for draft in useful),
            any(draft.broken_off for draft in useful),
        )
    return max(useful, key=lambda draft: len(draft.text), default=None)


def _compressed(run: Run, passages: Sequence[Passage]) -> list[Passage]:
    rate = run.settings.compression_rate
    return [replace(one, text=bm25_extract(one.text, run.question.text, rate)) for one in passages]


def first_answer_prompt(run: Run) -> Prompt | None:
    """The request for the (first) answer; None where nothing was found."""
    passages = run.rankings[0].passages if run.rankings else []
    if not passages:
        return None
    if run.settings.compression != "none":
        passages = _compressed(run, passages)
    return _prompt(run, passages)


def _prompt(run: Run, passages: Sequence[Passage]) -> Prompt:
    if run.question.chat.demonstration:
        return demonstration_prompt(run.question, passages)
    system = read("answer", run.language)
    form = run.settings.prompt
    if form != "plain":
        system += "\n" + read(f"answer.{form}", run.language)
    user = filled(
        "answer.question",
        run.language,
        passages=passages_block(passages),
        question=run.question.text,
    )
    return Prompt(instructions=system, user=user)
