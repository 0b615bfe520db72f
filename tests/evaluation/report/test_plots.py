"""Where things stand on the plots."""

import pytest

from agentic_rag.evaluation.report import plots
from agentic_rag.evaluation.report.systems import systems_of
from tests.evaluation.report.conftest import WriteRun, results_of

FIELD = plots.WIDTH - plots.LEFT - plots.RIGHT


def test_points_stand_at_their_figures_and_say_them(write_run: WriteRun) -> None:
    run = write_run("two", {"agent": results_of(), "naive": results_of("naive")[2:3]})
    tokens, steps, recall = plots.charts(systems_of([run]))
    (mark,) = tokens.marks

    assert [tick.text for tick in tokens.x_ticks] == ["0", "50", "100", "150", "200"]
    assert mark.x == pytest.approx(plots.LEFT + FIELD * (500 / 3) / 200, abs=0.01)
    zero, hundred = tokens.y_ticks[0].at, tokens.y_ticks[-1].at
    assert mark.y == pytest.approx(zero + (hundred - zero) * 0.25)
    assert mark.low == zero and mark.high < mark.y  # the lower end is 0 %, above is smaller
    assert mark.title.startswith("agent: 167, 25.0 % (0.0–")
    assert tokens.left_out == steps.left_out == recall.left_out == ("naive",)  # it only failed
    assert tokens.y_key == "axis_contain"
    assert [mark.title.partition(",")[0] for mark in recall.marks] == [
        f"agent: R@{k}" for k in (1, 2, 5, 10)
    ]
    assert recall.lines[0].points.count(",") == 4


def test_cost_is_drawn_where_it_is_known_of_all_questions(write_run: WriteRun) -> None:
    known = write_run("known", {"agent": results_of()[:2]})
    charts = {chart.key: chart for chart in plots.charts(systems_of([known, write_run("other")]))}

    assert [mark.series for mark in charts["plot_cost"].marks] == [0]
    assert charts["plot_cost"].left_out == ("other",)
    assert charts["plot_cost"].x_ticks[-1].text == "0.01"


def test_bars_are_as_long_as_their_counts(write_run: WriteRun) -> None:
    run = write_run("two", {"agent": results_of(), "naive": results_of("naive")[:1]})
    first, second = plots.error_bars(systems_of([run]))

    assert [(part.kind, part.title) for part in first.parts] == [
        ("failed", "1"),
        ("never_surfaced", "1"),
        ("read_but_lost", "1"),
    ]
    widths = {part.width for part in first.parts}
    assert len(widths) == 1 and first.parts[1].x == pytest.approx(
        plots.BAR_LEFT + first.parts[0].width, abs=0.02
    )
    assert (first.total, second.total, second.parts) == (3, 0, ())


@pytest.mark.parametrize(
    ("most", "texts"),
    [
        (4, ["0", "1", "2", "3", "4"]),
        (1341, ["0", "500", "1,000", "1,500"]),
        (0.0123, ["0", "0.0025", "0.005", "0.0075", "0.01", "0.0125"]),
        (2_000_000, ["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]),
    ],
)
def test_axes_go_in_round_steps(most: float, texts: list[str]) -> None:
    end, ticks = plots._axis(most)

    assert [tick.text for tick in ticks] == texts
    assert end >= most
