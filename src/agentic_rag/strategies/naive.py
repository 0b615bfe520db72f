"""The baseline: one hybrid search, one prompt, one answer.

Documents that hold nothing related are said so without asking a model. Where there is no model,
or it fails, the best passages are the answer.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from agentic_rag.strategies.answer import Status
from agentic_rag.strategies.answering import AnswerForm, model_answer, passages_answer
from agentic_rag.strategies.events import Event, HitRecord, Notice, StepFinished, StepStarted
from agentic_rag.strategies.passages import chosen_passages, passages_block
from agentic_rag.strategies.phrases import Phrase, say
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.searchable import nothing_to_search
from agentic_rag.strategies.shown_prompt import ShownPrompt
from agentic_rag.strategies.support import Passage, names_met
from agentic_rag.text.language import is_chinese

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit, SearchResult

_PROMPTS = Path(__file__).parent / "prompts"
_NAME = "naive"


async def naive(question: Question) -> AsyncIterator[Event]:
    """Answer `question`; the last event is `run_finished`."""
    top_k = question.settings.answer.passages
    yield StepStarted(
        step="1",
        name="search",
        input={"query": question.text, "mode": "hybrid", "top_k": top_k},
    )
    started = time.monotonic()
    found, passages = await asyncio.to_thread(_retrieve, question, top_k)
    yield StepFinished(
        step="1",
        name="search",
        output={"related": found.related, "hits": len(found.hits)},
        hits=tuple(_record(hit) for hit in found.hits),
        duration=time.monotonic() - started,
    )
    for message in found.notices:
        yield Notice(level="warning", code="search", message=message)

    instead = _without_model(question, found, passages)
    if instead is None:
        form = AnswerForm(_NAME, lambda passages: _prompt(question, passages))
        events = model_answer(question, form, found.hits, passages, step=2)
    else:
        lead, hits, status = instead
        events = passages_answer(question, _NAME, lead, hits, status)
    async with aclosing(events):
        async for event in events:
            yield event


def first_prompt(question: Question) -> ShownPrompt | None:
    """What the model would be sent for `question`, after the same search; None where none is."""
    found, passages = _retrieve(question, question.settings.answer.passages)
    if _without_model(question, found, passages) is not None:
        return None
    prompt = _prompt(question, passages)
    return ShownPrompt(_NAME, system=prompt.instructions, user=prompt.user)


def _without_model(
    question: Question, found: "SearchResult", passages: list[Passage]
) -> "tuple[str, Sequence[Hit], Status] | None":
    """The lead, the hits and the status of an answer that no model is asked for; else None."""
    if not found.hits:
        phrase: Phrase = nothing_to_search(question) or "not_related"
        return say(phrase, question.text), (), "insufficient"
    if not found.related:
        lead = f"{say('not_related', question.text)}\n\n{say('nearest', question.text)}"
        return lead, found.hits, "insufficient"
    if question.chat.connect is None:
        return say("no_model", question.text), found.hits, "answered"
    if question.chat.demonstration and (is_chinese(question.text) or not passages):
        return say("demonstration_chinese", question.text), found.hits, "answered"
    return None


def _retrieve(question: Question, top_k: int) -> "tuple[SearchResult, list[Passage]]":
    budget = question.settings.answer.passage_tokens
    if question.chat.passage_tokens is not None:
        budget = min(budget, question.chat.passage_tokens)
    found = question.snapshot.hybrid_search(question.text, top_k, where=question.where)
    if not found.related and names_met(question.text, (hit.snippet for hit in found.hits)):
        found = replace(found, related=True)
    if not found.hits or not found.related or question.chat.connect is None:
        return found, []
    read = question.snapshot.read_chunk([hit.chunk_id for hit in found.hits])
    chunks = {chunk.chunk_id: chunk for chunk in read.chunks}
    hits = found.hits
    if question.chat.demonstration:  # Chinese only confuses it
        hits = tuple(hit for hit in hits if not is_chinese(hit.snippet))
    return found, chosen_passages(hits[: question.chat.most_passages], chunks, budget)


def _prompt(question: Question, passages: Sequence[Passage]) -> Prompt:
    language = "zh" if is_chinese(question.text) else "en"
    kind = "demonstration" if question.chat.demonstration else language
    template = Template(_read(f"naive.question.{language}.md"))
    return Prompt(
        instructions=_read(f"naive.{kind}.md"),
        user=template.substitute(passages=passages_block(passages), question=question.text),
    )


@cache
def _read(name: str) -> str:
    return (_PROMPTS / name).read_text(encoding="utf-8").strip()


def _record(hit: "Hit") -> HitRecord:
    return HitRecord(**asdict(hit))
