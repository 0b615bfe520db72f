"""The table of systems: a row for each, a column for each measure that some system has.

Shared by the page and Markdown. What a column means stands in `words.toml` under `KEY_meaning`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentic_rag.evaluation.measures.intervals import Estimate
from agentic_rag.evaluation.measures.summary import Summary

RECALL_K = 5  # the k of the table; the plot has them all


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in the table: `text`, and the 95 % interval of it where there is one."""

    text: str
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A measure. `key` is its name in `words.toml`; `cell` gives None where a system lacks it."""

    key: str
    cell: Callable[[Summary], Cell | None]


def percent(value: float) -> str:
    """A share as percent, with one decimal."""
    return f"{100 * value:.1f}"


def whole(value: float) -> str:
    """A count, with commas for thousands."""
    return f"{value:,.0f}"


def tenth(value: float) -> str:
    """With one decimal."""
    return f"{value:,.1f}"


def dollars(value: float) -> str:
    """An amount of US dollars: small ones to a hundredth of a cent."""
    return "0" if value == 0 else f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def columns(summaries: Sequence[Summary]) -> list[Column]:
    """The columns that some of `summaries` has something in."""
    return [one for one in _ALL if any(one.cell(summary) for summary in summaries)]


def _mean(
    key: str, of: Callable[[Summary], Estimate | None], form: Callable[[float], str]
) -> Column:
    def cell(summary: Summary) -> Cell | None:
        found = of(summary)
        if found is None:
            return None
        return Cell(form(found.mean), f"{form(found.low)}–{form(found.high)}")

    return Column(key, cell)


def _count(key: str, of: Callable[[Summary], int], *, always: bool = True) -> Column:
    def cell(summary: Summary) -> Cell | None:
        return Cell(whole(of(summary))) if always or of(summary) else None

    return Column(key, cell)


def _cost(summary: Summary) -> Cell | None:
    if summary.cost_unknown == summary.questions:
        return None
    return Cell(dollars(summary.cost_known) + ("+" if summary.cost_unknown else ""))


def _seconds(of: Callable[[Summary], float | None]) -> Callable[[Summary], Cell | None]:
    def cell(summary: Summary) -> Cell | None:
        value = of(summary)
        return None if value is None else Cell(f"{value:,.2f}" if value < 10 else tenth(value))

    return cell


_ALL = (
    _count("questions", lambda one: one.questions),
    _mean("judge", lambda one: one.judge, percent),
    _mean("contain", lambda one: one.contain, percent),
    _mean("exact", lambda one: one.exact, percent),
    _mean("f1", lambda one: one.f1, percent),
    _count("failed", lambda one: one.failed),
    _count("unanswered", lambda one: one.unanswered),
    _count("unjudged", lambda one: one.unjudged, always=False),
    _mean("citation_precision", lambda one: one.citation_precision, percent),
    _mean("citation_recall", lambda one: one.citation_recall, percent),
    _mean("recall", lambda one: one.recall_at.get(RECALL_K), percent),
    _mean("read_recall", lambda one: one.read_recall, percent),
    _mean("retrieved_tokens", lambda one: one.retrieved_tokens, whole),
    _mean("steps", lambda one: one.steps, tenth),
    _mean("input_tokens", lambda one: one.input_tokens, whole),
    _mean("output_tokens", lambda one: one.output_tokens, whole),
    Column("cost", _cost),
    Column("p50", _seconds(lambda one: one.p50)),
    Column("p95", _seconds(lambda one: one.p95)),
)
