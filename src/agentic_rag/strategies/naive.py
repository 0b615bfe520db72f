"""The baseline: one hybrid search, one prompt, one answer.

Documents that hold nothing related are said so without asking a model. Where there is no model,
or it fails, the best passages are the answer.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from agentic_rag.errors import AragError
from agentic_rag.strategies.answer import Answer, Status
from agentic_rag.strategies.best_passages import list_passages
from agentic_rag.strategies.citations import CitationWriter
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    HitRecord,
    Notice,
    RunFinished,
    StepFinished,
    StepStarted,
    Thought,
    ThoughtDelta,
    Usage,
    UsageReported,
)
from agentic_rag.strategies.passages import chosen_passages, passages_block
from agentic_rag.strategies.phrases import Phrase, say, says_not_found
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.remarks import on_marks, on_the_end
from agentic_rag.strategies.reply import ModelCallFailed, Prompt, Reply, Retrying, stream_reply
from agentic_rag.strategies.sentence_gate import SentenceGate
from agentic_rag.strategies.shown_prompt import ShownPrompt
from agentic_rag.strategies.support import Passage, names_met
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.language import is_chinese
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.knowledge_base import Hit, SearchResult

_PROMPTS = Path(__file__).parent / "prompts"
_NAME = "naive"
# A model this small repeats itself when it goes on: one paragraph is all it is asked for. (What
# llama.cpp has against repetition was tried, and keeps it from copying the passages.)
_ONE_PARAGRAPH = ["\n\n"]


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
        events = _model_answer(question, found.hits, passages)
    else:
        lead, hits, status = instead
        events = _passages_answer(question, lead, hits, status)
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
        phrase: Phrase = "nothing_matches_filter" if question.where else "empty_knowledge_base"
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


async def _model_answer(
    question: Question,
    hits: "Sequence[Hit]",
    passages: list[Passage],
    step: int = 2,
    spent: int = 0,
) -> AsyncGenerator[Event, None]:
    """Ask the model; `spent` requests have been made before."""
    started = time.monotonic()
    yield StepStarted(
        step=str(step),
        name="answer",
        input={"model": question.chat.name, "passages": [p.chunk_id for p in passages]},
    )
    writer = CitationWriter(passages)
    gate = SentenceGate(open=not question.chat.demonstration)
    usage = Usage()
    reply: Reply | None = None
    failure: ModelCallFailed | None = None
    received: list[str] = []
    tries = 1
    try:
        async with aclosing(_replies(question, passages)) as pieces:
            async for piece in pieces:
                match piece:
                    case Reply():
                        reply = piece
                    case Retrying(reason=reason):
                        tries += 1
                        writer = CitationWriter(passages)
                        gate.clear()
                        yield Notice(level="info", code="model_retried", message=reason)
                        yield AnswerReset(reason=reason)
                    case Piece(kind="restart"):
                        received.clear()  # it comes again, as thoughts
                        writer = CitationWriter(passages)
                        gate.clear()
                        yield AnswerReset(reason="What came so far were the model's thoughts.")
                    case Piece(kind="thought", text=text):
                        received.append(text)
                        yield ThoughtDelta(text=text)
                    case Piece(text=text):
                        received.append(text)
                        if shown := writer.feed(gate.feed(text)):
                            yield AnswerDelta(text=shown, citations=writer.take_sources())
    except ModelCallFailed as error:
        failure = error
    except asyncio.CancelledError:  # the question is stopped: what came is told before the end
        if shown := writer.feed(gate.finish(cut_off=False)) + writer.break_off():
            yield AnswerDelta(text=shown, citations=writer.take_sources())
        prompt = _prompt(question, passages)
        yield UsageReported(
            usage=Usage(
                input_tokens=count_tokens(prompt.instructions + prompt.user),
                output_tokens=count_tokens("".join(received)),
                retrieved_tokens=count_tokens(passages_block(passages)),
                model_requests=spent + tries,
                cost=question.chat.cost,
                estimated=True,
            )
        )
        raise
    tokens = count_tokens(passages_block(passages))
    if reply is None:
        requests = failure.requests if failure else 1
        usage = Usage(model_requests=requests, cost=question.chat.cost, estimated=True)
    else:
        usage = reply.usage.model_copy(update={"retrieved_tokens": tokens})
        if reply.thoughts:
            yield Thought(text=reply.thoughts, step=str(step))
    usage = usage.model_copy(update={"model_requests": usage.model_requests + spent})
    yield StepFinished(
        step=str(step),
        name="answer",
        output={"text": reply.text if reply else ""},
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        retrieved_tokens=usage.retrieved_tokens,
        duration=time.monotonic() - started,
        error=str(failure) if failure else None,
    )
    yield UsageReported(usage=usage)

    if failure and failure.too_long and len(passages) > 1:
        fewer = passages[: len(passages) // 2]
        message = f"{failure} Trying with the best {len(fewer)} of {len(passages)}."
        yield Notice(level="warning", code="passages_too_long", message=message)
        async for event in _model_answer(question, hits, fewer, step + 1, usage.model_requests):
            yield event
        return
    if failure or reply is None or not reply.text:
        phrase, notice = _no_answer(failure, reply)
        yield notice
        yield AnswerReset(reason=notice.message)
        lead = say(phrase, question.text)
        async for event in _passages_answer(question, lead, hits, "model_failed", usage):
            yield event
        return

    if shown := writer.feed(gate.finish(cut_off=reply.cut_off)) + writer.finish():
        yield AnswerDelta(text=shown, citations=writer.take_sources())
    cut_off = reply.cut_off and not question.chat.demonstration  # whose limit is its own
    for remark in on_the_end(cut_off=cut_off, broken_off=reply.broken_off):
        yield remark
    cited = writer.result()
    text, citations = cited.text, cited.citations
    not_found = says_not_found(text)
    if not citations and not not_found:  # every answer carries sources
        listed = list_passages(say("unmatched", question.text), hits[: len(passages)])
        yield AnswerDelta(text=f"\n\n{listed.text}", citations=listed.citations)
        text, citations = f"{text}\n\n{listed.text}", listed.citations
    for remark in on_marks(cited.removed):
        yield remark
    if question.chat.demonstration:
        added = f"\n\n{say('demonstration', question.text)}"
        yield AnswerDelta(text=added)
        text += added
    yield RunFinished(
        answer=Answer(
            question=question.text,
            text=text,
            raw_text=reply.text,
            citations=citations,
            unsupported=cited.unsupported,
            removed_citations=cited.removed,
            usage=usage,
            status="insufficient" if not_found else "answered",
            strategy=_NAME,
            model=question.chat.name,
        )
    )


async def _replies(
    question: Question, passages: list[Passage]
) -> AsyncGenerator[Piece | Retrying | Reply, None]:
    chat, settings = question.chat, question.settings
    assert chat.connect is not None
    most = settings.max_output_tokens
    request: ModelSettings = {
        "max_tokens": min(most, chat.max_output_tokens or most),
        "timeout": settings.model_timeout,
        "max_retries": 0,  # tried again here, where it is told
    }
    if settings.temperature is not None:
        request["temperature"] = settings.temperature
    elif chat.demonstration:
        request["temperature"] = 0.0
    if chat.demonstration:
        request["stop_sequences"] = _ONE_PARAGRAPH
    try:
        async with chat.connect() as model:
            replies = stream_reply(
                model,
                _prompt(question, passages),
                request,
                silence=settings.model_timeout,
                cost=chat.cost,
                unreachable=chat.unreachable,
            )
            async with aclosing(replies):
                async for piece in replies:
                    yield piece
    except ModelCallFailed:
        raise
    except AragError as error:  # the model's file or endpoint, before any request
        raise ModelCallFailed(str(error), requests=0) from error


def _prompt(question: Question, passages: list[Passage]) -> Prompt:
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


def _no_answer(failure: ModelCallFailed | None, reply: Reply | None) -> tuple[Phrase, Notice]:
    if failure:
        message = f"{failure} The best passages stand in for an answer."
        return "model_failed", Notice(level="error", code="model_failed", message=message)
    if reply and reply.unclosed:
        message = "No answer, cut off: the model was still thinking; raise `max_output_tokens`."
        return "cut_off_thinking", Notice(level="error", code="no_answer_cut_off", message=message)
    message = "The model's reply was empty; the best passages stand in for an answer."
    return "empty_reply", Notice(level="error", code="empty_reply", message=message)


async def _passages_answer(
    question: Question,
    lead: str,
    hits: "Sequence[Hit]",
    status: Status,
    usage: Usage | None = None,
) -> AsyncGenerator[Event, None]:
    listed = list_passages(lead, hits)
    yield AnswerDelta(text=listed.text, citations=listed.citations)
    yield RunFinished(
        answer=Answer(
            question=question.text,
            text=listed.text,
            citations=listed.citations,
            usage=usage or Usage(),
            status=status,
            strategy=_NAME,
            model=question.chat.name,
        )
    )


def _record(hit: "Hit") -> HitRecord:
    return HitRecord(**asdict(hit))
