"""A report as CSV: a line for each question and system, with every measure; for spreadsheets and
data frames. Numbers are unrounded, shares from 0 to 1, an empty field is "not known"."""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from agentic_rag.evaluation.measures.scored import CUTOFFS, Scores
from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.evaluation.report.systems import System

_MEASURES = (
    "contain",
    "exact",
    "f1",
    "judge",
    "citation_precision",
    "citation_recall",
    "surfaced_recall",
    "read_recall",
    "retrieved_tokens",
    "steps",
    "input_tokens",
    "output_tokens",
    "cost",
    "seconds",
)
HEAD = (
    "run",
    "variant",
    "model",
    "qid",
    "kind",
    "question",
    "gold_answer",
    "answer",
    "outcome",
    "status",
    "right",
    "error_kind",
    "error",
    "tries",
    *_MEASURES,
    *(f"recall_at_{k}" for k in CUTOFFS),
)
# What makes a spreadsheet take a text for a formula and run it (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_parts(systems: Sequence[System]) -> Iterator[str]:
    """The lines, the head first."""
    yield _line(HEAD)
    for system in systems:
        golds = {one.qid: one for one in system.scored.run.questions}
        results = (one for one in system.scored.run.results if one.variant == system.variant)
        for result, scores in zip(results, system.scores, strict=True):
            yield _line(_row(system, result, golds[result.qid], scores))


def _row(system: System, result: Result, gold: GoldQuestion, scores: Scores) -> list[Any]:
    recall = scores.recall_at or {}
    return [
        _text(str(system.scored.run.directory)),
        _text(system.variant),
        _text(system.model),
        _text(result.qid),
        _text(gold.kind),
        _text(gold.question),
        _text(" | ".join(gold.golds)),
        _text(result.answer.text if result.answer else ""),
        result.outcome,
        scores.status,
        _value(scores.right),
        scores.error_kind,
        _text(result.error),
        result.tries,
        *(_value(getattr(scores, name)) for name in _MEASURES),
        *(recall.get(k) for k in CUTOFFS),
    ]


def _text(text: str) -> str:
    """Text that a spreadsheet shows as it is: an apostrophe before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _value(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def _line(fields: Sequence[Any]) -> str:
    file = StringIO()
    csv.writer(file, lineterminator="\n").writerow(fields)
    return file.getvalue()
