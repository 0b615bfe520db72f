"""The report of `arag ask --explain`: how the workflow judged what it had retrieved."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentic_rag.cli import streams

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer


def report_lines(answer: "Answer") -> Iterator[str]:
    """The report, a line each; one line that says so where nothing was judged."""
    judged = [
        event
        for event in answer.trace
        if event.type == "step_finished" and event.name == "evaluate"
    ]
    if not judged:
        yield "Nothing was judged: only the strategy `workflow` judges what it has retrieved."
    for number, event in enumerate(judged, start=1):
        title = f"Evaluation, round {number}" if len(judged) > 1 else "Evaluation"
        yield from _report(title, dict(event.output), event.error)


def _report(title: str, output: dict[str, Any], error: str | None) -> Iterator[str]:
    verdict = "passed" if output.get("passed") else "failed"
    if "score" not in output:
        why = error or output.get("reason") or ""
        yield f"{title}: {verdict}, unscored. {streams.one_line(why)}".rstrip()
        return
    yield (
        f"{title}: {verdict}, {output['score']:g} of {output['of']}, "
        f"{output['threshold']} are needed"
    )
    for name, judgement in output["dimensions"].items():
        reason = streams.one_line(judgement["reason"])
        yield f"  {name:<13} {judgement['score']:>4g} of 10  {reason}".rstrip()
    for suggestion in output["suggestions"]:
        yield f"  to look for: {streams.one_line(suggestion)}"
