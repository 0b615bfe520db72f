"""`arag eval compare`: two systems on the same questions, and what changed between them."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson

if TYPE_CHECKING:
    from agentic_rag.evaluation.report.comparing import Changed, Comparison, Difference, Side
    from agentic_rag.evaluation.report.systems import System

By = Literal["judge", "contain"]


def _by(text: str) -> str:
    if text not in get_args(By):
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(get_args(By))}.")
    return text


def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="A run's folder; of several variants, RUN:variant."),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            show_default=False,
            help="The variant of both, where their names give none.",
        ),
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            metavar="MEASURE",
            parser=_by,
            show_default=False,
            help="What is right: judge or contain. When not given: judge where both are judged.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two systems on the questions of both: which only one of them gets right.

    p is McNemar's, two-sided and exact: how often chance alone would make two differ by so much.

    Example: `arag eval compare runs/musique:agent runs/musique:naive`
    """
    for text in (first, second):
        if not text:
            raise typer.BadParameter("It is empty; name a run's folder.")
    from agentic_rag.evaluation.report import comparing
    from agentic_rag.evaluation.report.systems import system_named

    streams.check_stdout()
    found = comparing.compare(system_named(first, variant), system_named(second, variant), by)
    for note in found.notes:
        streams.say(f"note: {note}")
    if as_json:
        streams.out_json(_json(found))
    else:
        _show(found)


def _show(found: "Comparison") -> None:
    from rich.table import Table

    from agentic_rag.evaluation.report.words import word

    paired = found.paired
    total = paired.both + paired.only_first + paired.only_second + paired.neither
    streams.out(f"A  {_title(found.first)}")
    streams.out(f"B  {_title(found.second)}")
    streams.out()
    streams.out(f"Right by {'the judge' if found.measure == 'judge' else 'contain-match'}")
    counts = Table(box=None, pad_edge=False, show_header=False)
    counts.add_column(no_wrap=True)
    counts.add_column(justify="right", no_wrap=True)
    for name, count in (
        ("both", paired.both),
        ("only A", paired.only_first),
        ("only B", paired.only_second),
        ("neither", paired.neither),
        ("questions", total),
    ):
        counts.add_row(name, f"{count:,}")
    streams.console().print(counts)
    first, second = paired.both + paired.only_first, paired.both + paired.only_second
    shares = f"A {100 * first / total:.1f} %, B {100 * second / total:.1f} %"
    streams.out(f"{shares}, McNemar's p = {paired.p:.3g}")
    for line in _left_out(found):
        streams.out(line)
    streams.out()
    table = Table(box=None, pad_edge=False)
    table.add_column("mean of", no_wrap=True)
    for column in ("A", "B", "B - A", "95 %"):
        table.add_column(column, justify="right", no_wrap=True)
    for difference in found.differences:
        table.add_row(word(difference.key), *_figures(difference))
    streams.console().print(table)
    for title, right in (("Only A is right", "first"), ("Only B is right", "second")):
        changed = [one for one in found.changed if one.right == right]
        if changed:
            streams.out()
            streams.out(f"{title}: {streams.counted(len(changed), 'question')}")
        for one in changed:
            _show_question(one)


def _title(system: "System") -> str:
    return streams.one_line(f"{system.name}, {system.model}")


def _left_out(found: "Comparison") -> Iterator[str]:
    if found.untold:
        questions = streams.counted(found.untold, "question")
        yield f"Left out: {questions} of both that cannot be told right or wrong."
    if any(found.only_asked):
        first, second = found.only_asked
        yield f"Left out: {first:,} that only A was asked, {second:,} that only B was."


def _figures(one: "Difference") -> list[str]:
    form = _FORMS.get(one.key, _percent)
    difference = one.difference
    return [
        form(one.first),
        form(one.second),
        f"{'+' if difference.mean > 0 else ''}{form(difference.mean)}",
        f"{form(difference.low)} to {form(difference.high)}",
    ]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _count(value: float) -> str:
    return f"{value:,.1f}"


_FORMS: dict[str, Callable[[float], str]] = {
    "retrieved_tokens": _count,
    "steps": _count,
    "input_tokens": _count,
    "output_tokens": _count,
    "cost": lambda value: f"{value:.5f}",
    "time": lambda value: f"{value:.2f}",
}


def _show_question(one: "Changed") -> None:
    streams.out()
    question = one.question
    streams.out(f"  {streams.one_line(question.qid)}  {streams.one_line(question.question)}")
    streams.out(f"    gold  {streams.one_line(' | '.join(question.golds))}")
    streams.out(f"    A     {_said(one.first)}")
    streams.out(f"    B     {_said(one.second)}")


def _said(side: "Side") -> str:
    from agentic_rag.evaluation.report.words import word

    why = word(f"error_{side.why}") if side.why else ""
    state = side.outcome if side.outcome != "answered" else ""
    told = ", ".join(dict.fromkeys(part for part in (state, why) if part))
    text = streams.one_line(side.answer or side.error)
    return f"{_shortened(text)} ({told})" if told else _shortened(text)


_SHOWN = 300  # characters of an answer; --json has it whole


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN].rstrip()} …"


def _json(found: "Comparison") -> dict[str, Any]:
    return {
        "first": _system_json(found.first),
        "second": _system_json(found.second),
        "measure": found.measure,
        **asdict(found.paired),
        "untold": found.untold,
        "only_asked": {"first": found.only_asked[0], "second": found.only_asked[1]},
        "notes": found.notes,
        "differences": [asdict(one) for one in found.differences],
        "changed": [
            {
                "qid": one.question.qid,
                "question": one.question.question,
                "golds": one.question.golds,
                "right": one.right,
                "first": asdict(one.first),
                "second": asdict(one.second),
            }
            for one in found.changed
        ],
    }


def _system_json(system: "System") -> dict[str, str]:
    return {
        "name": system.name,
        "run": str(system.scored.run.directory.absolute()),
        "variant": system.variant,
        "model": system.model,
        "judge": system.scored.judge,
    }
