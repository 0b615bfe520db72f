"""Asking every question of a dataset of every variant, a bounded number at a time.

Each result is on disk the moment it is there, so that a run can be stopped at any time and gone
on with: what is finished is not asked again, and what was on its way is asked anew.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentic_rag.errors import AragError
from agentic_rag.evaluation.dataset import Dataset
from agentic_rag.evaluation.measures import matching
from agentic_rag.evaluation.measures.judging import Judge, judge_result
from agentic_rag.evaluation.measures.run_scores import texts_of
from agentic_rag.evaluation.measures.why_wrong import Texts, no_texts
from agentic_rag.evaluation.records import GoldQuestion, Result, Variant
from agentic_rag.evaluation.running.failing import hopeless
from agentic_rag.evaluation.running.identity import check_same, now, run_info
from agentic_rag.evaluation.running.judged import at_pace
from agentic_rag.evaluation.running.rate import Pace, paced
from agentic_rag.evaluation.running.result_file import (
    ResultFile,
    Run,
    begin_run,
    read_results,
    read_run,
    run_lock,
)
from agentic_rag.evaluation.running.tally import RunProgress, Tally
from agentic_rag.evaluation.running.variants import settings_of
from agentic_rag.evaluation.running.workers import each
from agentic_rag.models.chat import ChatModel, given_model, resolve_chat_model, with_context
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import Event, RunFailed, RunFinished, RunStarted, kept
from agentic_rag.strategies.run import stream
from agentic_rag.strategies.trace import UsageReported

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase

Ended = Literal["done", "cost", "failures"]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a call ended: "done", or because the `cost` ceiling was reached, or because of too many
    `failures` alike, whose error is `problem`."""

    ended: Ended
    run: Run
    problem: str = ""


@dataclass(slots=True)
class _State:
    """What the workers of a call share."""

    kb: "KnowledgeBase"
    settings: dict[str, "Settings"]  # by variant
    chat: ChatModel
    judge: Judge | None
    judged_before: float  # US dollars that verdicts of earlier calls have cost
    texts: Texts
    file: ResultFile
    tally: Tally
    max_cost: float | None
    on_progress: Callable[[RunProgress], None]
    failures: list[str] = field(default_factory=list)  # the errors since the last success
    ended: Ended = "done"


async def run_evaluation(
    dataset: Dataset,
    variants: Sequence[Variant],
    *,
    kb: "KnowledgeBase",
    run_dir: Path,
    settings: "Settings",
    model: "str | Model | None" = None,
    judge: Judge | None = None,
    limit: int | None = None,
    seed: int | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
) -> RunEnd:
    """Ask the questions of `dataset` of each of `variants`, and keep the results in `run_dir`.

    A second call goes on with what is missing; with `retry_failed` also what failed is asked again.
    `limit` questions are the first of the file, or with `seed` a sample in an order of its own.
    Workers, pace and the cost ceiling are those of `settings.evaluation`; `model` overrides the
    settings'. Cancelling ends the questions on their way, which leave no result. Raises
    `AnotherRun` where the folder holds a run of something else, `RunBusy`, `RunUnwritable`, and
    what `stream` raises where a variant cannot be asked at all.
    """
    chat = await asyncio.to_thread(_chosen, settings, model)
    own = {variant.name: settings_of(settings, variant) for variant in variants}
    questions = drawn(dataset.questions, limit, seed)
    with run_lock(run_dir):
        info = run_info(dataset, variants, kb, chat.name, settings, limit=limit, seed=seed)
        if read_results(run_dir):
            check_same(read_run(run_dir).info, info, run_dir)
        else:
            begin_run(run_dir, info, questions)
        run = await asyncio.to_thread(read_run, run_dir)
        pace = Pace(
            settings.evaluation.requests_per_minute,
            on_pause=lambda seconds: on_progress(replace(_progress(state), pause=seconds)),
        )
        state = _State(
            kb=kb,
            settings=own,
            chat=paced(chat, pace),
            judge=at_pace(judge, chat.name, pace, settings) if judge else None,
            judged_before=judge.verdicts.cost if judge else 0.0,
            texts=await asyncio.to_thread(texts_of, run) if judge else no_texts,
            file=ResultFile(run_dir),
            tally=Tally(len(questions) * len(variants)),
            max_cost=settings.evaluation.max_cost,
            on_progress=on_progress,
        )
        by_id = {question.qid: question for question in questions}

        async def count(result: Result) -> None:  # a judge may be new to it
            state.tally.add(result, await _is_right(state, result, by_id[result.qid]))
            on_progress(_progress(state))

        workers = settings.evaluation.workers
        await each(run.results, workers, count)
        waiting = [
            (variant, question)
            for question in questions
            for variant in variants
            if (before := state.tally.counted.get((variant.name, question.qid))) is None
            or (retry_failed and before.outcome == "failed")
        ]
        on_progress(_progress(state))
        await each(waiting, workers, lambda one: _take(state, *one), ends=lambda: _must_end(state))
        problem = state.failures[-1] if state.ended == "failures" else ""
        return RunEnd(state.ended, await asyncio.to_thread(read_run, run_dir), problem)


