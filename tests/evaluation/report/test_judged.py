"""Runs with verdicts of a judge: what counts as right, and what may stand side by side."""

from collections.abc import Mapping
from pathlib import Path

from agentic_rag.evaluation.measures.matching import answer_words
from agentic_rag.evaluation.measures.prompting import Task, item_of, prompt_hash
from agentic_rag.evaluation.measures.verdicts import Verdict, Verdicts
from agentic_rag.evaluation.report import plots
from agentic_rag.evaluation.report.comparing import compare
from agentic_rag.evaluation.report.contents import listing
from agentic_rag.evaluation.report.markdown import markdown_of
from agentic_rag.evaluation.report.systems import system_named, systems_of
from agentic_rag.evaluation.running.result_file import read_run
from tests.evaluation.report.conftest import WriteRun
from tests.evaluation.report.test_tables import rows_of


def judged(run: Path, said: Mapping[str, str], *, by: str = "judge-1", why: str = "") -> Path:
    """Keeps a verdict on the answer of each question in `said`: "correct", "incorrect" or ""."""
    verdicts = Verdicts(run)
    read = read_run(run)
    golds = {one.qid: one for one in read.questions}
    for result in read.results:
        if result.qid in said and result.answer:
            item = item_of(golds[result.qid], answer_words(result.answer))
            tasks: list[tuple[Task, str]] = [("judge", said[result.qid])]
            if why:
                tasks.insert(0, ("why_wrong", why))
            for task, meant in tasks:
                verdicts.add(
                    Verdict(
                        task=task,
                        model=by,
                        prompt=prompt_hash(task),
                        item=item.hash,
                        said=meant,
                        meant=meant,
                    )
                )
    return run


def test_accuracy_is_the_judges_where_all_are_judged(write_run: WriteRun) -> None:
    first = judged(write_run("first"), {"q1": "incorrect", "q2": "correct"})
    second = write_run("second")

    (alone,) = rows_of(markdown_of(systems_of([first])), "System")
    assert alone["LLM-Acc %"].startswith("25.0 (") and alone["Contain-Acc %"].startswith("25.0 (")
    assert "Judged by: judge-1." in markdown_of(systems_of([first]))
    assert [one["right"] for one in listing(systems_of([first]))["answers"]] == [
        *(False, True),
        *(False, False),  # failed and unanswered ones are wrong without being asked about
    ]
    assert plots.charts(systems_of([first]))[0].y_key == "axis_judge"
    assert plots.charts(systems_of([first, second]))[0].y_key == "axis_contain"


def test_an_answer_without_a_clear_verdict_is_shown_apart(write_run: WriteRun) -> None:
    run = judged(write_run("first"), {"q1": "correct", "q2": ""})

    (row,) = rows_of(markdown_of(systems_of([run])), "System")
    assert row["Unjudged"] == "1"
    assert row["LLM-Acc %"].startswith("33.3 (")  # of the three that are judged
    assert listing(systems_of([run]))["answers"][1]["right"] is None


def test_what_the_judge_says_of_a_lost_answer_is_its_kind_of_error(write_run: WriteRun) -> None:
    run = judged(write_run("first"), {"q2": "incorrect"}, why="wrong_entity")
    (bar,) = plots.error_bars(systems_of([run]))

    assert [(part.kind, part.title) for part in bar.parts] == [
        ("failed", "1"),
        ("never_surfaced", "1"),
        ("wrong_entity", "1"),
    ]


def test_two_are_compared_by_the_judge_where_both_are_judged(write_run: WriteRun) -> None:
    first = judged(write_run("first"), {"q1": "incorrect", "q2": "correct"})
    second = judged(write_run("second"), {"q1": "correct", "q2": "correct"}, by="judge-2")
    plain = write_run("plain")

    found = compare(system_named(str(first)), system_named(str(second)))
    assert found.measure == "judge"
    assert [(one.question.qid, one.right) for one in found.changed] == [("q1", "second")]
    assert found.notes == ("The judges differ: judge-1 and judge-2.",)
    assert compare(system_named(str(first)), system_named(str(plain))).measure == "contain"
    assert not compare(system_named(str(first)), system_named(str(second)), "contain").changed
