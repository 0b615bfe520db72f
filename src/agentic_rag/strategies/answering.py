"""Writing the answer from passages: one streamed request, checked marks, and what stands in for it.

Shared by the strategies whose last step is a prompt with passages. Where the model fails or says
nothing, the best passages are the answer.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.errors import AragError
from agentic_rag.strategies.answer import Answer, Status
from agentic_rag.strategies.best_passages import list_passages
from agentic_rag.strategies.citations import CitationWriter
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    Notice,
    RunFinished,
    StepFinished,
    StepStarted,
    Thought,
    ThoughtDelta,
    Usage,
    UsageReported,
)
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.phrases import Phrase, say, says_not_found
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.remarks import on_marks, on_the_end
from agentic_rag.strategies.reply import ModelCallFailed, Prompt, Reply, Retrying, stream_reply
from agentic_rag.strategies.sentence_gate import SentenceGate
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.knowledge_base import Hit

# A model this small repeats itself when it goes on: one paragraph is all it is asked for. (What
# llama.cpp has against repetition was tried, and keeps it from copying the passages.)
_ONE_PARAGRAPH = ["\n\n"]


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How a strategy has its answer written.

    `prompt` makes the request from the passages that fit. `request` are model settings of this
    stage (temperature, top_p, max_tokens), which the settings of the user go before. `spent` is
    what earlier stages of the question used. `closing`, if any, is added to an answer that says
    that the passages do not hold it. `shown` are the passages in the prompt, where these are not
    all that may be cited.
    """

    strategy: str
    prompt: Callable[[Sequence[Passage]], Prompt]
    request: Mapping[str, Any] = field(default_factory=dict)
    spent: Usage = field(default_factory=Usage)
    closing: str = ""
    shown: tuple[Passage, ...] | None = None


async def model_answer(
    question: Question,
    form: AnswerForm,
    hits: "Sequence[Hit]",
    passages: list[Passage],
    step: int,
) -> AsyncGenerator[Event, None]:
    """Ask the model as step number `step`; the last event is `run_finished`. `hits` are what the
    passages were chosen from: they stand in where the model fails."""
    started = time.monotonic()
    in_prompt = passages if form.shown is None else form.shown
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
        async with aclosing(_replies(question, form, passages)) as pieces:
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
        prompt = form.prompt(passages)
        yield UsageReported(
            usage=form.spent
            + Usage(
                input_tokens=count_tokens(prompt.instructions + prompt.user),
                output_tokens=count_tokens("".join(received)),
                retrieved_tokens=count_tokens(passages_block(in_prompt)),
                model_requests=tries,
                cost=question.chat.cost,
                estimated=True,
            )
        )
        raise
    tokens = count_tokens(passages_block(in_prompt))
    if reply is None:
        requests = failure.requests if failure else 1
        usage = Usage(model_requests=requests, cost=question.chat.cost, estimated=True)
    else:
        usage = reply.usage.model_copy(update={"retrieved_tokens": tokens})
        if reply.thoughts:
            yield Thought(text=reply.thoughts, step=str(step))
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
    usage = form.spent + usage
    yield UsageReported(usage=usage)

    if failure and failure.too_long and len(passages) > 1:
        fewer = passages[: len(passages) // 2]
        message = f"{failure} Trying with the best {len(fewer)} of {len(passages)}."
        yield Notice(level="warning", code="passages_too_long", message=message)
        again = replace(form, spent=usage)
        async for event in model_answer(question, again, hits, fewer, step + 1):
            yield event
        return
    if failure or reply is None or not reply.text:
        phrase, notice = _no_answer(failure, reply)
        yield notice
        yield AnswerReset(reason=notice.message)
        lead = say(phrase, question.text)
        async for event in passages_answer(
            question, form.strategy, lead, hits, "model_failed", usage
        ):
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
    if not_found and form.closing:
        yield AnswerDelta(text=f"\n\n{form.closing}")
        text += f"\n\n{form.closing}"
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
            # That something is missing needs no source.
            unsupported=tuple(s for s in cited.unsupported if not says_not_found(s)),
            removed_citations=cited.removed,
            usage=usage,
            status="insufficient" if not_found else "answered",
            strategy=form.strategy,
            model=question.chat.name,
        )
    )


async def _replies(
    question: Question, form: AnswerForm, passages: list[Passage]
) -> AsyncGenerator[Piece | Retrying | Reply, None]:
    chat, settings = question.chat, question.settings
    assert chat.connect is not None
    most = form.request.get("max_tokens", settings.max_output_tokens)
    request: dict[str, Any] = {
        **form.request,
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
                form.prompt(passages),
                cast("ModelSettings", request),
                silence=settings.model_timeout,
                cost=chat.cost,
                cures=chat.cures,
            )
            async with aclosing(replies):
                async for piece in replies:
                    yield piece
    except ModelCallFailed:
        raise
    except AragError as error:  # the model's file or endpoint, before any request
        raise ModelCallFailed(str(error), requests=0) from error


def _no_answer(failure: ModelCallFailed | None, reply: Reply | None) -> tuple[Phrase, Notice]:
    if failure:
        message = f"{failure} The best passages stand in for an answer."
        return "model_failed", Notice(level="error", code="model_failed", message=message)
    if reply and reply.unclosed:
        message = "No answer, cut off: the model was still thinking; raise `max_output_tokens`."
        return "cut_off_thinking", Notice(level="error", code="no_answer_cut_off", message=message)
    message = "The model's reply was empty; the best passages stand in for an answer."
    return "empty_reply", Notice(level="error", code="empty_reply", message=message)


async def passages_answer(
    question: Question,
    strategy: str,
    lead: str,
    hits: "Sequence[Hit]",
    status: Status,
    usage: Usage | None = None,
) -> AsyncGenerator[Event, None]:
    """The passages themselves as the answer, under a sentence that leads to them."""
    listed = list_passages(lead, hits)
    yield AnswerDelta(text=listed.text, citations=listed.citations)
    yield RunFinished(
        answer=Answer(
            question=question.text,
            text=listed.text,
            citations=listed.citations,
            usage=usage or Usage(),
            status=status,
            strategy=strategy,
            model=question.chat.name,
        )
    )
