"""Having the results of a run judged: many at a time, at the judge's pace, none twice."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentic_rag.evaluation.measures.judging import Judge, judge_result
from agentic_rag.evaluation.measures.run_scores import texts_of
from agentic_rag.evaluation.records import Result
from agentic_rag.evaluation.running.failing import hopeless
from agentic_rag.evaluation.running.rate import Pace, paced
from agentic_rag.evaluation.running.result_file import Run
from agentic_rag.evaluation.running.workers import each

if TYPE_CHECKING:
    from agentic_rag.config import Settings


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of judging: `verdicts` of `total` results whose gold answer is known have one.
    `problem` is why one has none, "" where the judge was merely unclear; `ended`: it failed alike
    so often that the rest was not asked."""

    verdicts: int
    total: int
    problem: str = ""
    ended: bool = False


async def judge_run(
    run: Run, judge: Judge, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Judged:
    """Have the judge say its verdict on every result of a run; what is judged is not sent again."""
    golds = {question.qid: question for question in run.questions}
    results = [result for result in run.results if golds[result.qid].golds]
    own = at_pace(judge, "", Pace(None), judge.settings)
    texts = await asyncio.to_thread(texts_of, run)
    problems: list[str] = []  # since the last verdict
    verdicts = done = 0
    problem = ""

    async def judged(result: Result) -> None:
        nonlocal verdicts, done, problem
        said = await judge_result(own, result, golds[result.qid], texts)
        done += 1
        if said is not None and said.problem:
            problem = said.problem
            problems.append(problem)
        else:
            problems.clear()
            verdicts += said is not None and said.correct is not None
        on_progress(done, len(results))

    workers = judge.settings.evaluation.workers
    await each(results, workers, judged, ends=lambda: hopeless(problems))
    return Judged(verdicts, len(results), problem, hopeless(problems) and done < len(results))


def at_pace(judge: Judge, answering: str, pace: Pace, settings: "Settings") -> Judge:
    """`judge` at a pace of its own, or at `pace` where its model is also the one that answers."""
    if judge.chat.name != answering:
        pace = Pace(settings.evaluation.requests_per_minute)
    return replace(judge, chat=paced(judge.chat, pace))
