"""From the last text, or the lack of one, to the answer."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.found import Evidence
from agentic_rag.strategies.answer import Answer, Citation, Status
from agentic_rag.strategies.best_passages import list_passages
from agentic_rag.strategies.events import AnswerDelta, Event, RunFinished
from agentic_rag.strategies.phrases import Phrase, say, says_not_found
from agentic_rag.strategies.remarks import on_marks, on_the_end
from agentic_rag.strategies.trace import Usage

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit
    from agentic_rag.strategies.agent.draft import Draft
    from agentic_rag.strategies.agent.requests import ModelTurn
    from agentic_rag.strategies.question import Question

NAME = "agent"


@dataclass(frozen=True, slots=True)
class Ending:
    """What every answer needs besides its text: whose it is, what it cost, and which limit cut
    the search short (`forced`, None for none)."""

    question: "Question"
    usage: Usage
    forced: Status | None

    def answer(
        self, text: str, status: Status, citations: Sequence[Citation] = (), **more: object
    ) -> RunFinished:
        """The last event of the run."""
        return RunFinished(
            answer=Answer(
                question=self.question.text,
                text=text,
                citations=tuple(citations),
                usage=self.usage,
                status=self.forced or status,
                strategy=NAME,
                model=self.question.chat.name,
                **more,
            )
        )


async def model_answer(
    ending: Ending,
    draft: "Draft",
    turn: "ModelTurn",
    fallback: "Callable[[], AsyncGenerator[Event | Evidence, None]]",
) -> AsyncGenerator[Event, None]:
    """The model's text as the answer; `fallback` finds passages for one that cites none."""
    if shown := draft.finish():
        yield AnswerDelta(text=shown, citations=draft.take_sources())
    for remark in on_the_end(cut_off=turn.cut_off, broken_off=turn.broken_off):
        yield remark
    cited = draft.result()
    text, citations = cited.text, cited.citations
    not_found = says_not_found(text)
    if not citations and not not_found:  # every answer carries sources
        hits: Sequence[Hit] = ()
        async with aclosing(fallback()) as found:
            async for one in found:
                if isinstance(one, Evidence):
                    hits = one.hits
                else:
                    yield one
        listed = list_passages(say("unmatched", ending.question.text), hits)
        yield AnswerDelta(text=f"\n\n{listed.text}", citations=listed.citations)
        text, citations = f"{text}\n\n{listed.text}", listed.citations
    for remark in on_marks(cited.removed):
        yield remark
    yield ending.answer(
        text,
        "insufficient" if not_found else "answered",
        citations,
        raw_text=turn.text,
        unsupported=cited.unsupported,
        removed_citations=cited.removed,
    )


def passages_answer(
    ending: Ending, phrase: Phrase, hits: "Sequence[Hit]", status: Status
) -> Iterator[Event]:
    """The best passages as the answer."""
    listed = list_passages(say(phrase, ending.question.text), hits)
    yield AnswerDelta(text=listed.text, citations=listed.citations)
    yield ending.answer(listed.text, status, listed.citations)
