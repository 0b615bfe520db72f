"""What the page draws, laid out in numbers: `templates/plots.html.j2` makes SVG of it.

A point is a system: its accuracy, with the 95 % interval, against what it took. A system that
lacks a measure is left out of that plot and named below it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentic_rag.evaluation.measures.intervals import Estimate
from agentic_rag.evaluation.measures.scored import CUTOFFS, ERROR_KINDS
from agentic_rag.evaluation.report.headline import dollars, percent, tenth, whole
from agentic_rag.evaluation.report.systems import Measure, System, common_measure

WIDTH, HEIGHT = 420, 280  # in units of the drawing
LEFT, RIGHT, TOP, BOTTOM = 46, 24, 12, 44  # room around the field
_TICKS = 5  # about so many on an axis
BAR_LEFT, BAR_ROW = 180, 30
_BAR_WIDTH = 640
_LABELLED = 22  # the width from which a count fits into its part of a bar


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, and what stands there."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of the system of number `series`; `low` and `high` are where its interval ends on
    the drawing. `title` says the figures in words."""

    series: int
    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one system joined."""

    series: int
    points: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A field with two axes. The keys are those of `words.toml`; `left_out` are names."""

    key: str
    x_key: str
    y_key: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: wrong answers of one kind. `text` is "" where it does not fit in."""

    kind: str
    x: float
    width: float
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """The wrong answers of one system."""

    name: str
    y: float
    total: int
    parts: tuple[Part, ...]


def charts(systems: Sequence[System]) -> list[Chart]:
    """Those that some system has figures for."""
    measure = common_measure(systems)
    drawn = [
        _against(systems, measure, "tokens", _tokens, whole),
        _against(systems, measure, "steps", _steps, tenth),
        _against(systems, measure, "cost", _cost, dollars),
        _recall(systems),
    ]
    return [one for one in drawn if one is not None]


def error_bars(systems: Sequence[System]) -> list[Bar]:
    """A bar for each system, in the scale of the one with the most wrong answers; none where no
    answer is known to be wrong."""
    totals = [sum(one.summary.error_kinds.values()) for one in systems]
    most = max(totals, default=0)
    return [_bar(one, number, most) for number, one in enumerate(systems)] if most else []


def _against(
    systems: Sequence[System],
    measure: Measure,
    key: str,
    of: Callable[[System], float | None],
    form: Callable[[float], str],
) -> Chart | None:
    points = [
        (number, one, x, accuracy)
        for number, one in enumerate(systems)
        if (x := of(one)) is not None
        and (accuracy := one.summary.judge if measure == "judge" else one.summary.contain)
    ]
    if not any(x for _, _, x, _ in points):  # nothing was spent, or nothing is known
        return None
    shown = {number for number, *_ in points}
    end, ticks = _axis(max(x for _, _, x, _ in points))
    marks = [
        _mark(number, _across(x / end), accuracy, f"{one.name}: {form(x)}")
        for number, one, x, accuracy in points
    ]
    return Chart(
        key=f"plot_{key}",
        x_key=f"axis_{key}",
        y_key=f"axis_{measure}",
        x_ticks=ticks,
        y_ticks=_PERCENT,
        marks=tuple(marks),
        left_out=tuple(one.name for number, one in enumerate(systems) if number not in shown),
    )


def _recall(systems: Sequence[System]) -> Chart | None:
    ks = [k for k in CUTOFFS if any(k in one.summary.recall_at for one in systems)]
    if not ks:
        return None
    place = {k: _across((at + 0.5) / len(ks)) for at, k in enumerate(ks)}
    marks: list[Mark] = []
    lines: list[Line] = []
    for number, one in enumerate(systems):
        found = one.summary.recall_at
        own = [_mark(number, place[k], found[k], f"{one.name}: R@{k}") for k in ks if k in found]
        if own:
            marks += own
            lines.append(Line(number, " ".join(f"{mark.x},{mark.y}" for mark in own)))
    return Chart(
        key="plot_recall",
        x_key="axis_k",
        y_key="axis_recall",
        x_ticks=tuple(Tick(place[k], str(k)) for k in ks),
        y_ticks=_PERCENT,
        marks=tuple(marks),
        lines=tuple(lines),
        left_out=tuple(one.name for one in systems if not one.summary.recall_at),
    )


def _bar(system: System, number: int, most: int) -> Bar:
    counts = system.summary.error_kinds
    scale = _BAR_WIDTH / most
    parts: list[Part] = []
    x = 0.0
    for kind in ERROR_KINDS:
        count = counts.get(kind, 0)
        if count:
            width = count * scale
            text = str(count) if width >= _LABELLED else ""
            parts.append(Part(kind, _unit(BAR_LEFT + x), _unit(width), text, str(count)))
            x += width
    return Bar(system.name, number * BAR_ROW, sum(counts.values()), tuple(parts))


def _mark(series: int, x: float, value: Estimate, what: str) -> Mark:
    interval = f"{percent(value.low)}–{percent(value.high)}"
    return Mark(
        series=series,
        x=x,
        y=_up(value.mean),
        low=_up(value.low),
        high=_up(value.high),
        title=f"{what}, {percent(value.mean)} % ({interval}), n = {value.n}",
    )


def _tokens(system: System) -> float | None:
    found = system.summary.retrieved_tokens
    return found.mean if found else None


def _steps(system: System) -> float | None:
    found = system.summary.steps
    return found.mean if found else None


def _cost(system: System) -> float | None:
    summary = system.summary
    return None if summary.cost is None else summary.cost / summary.questions


def _axis(most: float) -> tuple[float, tuple[Tick, ...]]:
    """From 0 to a round number not below `most`, which is above 0, in round steps."""
    step = _round_up(most / _TICKS)
    count = math.ceil(round(most / step, 9))
    return step * count, tuple(
        Tick(_across(at / count), f"{step * at:,.10g}") for at in range(count + 1)
    )


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten that is not below `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= value * (1 - 1e-9))


def _across(share: float) -> float:
    return _unit(LEFT + share * (WIDTH - LEFT - RIGHT))


def _up(share: float) -> float:
    return _unit(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))


def _unit(value: float) -> float:
    return round(value, 2)


_PERCENT = tuple(Tick(_up(share / 100), str(share)) for share in (0, 20, 40, 60, 80, 100))