def drawn(
    questions: Sequence[GoldQuestion], limit: int | None, seed: int | None
) -> tuple[GoldQuestion, ...]:
    """The first `limit` questions; with a `seed` a sample in random order, always the same."""
    chosen = list(questions)
    if seed is not None:
        random.Random(seed).shuffle(chosen)
    return tuple(chosen[:limit])


def _chosen(settings: "Settings", model: "str | Model | None") -> ChatModel:
    if model is None:
        return resolve_chat_model(settings)
    if isinstance(model, str):
        return resolve_chat_model(settings.model_copy(update={"model": model}))
    return with_context(given_model(model), settings)


def _must_end(state: _State) -> bool:
    if hopeless(state.failures):
        state.ended = "failures"
    elif state.max_cost is not None and _progress(state).cost >= state.max_cost:
        state.ended = "cost"
    return state.ended != "done"


async def _take(state: _State, variant: Variant, question: GoldQuestion) -> None:
    """Ask one question and keep what came of it."""
    result = await _result(state, variant, question)
    # On disk before anything else: a judge can be asked again, an answer has been paid for.
    saving = asyncio.ensure_future(asyncio.to_thread(state.file.add, result))
    try:
        await asyncio.shield(saving)
    except asyncio.CancelledError:
        await saving  # a thread goes on: who reads the file next must find the line
        raise
    if result.outcome == "failed":
        state.failures.append(result.error)
    else:
        state.failures.clear()
    state.tally.add(result, await _is_right(state, result, question))
    state.on_progress(_progress(state))


async def _result(state: _State, variant: Variant, question: GoldQuestion) -> Result:
    known = state.tally.counted.get((variant.name, question.qid))
    events: list[Event] = []
    answer: Answer | None = None
    error = ""
    try:
        async with aclosing(_events(state, variant, question)) as coming:
            async for event in coming:
                events.append(event)
                if isinstance(event, RunFinished):
                    answer = event.answer
                elif isinstance(event, RunFailed):
                    error = event.error
    except AragError:
        raise  # before the first event: this variant cannot be asked at all
    except Exception as fault:
        error = error or f"{type(fault).__name__}: {fault}"
    if answer is None:
        answer = _so_far(question, events)
        error = error or "The strategy ended without an answer."
    elif answer.status == "model_failed":  # passages stand in for it
        said = [notice.message for notice in answer.notices if notice.level == "error"]
        error = said[-1] if said else "The model failed."
    return Result(
        variant=variant.name,
        qid=question.qid,
        outcome=_outcome(answer, error),
        answer=answer,
        error=error,
        tries=known.tries + 1 if known else 1,
        finished=now(),
    )


def _outcome(answer: Answer | None, error: str) -> Literal["answered", "unanswered", "failed"]:
    if error or answer is None:
        return "failed"
    if answer.unanswered or answer.status == "insufficient":  # or passages stand in for it
        return "unanswered"
    return "answered"


def _events(state: _State, variant: Variant, question: GoldQuestion) -> AsyncGenerator[Event, None]:
    return stream(
        state.kb,
        question.question,
        strategy=variant.strategy,
        settings=state.settings[variant.name],
        model=state.chat,
    )


def _so_far(question: GoldQuestion, events: Sequence[Event]) -> Answer | None:
    """What a failed question had come to, with its trace; None where it had not begun."""
    begun = next((event for event in events if isinstance(event, RunStarted)), None)
    if begun is None:
        return None
    spent = [event.usage for event in events if isinstance(event, UsageReported)]
    return Answer(
        question=question.question,
        text="",
        trace=kept(events),
        status="failed",
        strategy=begun.strategy,
        model=begun.model,
        seconds=events[-1].seconds,
        **({"usage": spent[-1]} if spent else {}),
    )


async def _is_right(state: _State, result: Result, gold: GoldQuestion) -> bool | None:
    """Whether a result counts as right, as far as that is known; a judge is asked."""
    if state.judge is not None:
        judgement = await judge_result(state.judge, result, gold, state.texts)
        return judgement.correct if judgement else None
    if not gold.golds:
        return None
    if result.outcome != "answered" or result.answer is None:
        return False
    return matching.contains(matching.answer_words(result.answer), gold.golds)


def _progress(state: _State) -> RunProgress:
    judging = (state.judge.usage.cost or 0.0) if state.judge else 0.0
    return state.tally.progress(state.judged_before + judging)
