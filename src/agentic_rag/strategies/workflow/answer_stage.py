"""The last stage: an answer from the documents, from both, or a plain refusal."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from agentic_rag.strategies.answer import Status
from agentic_rag.strategies.answering import AnswerForm, model_answer, passages_answer
from agentic_rag.strategies.demonstration import demonstration_prompt, readable
from agentic_rag.strategies.events import Event
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.phrases import say
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.workflow.parts import Run, sampling
from agentic_rag.strategies.workflow.prompts import filled, read

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit

_NAME = "workflow"


async def answer(run: Run) -> AsyncGenerator[Event, None]:
    """The answer; the last event is `run_finished`."""
    question = run.question
    passages = _ordered(run)
    hits = [*(scored.hit for scored in run.hits), *(_as_hit(passage) for passage in run.web)]
    if not passages:
        lead = f"{say('not_related', question.text)} {refusal(run)}"
        events = passages_answer(question, _NAME, lead, (), "insufficient", run.usage)
    elif question.chat.connect is None:
        lead = say("no_model" if run.passed or run.web else "nearest", question.text)
        status: Status = "answered" if run.passed or run.web else "insufficient"
        events = passages_answer(question, _NAME, lead, hits, status, run.usage)
    elif not (shown := readable(question, passages)):
        lead = say("demonstration_chinese", question.text)
        events = passages_answer(question, _NAME, lead, hits, "answered", run.usage)
    else:
        form = AnswerForm(
            strategy=_NAME,
            prompt=lambda kept: _prompt(run, kept),
            request={
                **sampling(run, question.chat, "answer"),
                "max_tokens": run.settings.answer_tokens,
            },
            spent=run.usage,
            closing=refusal(run),
        )
        events = model_answer(question, form, hits, shown, step=run.step + 1)
    async with aclosing(events):
        async for event in events:
            yield event


def refusal(run: Run) -> str:
    """What was looked for, and how to ask better."""
    quality = run.quality
    suggestions = quality.suggestions if quality else ()
    looked = "; ".join(run.looked_for)
    name = "refusal.suggestions" if suggestions else "refusal"
    return filled(name, run.language, looked_for=looked, suggestions="; ".join(suggestions))


def _ordered(run: Run) -> list[Passage]:
    """The passages in the order of authority that the settings give."""
    of = {"documents": run.passages, "web": run.web}
    return [passage for origin in run.settings.authority for passage in of[origin]]


def _prompt(run: Run, passages: Sequence[Passage]) -> Prompt:
    if run.question.chat.demonstration:
        return demonstration_prompt(run.question, passages)
    system = read("answer", run.language)
    if any(passage.origin == "web" for passage in passages):
        first = run.settings.authority[0]
        system += "\n" + read(f"answer.web.{first}", run.language)
    user = filled(
        "answer.question",
        run.language,
        passages=passages_block(passages),
        question=run.question.text,
    )
    return Prompt(instructions=f"{system}\n\n{run.template}", user=user)


def _as_hit(passage: Passage) -> "Hit":
    from agentic_rag.knowledge_base import Hit

    return Hit(
        chunk_id="",
        source_id=None,
        score=0.0,
        title=passage.title,
        uri=passage.uri,
        page=None,
        section="",
        snippet=passage.snippet,
    )
