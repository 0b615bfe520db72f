"""What the page holds of each question: in one list what can be looked through at once, and apart
from it, for each answer, the trace, which the page renders only when it is opened."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentic_rag.evaluation.measures.gold import named
from agentic_rag.evaluation.measures.scored import Scores
from agentic_rag.evaluation.measures.surfaced import Surfaced, surfaced
from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.evaluation.report.systems import System
from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.trace import HitRecord

_QuestionKey = tuple[str, str]  # the dataset's hash, and the id in it


def listing(systems: Sequence[System]) -> dict[str, Any]:
    """The questions of all systems, and what became of each in each: `answers` has one entry for a
    question and system, by their numbers."""
    numbers = _numbers(systems)
    several = len({key[0] for key in numbers}) > 1
    questions: dict[_QuestionKey, dict[str, Any]] = {}
    for system in systems:
        for question in system.scored.run.questions:
            key = _key(system, question.qid)
            if key in numbers and key not in questions:
                questions[key] = _question(question, system.dataset if several else "")
    return {
        "systems": [one.name for one in systems],
        "questions": [questions[key] for key in numbers],
        "answers": [
            _answer(numbers[_key(system, result.qid)], at, result, scores)
            for at, system in enumerate(systems)
            for result, scores in _results(system)
        ],
    }


def traces(systems: Sequence[System]) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each answer its id on the page (`question-system`, by their numbers) and its trace."""
    numbers = _numbers(systems)
    for at, system in enumerate(systems):
        golds = {one.qid: one for one in system.scored.run.questions}
        for result, _ in _results(system):
            if result.answer is not None:
                number = numbers[_key(system, result.qid)]
                yield f"{number}-{at}", _trace(result.answer, golds[result.qid])


def script_json(value: object) -> str:
    """JSON that can stand in a `<script>`: nothing in it ends the element or begins another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _key(system: System, qid: str) -> _QuestionKey:
    return system.scored.run.info.dataset_hash, qid


def _numbers(systems: Sequence[System]) -> dict[_QuestionKey, int]:
    """Questions that some system has a result of, in the order of the runs."""
    asked = (
        _key(system, question.qid)
        for system in systems
        for done in [{one.qid for one in system.scores}]
        for question in system.scored.run.questions
        if question.qid in done
    )
    return {key: number for number, key in enumerate(dict.fromkeys(asked))}


def _results(system: System) -> Iterator[tuple[Result, Scores]]:
    results = [one for one in system.scored.run.results if one.variant == system.variant]
    return zip(results, system.scores, strict=True)


def _question(question: GoldQuestion, dataset: str) -> dict[str, Any]:
    return {
        "qid": question.qid,
        "text": question.question,
        "golds": question.golds,
        "kind": question.kind,
        "dataset": dataset,
    }


def _answer(question: int, system: int, result: Result, scores: Scores) -> dict[str, Any]:
    return {
        "question": question,
        "system": system,
        "outcome": result.outcome,
        "status": scores.status,
        "right": scores.right,
        "error_kind": scores.error_kind,
        "text": result.answer.text if result.answer else "",
        "error": result.error,
        "tries": result.tries,
        "f1": scores.f1,
        "retrieved_tokens": scores.retrieved_tokens,
        "steps": scores.steps,
        "input_tokens": scores.input_tokens,
        "output_tokens": scores.output_tokens,
        "cost": scores.cost,
        "seconds": scores.seconds,
    }


def _trace(answer: Answer, question: GoldQuestion) -> dict[str, Any]:
    seen = surfaced(answer)
    golds = question.supporting
    everything: tuple[HitRecord | Citation, ...] = (*seen.hits, *seen.read, *answer.citations)
    return {
        "gold": [_gold(one, seen, answer.citations) for one in golds],
        "gold_chunks": sorted({_id(one) for one in everything if named(one, golds)}),
        "cited_chunks": sorted({_id(one) for one in answer.citations}),
        "citations": [one.model_dump(mode="json", exclude_none=True) for one in answer.citations],
        "unsupported": answer.unsupported,
        "events": [event.model_dump(mode="json", exclude_none=True) for event in answer.trace],
    }


def _gold(gold: str, seen: Surfaced, citations: Sequence[Citation]) -> Mapping[str, Any]:
    """How far a supporting chunk came: its place among the hits (from 1), whether it was read, and
    whether it is cited."""
    places = (place for place, hit in enumerate(seen.hits, start=1) if named(hit, [gold]))
    return {
        "id": gold,
        "rank": next(places, None),
        "read": any(named(hit, [gold]) for hit in seen.read),
        "cited": any(named(one, [gold]) for one in citations),
    }


def _id(found: HitRecord | Citation) -> str:
    """What the page knows a passage by: its chunk id; from the web, its address."""
    return found.chunk_id or found.uri
