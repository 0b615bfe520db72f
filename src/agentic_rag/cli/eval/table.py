"""The table of a run in the terminal, and the same as JSON."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentic_rag.cli import streams

if TYPE_CHECKING:
    from agentic_rag.evaluation.measures.intervals import Estimate
    from agentic_rag.evaluation.measures.run_scores import ScoredRun
    from agentic_rag.evaluation.measures.summary import Summary


def show_table(scored: "ScoredRun") -> None:
    """Print a line for each variant, and what the columns are."""
    from rich.table import Table

    info = scored.run.info
    title = f"{info.dataset}, {info.model}"
    table = Table(
        title=title, title_justify="left", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column("variant", overflow="fold")  # wraps before a figure is cut
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for summary in scored.summaries:
        table.add_row(*_row(summary))
    streams.console().print(table)
    for line in _LEGEND:
        streams.out(line)


_COLUMNS = (
    "n",
    "fail",
    "none",
    "judge",
    "contain",
    "95 %",
    "F1",
    "R@5",
    "tokens",
    "steps",
    "$",
    "s",
)
_LEGEND = (
    "n questions; fail(ed) and none (no answer) count as wrong. Percent right by the judge and by",
    "contain-match, with its 95 % interval; F1; supporting chunks among the first five seen.",
    "Tokens of passages shown, steps and median seconds a question; $ in all.",
)


def _row(summary: "Summary") -> list[str]:
    cost = f"{summary.cost_known:.2f}" + ("+" if summary.cost_unknown else "")
    contain = summary.contain
    return [
        summary.variant,
        f"{summary.questions:,}",
        str(summary.failed),
        str(summary.unanswered),
        _percent(summary.judge),
        _percent(contain),
        f"{100 * contain.low:.0f}-{100 * contain.high:.0f}" if contain else "",
        _percent(summary.f1),
        _percent(summary.recall_at.get(5)),
        f"{summary.retrieved_tokens.mean:,.0f}" if summary.retrieved_tokens else "",
        f"{summary.steps.mean:.1f}" if summary.steps else "",
        cost,
        f"{summary.p50:.1f}" if summary.p50 is not None else "",
    ]


def _percent(estimate: "Estimate | None") -> str:
    return f"{100 * estimate.mean:.1f}" if estimate else ""


def table_json(scored: "ScoredRun") -> dict[str, Any]:
    """What was asked, and the summary of each variant."""
    return {
        "run": str(scored.run.directory),
        **scored.run.info.model_dump(mode="json"),
        "judge": scored.judge,
        "summaries": [asdict(summary) for summary in scored.summaries],
    }
