"""Two systems on the same questions: which is right where the other is wrong, and whether the
difference is more than chance (McNemar's exact test)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag.errors import AragError
from agentic_rag.evaluation.measures.intervals import Estimate, Paired, estimate, mcnemar
from agentic_rag.evaluation.measures.scored import Scores
from agentic_rag.evaluation.records import GoldQuestion, Outcome
from agentic_rag.evaluation.report.headline import RECALL_K
from agentic_rag.evaluation.report.systems import Measure, System, common_measure

Only = Literal["first", "second"]


class NotComparable(AragError):
    """Two systems share no question that can be told right or wrong in both."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one system made of a question. `why` is the kind of its error and `error` what it ended
    in; each "" for none."""

    answer: str
    outcome: Outcome
    why: str
    error: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A question that only one of the two gets right: `right` says which."""

    question: GoldQuestion
    right: Only
    first: Side
    second: Side


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of both on the questions that have it in both: the means, and the mean of the
    differences, second less first, with its 95 % interval."""

    key: str
    first: float
    second: float
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Comparison:
    """`paired` counts the questions that `measure` tells of in both. `untold` are questions of both
    that it does not; `only_asked` is how many have a result in the first or the second alone.
    `notes` are sentences on what makes the two differ beside the systems."""

    first: System
    second: System
    measure: Measure
    paired: Paired
    changed: tuple[Changed, ...]
    differences: tuple[Difference, ...]
    untold: int
    only_asked: tuple[int, int]
    notes: tuple[str, ...]


def compare(first: System, second: System, measure: Measure | None = None) -> Comparison:
    """`first` and `second` on the questions of both, in the order of the first.

    `measure` says what is right; None: by the judge where both are judged, else contain-match.
    Raises `NotComparable` where nothing can be compared.
    """
    measure = measure or common_measure([first, second])
    ones, others = _by_id(first), _by_id(second)
    golds = {one.qid: one for one in first.scored.run.questions}
    asked = {one.qid: one.question for one in second.scored.run.questions}
    same = [qid for qid in ones if qid in others and asked[qid] == golds[qid].question]
    rights = {
        qid: (one, other)
        for qid in same
        if (one := _right(ones[qid].scores, measure)) is not None
        and (other := _right(others[qid].scores, measure)) is not None
    }
    if not rights:
        raise NotComparable(_why_not(first, second, measure, same))
    return Comparison(
        first=first,
        second=second,
        measure=measure,
        paired=mcnemar([one for one, _ in rights.values()], [two for _, two in rights.values()]),
        changed=tuple(
            Changed(golds[qid], "first" if one else "second", ones[qid].side, others[qid].side)
            for qid, (one, other) in rights.items()
            if one != other
        ),
        differences=tuple(_differences([(ones[qid].scores, others[qid].scores) for qid in same])),
        untold=len(same) - len(rights),
        only_asked=(len(ones) - len(same), len(others) - len(same)),
        notes=tuple(_notes(first, second, measure)),
    )


@dataclass(frozen=True, slots=True)
class _Done:
    scores: Scores
    side: Side


def _by_id(system: System) -> dict[str, _Done]:
    results = (one for one in system.scored.run.results if one.variant == system.variant)
    return {
        result.qid: _Done(
            scores,
            Side(
                answer=result.answer.text if result.answer else "",
                outcome=result.outcome,
                why=scores.error_kind or "",
                error=result.error,
            ),
        )
        for result, scores in zip(results, system.scores, strict=True)
    }


def _right(scores: Scores, measure: Measure) -> bool | None:
    return scores.judge if measure == "judge" else scores.contain


# By their keys in `words.toml`.
_COMPARED: Mapping[str, Callable[[Scores], float | None]] = {
    "f1": lambda one: one.f1,
    "citation_precision": lambda one: one.citation_precision,
    "citation_recall": lambda one: one.citation_recall,
    "recall": lambda one: one.recall_at.get(RECALL_K) if one.recall_at else None,
    "read_recall": lambda one: one.read_recall,
    "retrieved_tokens": lambda one: one.retrieved_tokens,
    "steps": lambda one: one.steps,
    "input_tokens": lambda one: one.input_tokens,
    "output_tokens": lambda one: one.output_tokens,
    "cost": lambda one: one.cost,
    "time": lambda one: one.seconds,
}


def _differences(pairs: Sequence[tuple[Scores, Scores]]) -> Iterator[Difference]:
    for key, of in _COMPARED.items():
        known = [
            (one, other)
            for first, second in pairs
            if (one := of(first)) is not None and (other := of(second)) is not None
        ]
        difference = estimate([other - one for one, other in known])
        if difference:
            yield Difference(
                key=key,
                first=sum(one for one, _ in known) / len(known),
                second=sum(other for _, other in known) / len(known),
                difference=difference,
            )


def _notes(first: System, second: System, measure: Measure) -> Iterator[str]:
    if first.scored.run.info.dataset_hash != second.scored.run.info.dataset_hash:
        yield (
            "The two runs were begun with different questions.json; only questions of one id and "
            "one wording are compared."
        )
    judges = first.scored.judge, second.scored.judge
    if measure == "judge" and judges[0] != judges[1]:
        yield f"The judges differ: {judges[0]} and {judges[1]}."


def _why_not(first: System, second: System, measure: Measure, same: Sequence[str]) -> str:
    if not same:
        return (
            f"{first.name} and {second.name} have no question in common; compare runs of one "
            "dataset."
        )
    if measure == "judge":
        return (
            f"No question of {first.name} and {second.name} has a verdict in both; run "
            "`arag eval judge` on both, or compare by contain-match with --by contain."
        )
    return (
        f"No question of {first.name} and {second.name} has a gold answer, so that none can be "
        "told right or wrong."
    )
