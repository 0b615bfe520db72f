"""What a prepared dataset holds, and what in it would spoil a measurement.

In: questions and, where the corpus comes with them, chunks. Out: a `Check` of counts and findings;
nothing is changed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentic_rag.evaluation.formats.prepared import CorpusChunk, Prepared
from agentic_rag.evaluation.measures.matching import contains, normalised
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.text.tokens import count_tokens

# Answers that are given about a passage and do not stand in it (HotpotQA's comparisons).
_VERDICTS = frozenset({"yes", "no", "是", "否", "不是", "对", "不对", "有", "没有"})


@dataclass(frozen=True, slots=True)
class Check:
    """What was found. Findings are ids of questions, but `missing`, which is pairs of a question's
    id and a supporting id that is no chunk, and `equal_chunks`, which is ids of chunks.

    `chunks`, `chunk_tokens` (o200k, the mean) are None where the corpus is indexed apart; then
    neither `missing` nor `answer_elsewhere` can be told.
    """

    questions: int
    kinds: dict[str, int]
    chunks: int | None
    chunk_tokens: float | None
    supporting: float  # ids a question, the mean over those with any
    no_answer: tuple[str, ...]
    no_supporting: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    answer_elsewhere: tuple[str, ...]
    same_question: tuple[str, ...]
    equal_chunks: tuple[str, ...]


def check(prepared: Prepared) -> Check:
    """Counts and findings of a dataset."""
    questions, chunks = prepared.questions, prepared.chunks
    by_id = {chunk.chunk_id: chunk for chunk in chunks or ()}
    counts = [len(question.supporting) for question in questions if question.supporting]
    return Check(
        questions=len(questions),
        kinds=dict(Counter(question.kind for question in questions if question.kind)),
        chunks=None if chunks is None else len(chunks),
        chunk_tokens=_mean([count_tokens(chunk.text) for chunk in chunks]) if chunks else None,
        supporting=_mean(counts),
        no_answer=tuple(question.qid for question in questions if not question.golds),
        no_supporting=tuple(question.qid for question in questions if not question.supporting),
        missing=tuple(
            (question.qid, gold)
            for question in questions
            for gold in question.supporting
            if chunks is not None and gold not in by_id
        ),
        answer_elsewhere=tuple(
            question.qid
            for question in questions
            if _speaks_elsewhere(question, [by_id[g] for g in question.supporting if g in by_id])
        ),
        same_question=_seen_before((q.qid, normalised(q.question)) for q in questions),
        equal_chunks=_seen_before((chunk.chunk_id, chunk.text) for chunk in chunks or ()),
    )


def _speaks_elsewhere(question: GoldQuestion, supporting: Sequence[CorpusChunk]) -> bool:
    """Whether no supporting chunk holds a form of the answer, where one could be expected to."""
    golds = question.golds
    if not supporting or not golds or any(normalised(gold) in _VERDICTS for gold in golds):
        return False
    return not any(contains(chunk.text, golds) for chunk in supporting)


def _seen_before(named: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The names of those whose text an earlier one has."""
    seen: set[str] = set()
    again = []
    for name, text in named:
        if text in seen:
            again.append(name)
        seen.add(text)
    return tuple(again)


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
