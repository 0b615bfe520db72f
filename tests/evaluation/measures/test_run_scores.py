"""A run's directory scored: from results and verdicts on disk to the summary of each variant."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from agentic_rag.config import Evaluation, Settings
from agentic_rag.evaluation.measures.judging import open_judge
from agentic_rag.evaluation.measures.run_scores import score_run
from agentic_rag.evaluation.records import GoldQuestion, Result, RunInfo, Variant
from agentic_rag.evaluation.running.judged import Judged, judge_run
from agentic_rag.evaluation.running.result_file import ResultFile, begin_run, read_run
from agentic_rag.knowledge_base import KnowledgeBase
from tests.strategies.agent.playing import Model, play, read, search

QUESTIONS = (
    GoldQuestion(
        qid="1", question="Where was Ada Brown born?", answer="Hagwell", supporting=("ada",)
    ),
    # Without supporting ids: the text of chunks tells. No snippet of the search holds "month 17".
    GoldQuestion(qid="2", question="Which month was the last but two?", answer="month 17"),
    GoldQuestion(qid="3", question="When does the clock strike?", answer="noon"),
)


@pytest.fixture
async def run_dir(corpus: KnowledgeBase, ids: dict[str, str], tmp_path: Path) -> Path:
    info = RunInfo(
        dataset="d",
        dataset_hash="h",
        knowledge_base=str(corpus.directory),
        variants=(Variant(name="agent", strategy="agent"),),
        model="scripted",
    )
    begin_run(tmp_path, info, QUESTIONS)
    file = ResultFile(tmp_path)
    turns = (
        (search("Hagwell"), read(ids["ada"]), "In Hagwell."),
        (search("opened"), read(ids["bridge"]), "It was May."),
    )
    for gold, said in zip(QUESTIONS, turns, strict=False):
        answer = (await play(corpus, Model(*said), gold.question)).answer
        file.add(Result(variant="agent", qid=gold.qid, outcome="answered", answer=answer))
    file.add(Result(variant="agent", qid="3", outcome="failed", error="The model broke."))
    return tmp_path


def test_a_run_without_a_judge_is_scored_by_contain_match(run_dir: Path) -> None:
    scored = score_run(run_dir)
    assert scored.judge == ""
    assert [one.contain for one in scored.scores] == [True, False, False]
    assert [one.error_kind for one in scored.scores] == [None, "read_but_lost", "failed"]
    (summary,) = scored.summaries
    assert summary.contain is not None and summary.contain.mean == pytest.approx(1 / 3)
    assert (summary.questions, summary.failed, summary.judge) == (3, 1, None)
    assert summary.recall_at[5].n == 1  # of one question the supporting ids are known


async def test_a_run_is_judged_afterwards_and_by_whom_is_told(run_dir: Path) -> None:
    model = Model("correct", "incorrect", "question", name="judge")
    one_worker = Settings(model="none", evaluation=Evaluation(workers=1))
    judge = open_judge(one_worker, run_dir, model.model)
    assert judge is not None
    assert await judge_run(read_run(run_dir), judge) == Judged(3, 3)
    assert model.count == 3  # two verdicts and a why: the failed one is not asked about
    scored = score_run(run_dir)
    assert scored.judge == judge.chat.name
    assert [one.judge for one in scored.scores] == [True, False, False]
    kinds = [one.error_kind for one in scored.scores]
    assert kinds == [None, "misread_question", "failed"]
    assert await judge_run(read_run(run_dir), judge) == Judged(3, 3)
    assert model.count == 3


async def test_a_judge_that_fails_again_and_again_is_asked_no_more(run_dir: Path) -> None:
    questions = tuple(QUESTIONS[0].model_copy(update={"qid": f"q{n}"}) for n in range(12))
    answered = read_run(run_dir).results[0]
    broken = Model(ModelHTTPError(401, "judge", {"error": {"message": "no such key"}}))
    one_worker = Settings(model="none", evaluation=Evaluation(workers=1))
    judge = open_judge(one_worker, run_dir, broken.model)
    assert judge is not None
    run = replace(
        read_run(run_dir),
        questions=questions,
        results=tuple(answered.model_copy(update={"qid": question.qid}) for question in questions),
    )

    judged = await judge_run(run, judge)

    assert (judged.verdicts, judged.total, judged.ended) == (0, 12, True)
    assert broken.count == 8
    assert "no such key" in judged.problem
