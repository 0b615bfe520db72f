"""A run whose numbers are known beforehand, and how it stops and goes on."""

import asyncio
from pathlib import Path

import pytest

from agentic_rag.config import AgentSettings, Evaluation, Settings
from agentic_rag.evaluation.dataset import Dataset
from agentic_rag.evaluation.measures.judging import open_judge
from agentic_rag.evaluation.measures.run_scores import score_run
from agentic_rag.evaluation.running.identity import AnotherRun
from agentic_rag.evaluation.running.result_file import RESULTS, RunBusy, read_run, run_lock
from agentic_rag.evaluation.running.runner import RunEnd, drawn, run_evaluation
from agentic_rag.evaluation.running.tally import RunProgress
from agentic_rag.evaluation.running.variants import variants_of
from agentic_rag.knowledge_base import KnowledgeBase
from tests.evaluation.running.conftest import QUESTIONS, Policy
from tests.strategies.agent.playing import Model

AGENT = variants_of("agent")


def settings(**evaluation: object) -> Settings:
    return Settings(
        agent=AgentSettings(max_steps=3), evaluation=Evaluation.model_validate(evaluation)
    )


async def evaluate(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, run_dir: Path, **more: object
) -> RunEnd:
    evaluation = more.pop("evaluation", {"workers": 3})
    assert isinstance(evaluation, dict)
    given = {"variants": AGENT, "settings": settings(**evaluation), "model": policy.model, **more}
    variants = given.pop("variants")
    return await run_evaluation(dataset, variants, kb=kb, run_dir=run_dir, **given)  # type: ignore[arg-type]


