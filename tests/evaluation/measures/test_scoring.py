"""Scores of real runs, known in advance, and where the wrong ones went wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.evaluation.measures.scored import Judgement, Scores
from agentic_rag.evaluation.measures.scoring import score
from agentic_rag.evaluation.measures.summary import summarise
from agentic_rag.evaluation.records import GoldQuestion, Outcome, Result
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.run import ask
from agentic_rag.strategies.trace import Usage
from tests.strategies.agent.playing import Model, play, read, search

GOLD = GoldQuestion(
    qid="1",
    question="Where was the woman born who opened the Oriole Bridge?",
    answer="Hagwell",
    supporting=("bridge", "ada"),
    kind="bridge",
)


def result_of(answer: Answer | None, outcome: Outcome = "answered", qid: str = "1") -> Result:
    return Result(variant="agent", qid=qid, outcome=outcome, answer=answer)


async def answered(corpus: KnowledgeBase, *turns: Any, **agent: Any) -> Answer:
    return (await play(corpus, Model(*turns), GOLD.question, **agent)).answer


async def test_a_right_answer_has_these_scores(corpus: KnowledgeBase, ids: dict[str, str]) -> None:
    answer = await answered(
        corpus,
        search("strikes"),
        search("Oriole"),
        search("Ada Brown"),
        read(ids["bridge"], ids["ada"]),
        f"In Hagwell [{ids['ada']}]. The clock strikes [{ids['clock']}].",
    )
    scores = score(result_of(answer), GOLD)
    assert (scores.contain, scores.exact, scores.judge, scores.right) == (True, False, None, True)
    assert scores.f1 == pytest.approx(0.4)  # in hagwell clock strikes: P 1/4, R 1
    assert (scores.citation_precision, scores.citation_recall) == (0.5, 0.5)
    # In order of appearance: the clock, the bridge, then Ada.
    assert scores.recall_at == {1: 0.0, 2: 0.5, 5: 1.0, 10: 1.0}
    assert (scores.surfaced_recall, scores.read_recall) == (1.0, 1.0)
    assert (scores.steps, scores.error_kind, scores.status) == (5, None, "answered")
    assert scores.retrieved_tokens == sum(scores.retrieved_by.values()) > 0
    assert scores.kind == "bridge"


async def kind_of(answer: Answer, gold: GoldQuestion = GOLD, **more: Any) -> str | None:
    return score(result_of(answer), gold, **more).error_kind


async def test_a_wrong_answer_is_placed_by_its_trace(
    corpus: KnowledgeBase, ids: dict[str, str]
) -> None:
    both = read(ids["bridge"], ids["ada"])
    assert await kind_of(await answered(corpus, search("strikes"), "Ulm.")) == "never_surfaced"
    one = await answered(corpus, search("Oriole"), read(ids["bridge"]), "Ulm.")
    assert await kind_of(one) == "never_surfaced"  # one of two is not enough
    found = await answered(corpus, search("Ada Brown"), read(ids["ada"]), "Ulm.")
    assert await kind_of(found) == "not_read"
    assert await kind_of(await answered(corpus, both, "Ulm.")) == "read_but_lost"
    limited = await answered(corpus, both, "Ulm.", max_steps=1)
    assert limited.status == "forced_by_steps"
    assert await kind_of(limited) == "limit"
    assert await kind_of(await answered(corpus, both, "In Hagwell.", max_steps=1)) is None


async def test_without_supporting_ids_the_text_of_chunks_tells(
    corpus: KnowledgeBase, ids: dict[str, str]
) -> None:
    gold = GOLD.model_copy(update={"supporting": ()})
    missed = await answered(corpus, search("strikes"), "Ulm.")
    assert await kind_of(missed, gold) == "never_surfaced"
    found = await answered(corpus, search("Ada Brown"), "Ulm.")
    assert await kind_of(found, gold) == "not_read"
    lost = await answered(corpus, read(ids["ada"]), "Ulm.")
    assert await kind_of(lost, gold) == "read_but_lost"
    born_1 = gold.model_copy(update={"answer": "month 17"})  # in no snippet of this search
    cut = await answered(corpus, search("opened"), read(ids["bridge"]), "Ulm.")

    def texts(wanted: Sequence[str]) -> Mapping[str, str]:
        return {c.chunk_id: c.text for c in corpus.snapshot().read_chunk(wanted).chunks}

    assert await kind_of(cut, born_1, texts=texts) == "read_but_lost"


async def test_naive_is_placed_by_its_passages(corpus: KnowledgeBase, ids: dict[str, str]) -> None:
    answer = await ask(
        corpus,
        GOLD.question,
        strategy="naive",
        model=Model("In Ulm.").model,
        settings=Settings(model="none"),
    )
    assert await kind_of(answer) == "read_but_lost"
    nothing = GOLD.model_copy(update={"supporting": ("no such chunk",)})
    assert await kind_of(answer, nothing) == "never_surfaced"


def bare(text: str, **more: Any) -> Answer:
    given: dict[str, Any] = {"status": "answered", "strategy": "naive", "model": "m", **more}
    return Answer(question=GOLD.question, text=text, **given)


def test_failed_and_unanswered_questions_count_as_wrong_whatever_their_text() -> None:
    failed = score(result_of(None, "failed"), GOLD)
    assert (failed.contain, failed.exact, failed.f1) == (False, False, 0.0)
    assert (failed.error_kind, failed.steps, failed.cost) == ("failed", None, None)
    assert failed.recall_at is None
    passages = bare("Hagwell", status="model_failed")
    unanswered = score(result_of(passages, "unanswered"), GOLD)
    assert (unanswered.contain, unanswered.error_kind) == (False, "failed")
    refused = score(result_of(bare("Not there.", status="insufficient"), "unanswered"), GOLD)
    assert refused.error_kind == "never_surfaced"
    assert (refused.citation_precision, refused.citation_recall) == (None, None)


def test_what_is_measured_is_what_the_model_wrote() -> None:
    listed = bare("Unknown.\n\n1. Hagwell [1]", raw_text="Unknown.")
    assert score(result_of(listed), GOLD).contain is False
    assert score(result_of(bare("1. Hagwell [1]")), GOLD).contain is True  # no model wrote it


def test_without_a_gold_answer_only_retrieval_is_measured() -> None:
    gold = GOLD.model_copy(update={"answer": ""})
    scores = score(result_of(bare("Ulm")), gold)
    assert (scores.contain, scores.exact, scores.f1, scores.right) == (None, None, None, None)
    assert scores.error_kind is None and scores.surfaced_recall == 0.0


def test_the_judge_decides_what_is_wrong_where_it_was_asked() -> None:
    result = result_of(bare("In Hagwell"))
    agreed = score(result, GOLD, Judgement(correct=True))
    assert (agreed.judge, agreed.right, agreed.error_kind) == (True, True, None)
    against = score(result, GOLD, Judgement(correct=False))
    assert (against.contain, against.right, against.error_kind) == (True, False, "never_surfaced")
    unclear = score(result, GOLD, Judgement(correct=None, said="perhaps"))
    assert (unclear.judge, unclear.unjudged, unclear.right) == (None, True, None)
    assert unclear.error_kind is None


async def test_the_judge_splits_what_was_lost(corpus: KnowledgeBase, ids: dict[str, str]) -> None:
    answer = await answered(corpus, read(ids["bridge"], ids["ada"]), "Ulm.")
    assert await kind_of(answer, why="wrong_entity") == "wrong_entity"
    missed = await answered(corpus, search("strikes"), "Ulm.")
    assert await kind_of(missed, why="wrong_entity") == "never_surfaced"


def scores_of(*texts: str | None, cost: float | None = 0.5) -> list[Scores]:
    """Answers to GOLD; None is a failed question. The n-th took n seconds."""
    made = []
    for number, text in enumerate(texts, start=1):
        usage = Usage(input_tokens=100 * number, output_tokens=10, cost=cost)
        answer = None if text is None else bare(text, seconds=number, usage=usage)
        outcome: Outcome = "failed" if text is None else "answered"
        made.append(score(result_of(answer, outcome, str(number)), GOLD))
    return made


def test_a_summary_counts_failed_ones_as_wrong_and_shows_them_apart() -> None:
    summary = summarise("agent", scores_of("Hagwell", "Ulm", "Hagwell", None))
    assert (summary.questions, summary.answered, summary.failed) == (4, 3, 1)
    assert summary.contain is not None
    assert (summary.contain.mean, summary.contain.n) == (0.5, 4)
    assert summary.contain.low < 0.5 < summary.contain.high
    assert summary.f1 is not None and summary.f1.mean == 0.5
    assert summary.input_tokens is not None and summary.input_tokens.mean == 200  # of three
    assert (summary.p50, summary.p95) == (2.0, pytest.approx(2.9))
    assert summary.error_kinds == {"failed": 1, "never_surfaced": 1}
    assert [(kind.kind, kind.questions) for kind in summary.by_kind] == [("bridge", 4)]
    assert summary.judge is None and summary.unjudged == 0


def test_a_total_cost_is_told_only_where_that_of_every_question_is_known() -> None:
    known = summarise("agent", scores_of("Hagwell", "Ulm"))
    assert (known.cost, known.cost_known, known.cost_unknown) == (1.0, 1.0, 0)
    part = summarise("agent", [*scores_of("Hagwell"), *scores_of("Ulm", cost=None)])
    assert (part.cost, part.cost_known, part.cost_unknown) == (None, 0.5, 1)


def test_the_judged_accuracy_leaves_out_what_has_no_verdict() -> None:
    result = result_of(bare("Hagwell"))
    verdicts = (True, True, False, None)
    scores = [score(result, GOLD, Judgement(correct)) for correct in verdicts]
    summary = summarise("agent", scores)
    assert summary.judge is not None
    assert (summary.judge.mean, summary.judge.n) == (pytest.approx(2 / 3), 3)
    assert summary.unjudged == 1


def test_no_questions_have_a_summary_without_numbers() -> None:
    empty = summarise("agent", [])
    assert (empty.questions, empty.contain, empty.cost, empty.p50) == (0, None, 0, None)
    assert empty.by_kind == () and empty.recall_at == {} and empty.retrieved_by == {}
