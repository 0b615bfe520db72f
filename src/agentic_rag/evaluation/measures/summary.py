"""What a variant is worth over all its questions: means with 95 % intervals, totals, counts."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rag.evaluation.measures.intervals import Estimate, estimate
from agentic_rag.evaluation.measures.scored import CUTOFFS, ERROR_KINDS, ErrorKind, Scores


@dataclass(frozen=True, slots=True)
class KindSummary:
    """The same for the questions of one kind ("bridge", "2hop")."""

    kind: str
    questions: int
    contain: Estimate | None
    judge: Estimate | None
    f1: Estimate | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The measures of a variant.

    `questions` are those with a result = `answered` + `unanswered` + `failed`. Accuracies
    (`contain`, `exact`, `f1`, `judge`) count unanswered and failed ones as wrong; `judge` leaves
    out the `unjudged`. An estimate is None where no question has the measure. Tokens and steps are
    means a question, over those of which something is left. `cost` is the total in US dollars, None
    where that of any question is unknown: then `cost_known` is the sum of the others and
    `cost_unknown` how many lack it. `p50` and `p95` are seconds. `error_kinds` counts wrong
    answers by kind, in the order of `ERROR_KINDS`, those that occur.
    """

    variant: str
    questions: int
    answered: int
    unanswered: int
    failed: int
    unjudged: int
    contain: Estimate | None
    exact: Estimate | None
    f1: Estimate | None
    judge: Estimate | None
    citation_precision: Estimate | None
    citation_recall: Estimate | None
    recall_at: Mapping[int, Estimate]
    surfaced_recall: Estimate | None
    read_recall: Estimate | None
    retrieved_tokens: Estimate | None
    retrieved_by: Mapping[str, float]
    steps: Estimate | None
    input_tokens: Estimate | None
    output_tokens: Estimate | None
    cost: float | None
    cost_known: float
    cost_unknown: int
    p50: float | None
    p95: float | None
    error_kinds: Mapping[ErrorKind, int]
    by_kind: tuple[KindSummary, ...]


def summarise(variant: str, scores: Sequence[Scores]) -> Summary:
    """The summary of `scores`, all of one variant."""
    outcomes = Counter(one.outcome for one in scores)
    costs = [one.cost for one in scores if one.cost is not None]
    unknown = len(scores) - len(costs)
    seconds = [one.seconds for one in scores if one.seconds is not None]
    kinds = Counter(one.error_kind for one in scores if one.error_kind is not None)
    return Summary(
        variant=variant,
        questions=len(scores),
        answered=outcomes["answered"],
        unanswered=outcomes["unanswered"],
        failed=outcomes["failed"],
        unjudged=sum(one.unjudged for one in scores),
        contain=_mean(scores, lambda one: one.contain),
        exact=_mean(scores, lambda one: one.exact),
        f1=_mean(scores, lambda one: one.f1),
        judge=_mean(scores, lambda one: one.judge),
        citation_precision=_mean(scores, lambda one: one.citation_precision),
        citation_recall=_mean(scores, lambda one: one.citation_recall),
        recall_at=_recall_at(scores),
        surfaced_recall=_mean(scores, lambda one: one.surfaced_recall),
        read_recall=_mean(scores, lambda one: one.read_recall),
        retrieved_tokens=_mean(scores, lambda one: one.retrieved_tokens),
        retrieved_by=_retrieved_by(scores),
        steps=_mean(scores, lambda one: one.steps),
        input_tokens=_mean(scores, lambda one: one.input_tokens),
        output_tokens=_mean(scores, lambda one: one.output_tokens),
        cost=None if unknown else sum(costs),
        cost_known=sum(costs),
        cost_unknown=unknown,
        p50=_percentile(seconds, 50),
        p95=_percentile(seconds, 95),
        error_kinds={kind: kinds[kind] for kind in ERROR_KINDS if kinds[kind]},
        by_kind=tuple(_by_kind(scores)),
    )


def _mean(scores: Sequence[Scores], of: Callable[[Scores], float | None]) -> Estimate | None:
    return estimate([value for value in map(of, scores) if value is not None])


def _recall_at(scores: Sequence[Scores]) -> dict[int, Estimate]:
    estimates = {
        k: estimate([one.recall_at[k] for one in scores if one.recall_at and k in one.recall_at])
        for k in CUTOFFS
    }
    return {k: found for k, found in estimates.items() if found is not None}


def _retrieved_by(scores: Sequence[Scores]) -> dict[str, float]:
    """Mean tokens a question by tool or step, the most first."""
    told = [one for one in scores if one.retrieved_tokens is not None]
    sums: Counter[str] = Counter()
    for one in told:
        sums.update(one.retrieved_by)
    return {name: total / len(told) for name, total in sums.most_common()}


def _percentile(values: Sequence[float], percent: float) -> float | None:
    """By linear interpolation between the two nearest values."""
    return float(np.percentile(values, percent)) if values else None


def _by_kind(scores: Sequence[Scores]) -> Iterable[KindSummary]:
    """In the order in which the kinds come up; nothing where no question has one."""
    for kind in dict.fromkeys(one.kind for one in scores if one.kind):
        own = [one for one in scores if one.kind == kind]
        yield KindSummary(
            kind=kind,
            questions=len(own),
            contain=_mean(own, lambda one: one.contain),
            judge=_mean(own, lambda one: one.judge),
            f1=_mean(own, lambda one: one.f1),
        )