async def test_the_tables_numbers_are_those_of_the_policy(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    end = await evaluate(dataset, kb, policy, tmp_path / "run")

    assert end.ended == "done"
    assert [result.qid for result in end.run.results] == list(QUESTIONS)
    assert {result.qid: result.outcome for result in end.run.results} == {
        **dict.fromkeys(QUESTIONS, "answered"),
        "failing": "failed",
        "absent": "unanswered",
    }
    scored = score_run(tmp_path / "run")
    [summary] = scored.summaries
    assert (summary.questions, summary.answered) == (7, 5)
    assert (summary.unanswered, summary.failed) == (1, 1)
    assert summary.contain is not None and summary.contain.mean == pytest.approx(1 / 7)
    assert summary.exact is not None and summary.exact.mean == 0
    # "ada brown designed it": 2 of 4 words right, 2 of 2 found.
    assert summary.f1 is not None and summary.f1.mean == pytest.approx((2 / 3 + 0.5) / 7)
    assert dict(summary.error_kinds) == {
        "failed": 1,
        "limit": 1,
        "never_surfaced": 1,
        "not_read": 2,  # `absent` too: it was found, and not read
        "read_but_lost": 1,
    }
    # Steps are turns of the model that could call a tool.
    steps = {one.qid: one.steps for one in scored.scores}
    assert {qid: steps[qid] for qid in ("right", "unread", "limit", "absent")} == {
        "right": 3,
        "unread": 2,
        "limit": 3,
        "absent": 2,
    }
    by_question = {one.qid: one for one in scored.scores}
    assert by_question["right"].citation_precision == 1
    assert by_question["right"].citation_recall == 1
    assert by_question["unsurfaced"].citation_precision == 0
    assert by_question["unread"].read_recall == 0
    assert by_question["unread"].surfaced_recall == 1
    assert by_question["lost"].read_recall == 1
    assert by_question["right"].retrieved_by.keys() == {"keyword_search", "read_chunk"}


async def test_a_second_call_asks_nothing_and_a_failed_question_only_when_told(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    await evaluate(dataset, kb, policy, tmp_path)
    before = dict(policy.asked)

    await evaluate(dataset, kb, policy, tmp_path)
    assert policy.asked == before

    again = await evaluate(dataset, kb, policy, tmp_path, retry_failed=True)

    assert {qid for qid in policy.asked if policy.asked[qid] != before[qid]} == {"failing"}
    tries = {result.qid: result.tries for result in again.run.results}
    assert tries == {**dict.fromkeys(QUESTIONS, 1), "failing": 2}
    failed = next(result for result in again.run.results if result.qid == "failing")
    assert "no such thing" in failed.error
    assert failed.answer is not None and failed.answer.status == "model_failed"
    assert len(again.run.results) == 7


@pytest.mark.parametrize("workers", [1, 5])
async def test_results_stand_in_the_order_of_the_questions_whatever_the_workers(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path, workers: int
) -> None:
    evaluation = {"workers": workers}
    end = await evaluate(
        dataset, kb, policy, tmp_path, evaluation=evaluation, variants=variants_of("agent,naive")
    )

    found = [(result.variant, result.qid) for result in end.run.results]
    assert found == [(name, qid) for name in ("agent", "naive") for qid in QUESTIONS]


def test_a_seed_draws_the_same_questions_each_time(dataset: Dataset) -> None:
    first = drawn(dataset.questions, 4, 7)

    assert first == drawn(dataset.questions, 4, 7)
    assert first != drawn(dataset.questions, 4, 8)
    assert len({question.qid for question in first}) == 4
    assert drawn(dataset.questions, 3, None) == dataset.questions[:3]
    assert drawn(dataset.questions, 99, 7) == drawn(dataset.questions, None, 7)


@pytest.mark.parametrize("fall", range(5))
async def test_stopped_anywhere_it_loses_no_question_and_asks_none_twice(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path, fall: int
) -> None:
    """Cancelled when `fall` results are on disk; a last line is cut short besides."""

    def stop(progress: RunProgress) -> None:
        if progress.done == fall:
            running.cancel()

    running = asyncio.ensure_future(
        evaluate(dataset, kb, policy, tmp_path, on_progress=stop, evaluation={"workers": 2})
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    kept = {result.qid for result in read_run(tmp_path).results}
    assert fall <= len(kept) <= fall + 2
    with (tmp_path / RESULTS).open("ab") as file:
        file.write(b'{"variant":"agent","qid":"rig')
    asked = dict(policy.asked)

    end = await evaluate(dataset, kb, policy, tmp_path)

    assert [result.qid for result in end.run.results] == list(QUESTIONS)
    assert all(policy.asked[qid] == asked[qid] for qid in kept)
    lines = (tmp_path / RESULTS).read_bytes().count(b"\n")
    assert lines == 7 + 1  # and the one that was cut short


async def test_a_run_of_something_else_is_not_gone_on_with(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    await evaluate(dataset, kb, policy, tmp_path, limit=1)

    with pytest.raises(AnotherRun, match=r"limit 1, not 2; .* another folder with -o"):
        await evaluate(dataset, kb, policy, tmp_path, limit=2)
    with pytest.raises(AnotherRun, match="the variants agent, not naive"):
        await evaluate(dataset, kb, policy, tmp_path, limit=1, variants=variants_of("naive"))
    with pytest.raises(AnotherRun, match="the model function:policy, not none"):
        await evaluate(
            dataset, kb, policy, tmp_path, limit=1, model="none", variants=variants_of("agent")
        )
    other = Settings(agent=AgentSettings(max_steps=4), model_timeout=9)
    with pytest.raises(AnotherRun, match=r"the setting agent\.max_steps 3, not 4; go on"):
        await evaluate(dataset, kb, policy, tmp_path, limit=1, settings=other)
    assert dict(read_run(tmp_path).info.settings) == {"agent.max_steps": 3}


async def test_two_programs_do_not_work_on_one_run(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    with run_lock(tmp_path), pytest.raises(RunBusy, match="Another program is at work"):
        await evaluate(dataset, kb, policy, tmp_path)


async def test_a_cost_ceiling_begins_no_more_questions_and_a_higher_one_goes_on(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    seen: list[RunProgress] = []
    policy.name = "gpt-4o-mini"  # $0.15 a million tokens in, $0.60 out
    ceiling = {"workers": 1, "max_cost": 5e-5}

    end = await evaluate(dataset, kb, policy, tmp_path, evaluation=ceiling, on_progress=seen.append)

    assert end.ended == "cost"
    assert 1 <= len(end.run.results) < 7
    assert seen[-1].cost >= 5e-5 > seen[-2].cost  # the question that reached it was the last
    assert seen[-1].cost_unknown == 0
    assert seen[-1].done == len(end.run.results)

    same = await evaluate(dataset, kb, policy, tmp_path, evaluation=ceiling)
    assert (same.ended, len(same.run.results)) == ("cost", len(end.run.results))

    more = await evaluate(dataset, kb, policy, tmp_path, evaluation={"max_cost": 1.0})
    assert (more.ended, len(more.run.results)) == ("done", 7)


async def test_what_has_no_price_is_counted_as_unknown_and_not_as_free(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    seen: list[RunProgress] = []

    await evaluate(dataset, kb, policy, tmp_path, on_progress=seen.append)

    assert seen[-1].cost == 0
    assert seen[-1].cost_unknown == 7
    assert (seen[-1].done, seen[-1].total, seen[-1].right) == (7, 7, 1)


async def test_what_the_judge_has_cost_counts_also_in_a_later_call(
    dataset: Dataset, kb: KnowledgeBase, policy: Policy, tmp_path: Path
) -> None:
    judge = open_judge(Settings(model="none"), tmp_path, Model("correct", name="gpt-4o").model)
    assert judge is not None
    first: list[RunProgress] = []
    await evaluate(dataset, kb, policy, tmp_path, judge=judge, on_progress=first.append)

    again = open_judge(Settings(model="none"), tmp_path, Model("correct", name="gpt-4o").model)
    second: list[RunProgress] = []
    await evaluate(dataset, kb, policy, tmp_path, judge=again, on_progress=second.append)

    assert first[-1].cost > 0
    assert second[-1].cost == pytest.approx(first[-1].cost)
    assert again is not None and again.usage.model_requests == 0


async def test_questions_that_fail_alike_one_after_another_end_the_run(
    kb: KnowledgeBase, dataset: Dataset, tmp_path: Path
) -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    broken = Policy(lambda qid, seen: ModelHTTPError(400, "policy", "the account is closed"))
    many = tuple(
        dataset.questions[0].model_copy(update={"qid": f"q{number}"}) for number in range(20)
    )
    from dataclasses import replace

    end = await evaluate(
        replace(dataset, questions=many), kb, broken, tmp_path, evaluation={"workers": 1}
    )

    assert end.ended == "failures"
    assert len(end.run.results) == 8
    assert "the account is closed" in end.problem
