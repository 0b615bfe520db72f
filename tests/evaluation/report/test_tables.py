"""Markdown and CSV: the figures of a run known beforehand, and text that means nothing else."""

import csv
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.evaluation.records import Result
from agentic_rag.evaluation.report.files import ReportUnwritable, write_report
from agentic_rag.evaluation.report.headline import dollars
from agentic_rag.evaluation.report.markdown import markdown_of
from agentic_rag.evaluation.report.systems import systems_of
from tests.evaluation.report.conftest import QUESTIONS, WriteRun, answer


def rows_of(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the table whose first column has that heading, the first such table."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    head = [cell.strip() for cell in lines[start].strip("|").split("|")]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(
            dict(zip(head, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        )
    return rows


def test_markdown_has_the_figures_of_the_run(write_run: WriteRun) -> None:
    text = markdown_of(systems_of([write_run()]))
    (row,) = rows_of(text, "System")

    assert text.startswith("# Evaluation: birds\n")
    assert row["System"] == "agent"
    assert (row["Questions"], row["Failed"], row["Unanswered"]) == ("4", "1", "1")
    assert row["Contain-Acc %"].startswith("25.0 (0.0–")  # one of four: two were not answered
    assert row["Cite R %"].startswith("50.0 (")  # of the two answered: q1 1, q2 0
    assert row["R@5 %"].startswith("66.7 (")  # of the three that searched: 1, 1, 0
    assert row["Retrieved tokens"].startswith("167 (")  # 100, 300, 100
    assert row["Steps"].startswith("1.7 (")  # 2, 2, 1
    assert row["Cost $"] == "0.0300+"  # of the failed one it is not known
    assert row["p50 s"] == "2.00"
    assert "Unjudged" not in row and "LLM-Acc %" not in row  # no judge was asked
    assert "| System | failed | never surfaced | read but lost |" in text
    assert "| agent | 1 | 1 | 1 |" in text
    assert "| agent | 33.3 | 66.7 | 66.7 | 66.7 |" in text  # R@1: q2 alone
    assert "| agent | bridge | 2 |  | 50.0 |" in text


def test_names_are_no_markup_in_markdown(write_run: WriteRun) -> None:
    text = markdown_of(systems_of([write_run(model="a|b *c* <img src=x>")]))

    assert r"a\|b \*c\* \<img src=x\>" in text


def written_csv(write_run: WriteRun, tmp_path: Path, *results: Result) -> list[dict[str, str]]:
    run = write_run("run", {"agent": list(results)} if results else None)
    write_report(tmp_path / "out.csv", systems_of([run]), "csv")
    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # Excel reads it right
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_line_for_each_question(write_run: WriteRun, tmp_path: Path) -> None:
    right, lost, failed, unanswered = written_csv(write_run, tmp_path)

    assert (right["qid"], right["right"], right["error_kind"]) == ("q1", "1", "")
    assert (right["recall_at_1"], right["recall_at_2"]) == ("0.0", "1.0")
    assert (lost["question"], lost["answer"]) == ("蓝桥泵站有几台水泵？", "三台。")
    assert (lost["error_kind"], lost["retrieved_tokens"]) == ("read_but_lost", "300")
    assert (failed["outcome"], failed["error"]) == ("failed", "The model failed: no such model.")
    assert (failed["contain"], failed["cost"], failed["steps"]) == ("0", "", "")
    assert (unanswered["outcome"], unanswered["right"]) == ("unanswered", "0")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("+1 (555)", "'+1 (555)"),
        ("@cmd", "'@cmd"),
        ("-5.2", "-5.2"),
        ("a = b", "a = b"),
        ('two\nlines, "quoted"', 'two\nlines, "quoted"'),
    ],
)
def test_a_spreadsheet_runs_no_answer_as_a_formula(
    write_run: WriteRun, tmp_path: Path, text: str, shown: str
) -> None:
    given = answer(QUESTIONS[0].question, text)
    (row,) = written_csv(
        write_run,
        tmp_path,
        Result(variant="agent", qid="q1", outcome="answered", answer=given),
    )

    assert row["answer"] == shown


def test_a_report_that_cannot_be_written_leaves_the_one_that_was_there(
    write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = systems_of([write_run()])
    path = tmp_path / "report.md"
    path.write_text("before")

    def full(*given: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ReportUnwritable, match="No space left on device"):
        write_report(path, systems, "md")

    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".tmp")] == []
    with pytest.raises(ReportUnwritable, match="name another file with -o"):
        write_report(path / "inside.md", systems, "md")


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.00041, "0.0004"), (0.5, "0.5000"), (1234.5, "1,234.50")]
)
def test_small_amounts_of_money_keep_their_figures(value: float, text: str) -> None:
    assert dollars(value) == text
