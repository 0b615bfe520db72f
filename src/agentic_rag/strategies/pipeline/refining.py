"""Refining: one more request completes a draft from the best passage alone.

A draft is worth more than what a second request may spoil: it stands wherever the refined text is
cut off, finds nothing, or names no source while the draft had one.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.best_passages import list_passages
from agentic_rag.strategies.citations import CitationWriter, Cited, cite
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    Notice,
    RunFinished,
    StepStarted,
    Thought,
    ThoughtDelta,
    Usage,
    UsageReported,
)
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.phrases import say, says_not_found
from agentic_rag.strategies.pipeline.parts import Run, finished, text_from
from agentic_rag.strategies.pipeline.prompts import filled, read
from agentic_rag.strategies.remarks import on_marks, on_the_end
from agentic_rag.strategies.reply import Prompt, Reply
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit

_OPENING = 30  # characters that are held back: a reply that finds nothing says so in them


@dataclass(frozen=True, slots=True)
class Draft:
    """A model's whole answer, with chunk ids; `cut_off` and `broken_off` as in `Reply`."""

    text: str
    cut_off: bool = False
    broken_off: bool = False


@dataclass(slots=True)
class Writing:
    """An answer being written: from what it may cite, and whether a reader has seen text of it."""

    run: Run
    hits: "Sequence[Hit]"
    passages: list[Passage]
    shown: bool = False


async def refine(
    writing: Writing, draft: Draft, best: Sequence[Passage]
) -> AsyncGenerator[Event, None]:
    """The draft completed from `best`, shown as it comes; where that fails, the draft, with a
    notice. The last event is `run_finished`."""
    run = writing.run
    step, started = run.next_step(), time.monotonic()
    ids = [passage.chunk_id for passage in writing.passages]
    yield StepStarted(
        step=step, name="answer", input={"model": run.question.chat.name, "passages": ids}
    )
    tokens = count_tokens(passages_block(best))
    run.usage += Usage(retrieved_tokens=tokens)
    writer, text = CitationWriter(writing.passages), ""
    last: Reply | str = ""
    async with aclosing(text_from(run, _prompt(run, draft, best))) as pieces:
        async for piece in pieces:
            match piece:
                case Reply() | str():
                    last = piece
                case Notice() | Piece(kind="restart"):
                    if isinstance(piece, Notice):
                        yield piece
                    if reset := _taken_back(writing, "The model is asked again."):
                        yield reset
                    writer, text = CitationWriter(writing.passages), ""
                case Piece(kind="thought"):
                    yield ThoughtDelta(text=piece.text)
                case Piece():
                    new, text = (
                        (text if len(text) < _OPENING else "") + piece.text,
                        text + piece.text,
                    )
                    if len(text) < _OPENING or says_not_found(text):
                        continue
                    if said := writer.feed(new):
                        writing.shown = True
                        yield AnswerDelta(text=said, citations=writer.take_sources())
    usage = Usage(retrieved_tokens=tokens)
    if isinstance(last, Reply):
        usage = last.usage.model_copy(update={"retrieved_tokens": tokens})
        if last.thoughts:
            yield Thought(text=last.thoughts, step=step)
    output = {"text": last.text if isinstance(last, Reply) else ""}
    problem = _trouble(last, draft, writing.passages)
    yield finished(step, "answer", started, output, usage=usage, error=problem)
    yield UsageReported(usage=run.usage)
    if problem or not isinstance(last, Reply):
        async for event in given(writing, draft, problem):
            yield event
        return
    rest = writer.feed(text if len(text) < _OPENING else "") + writer.finish()
    if rest:
        yield AnswerDelta(text=rest, citations=writer.take_sources())
    refined = Draft(last.text, broken_off=last.broken_off)
    for event in _ended(writing, refined, writer.result()):
        yield event


async def given(
    writing: Writing, draft: Draft, not_refined: str = ""
) -> AsyncGenerator[Event, None]:
    """The draft as the answer; `not_refined` says why it is not refined, where it was to be. The
    last event is `run_finished`."""
    if not_refined:
        message = f"The answer is the draft, not refined: {not_refined}"
        yield Notice(level="warning", code="not_refined", message=message)
    for event in so_far(writing, draft):
        yield event
    for event in _ended(writing, draft, cite(draft.text, writing.passages)):
        yield event


def so_far(writing: Writing, draft: Draft) -> Iterator[Event]:
    """The draft in place of what has been shown."""
    if reset := _taken_back(writing, "The answer is the draft."):
        yield reset
    cited = cite(draft.text, writing.passages)
    writing.shown = True
    yield AnswerDelta(text=cited.text, citations=cited.citations)


def _taken_back(writing: Writing, reason: str) -> AnswerReset | None:
    """What takes back the text that a reader has seen, if there is any."""
    if not writing.shown:
        return None
    writing.shown = False
    return AnswerReset(reason=reason)


def _trouble(reply: Reply | str, draft: Draft, passages: Sequence[Passage]) -> str:
    """Why the draft is better than the refined text, as a sentence; "" where it is not."""
    if isinstance(reply, str):
        return reply or "The model said nothing."
    if reply.unclosed:
        return "The model was cut off while it was still thinking; raise `max_output_tokens`."
    if not reply.text:
        return "The model's reply was empty."
    if reply.cut_off:
        return "The refined answer was cut off; raise `max_output_tokens`."
    if reply.broken_off and not draft.broken_off:
        return "The reply ended without its end mark."
    if says_not_found(reply.text):
        return "The second reply says that the passage holds no answer."
    before, after = cite(draft.text, passages), cite(reply.text, passages)
    if (_by_model(before) and not _by_model(after)) or (before.citations and not after.citations):
        return "The second reply names none of the sources."
    return ""


def _by_model(cited: Cited) -> bool:
    return any(citation.made_by == "model" for citation in cited.citations)


def _ended(writing: Writing, draft: Draft, cited: Cited) -> Iterator[Event]:
    """The end of an answer that has been shown."""
    question, usage = writing.run.question, writing.run.usage
    yield from on_the_end(cut_off=draft.cut_off, broken_off=draft.broken_off)
    text, citations = cited.text, cited.citations
    not_found = says_not_found(text)
    if not citations and not not_found:  # every answer carries sources
        listed = list_passages(
            say("unmatched", question.text), writing.hits[: len(writing.passages)]
        )
        yield AnswerDelta(text=f"\n\n{listed.text}", citations=listed.citations)
        text, citations = f"{text}\n\n{listed.text}", listed.citations
    yield from on_marks(cited.removed)
    yield UsageReported(usage=usage)
    yield RunFinished(
        answer=Answer(
            question=question.text,
            text=text,
            raw_text=draft.text,
            citations=citations,
            # That something is missing needs no source.
            unsupported=tuple(s for s in cited.unsupported if not says_not_found(s)),
            removed_citations=cited.removed,
            usage=usage,
            status="insufficient" if not_found else "answered",
            strategy="pipeline",
            model=question.chat.name,
        )
    )


def _prompt(run: Run, draft: Draft, best: Sequence[Passage]) -> Prompt:
    user = filled(
        "refine.question",
        run.language,
        passages=passages_block(best),
        question=run.question.text,
        answer=draft.text,
    )
    return Prompt(instructions=read("refine", run.language), user=user)
