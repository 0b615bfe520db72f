"""`arag eval report` and `compare` as commands, over runs written by hand."""

import csv
from pathlib import Path

import pytest

from tests.cli.running import Arag
from tests.evaluation.report.conftest import QUESTIONS, WriteRun, results_of, write_run

__all__ = ["write_run"]


@pytest.fixture
def two(write_run: WriteRun) -> Path:
    """`agent`, right in q1; `other`, which only failed q1 and q3."""
    failed = results_of("other")[2]
    other = [failed.model_copy(update={"qid": "q1"}), failed]
    return write_run("two", {"agent": results_of(), "other": other})


def test_a_report_lies_in_the_folder_of_its_run(arag: Arag, two: Path) -> None:
    ran = arag("eval", "report", two)

    assert (ran.code, ran.err) == (0, "")
    assert Path(ran.out.strip()) == two / "report.html"
    assert QUESTIONS[1].question in (two / "report.html").read_text(encoding="utf-8")


def test_several_formats_go_side_by_side_and_json_tells_of_them(
    arag: Arag, two: Path, tmp_path: Path
) -> None:
    ran = arag("eval", "report", two, "-o", "out.html", "--format", "csv,md,html", "--json")

    assert ran.code == 0, ran.err
    names = ["out.html", "out.md", "out.csv"]
    assert ran.json["files"] == [str(tmp_path / name) for name in names]
    assert all((tmp_path / name).stat().st_size for name in names)
    first, second = ran.json["systems"]
    assert (first["name"], first["questions"], first["contain"]["mean"]) == ("agent", 4, 0.25)
    assert (second["name"], second["failed"], second["model"]) == ("other", 2, "m")


def test_what_goes_to_standard_output_is_the_report_alone(arag: Arag, two: Path) -> None:
    table = arag("eval", "report", two, "-o", "-", "--format", "csv")
    text = arag("eval", "report", two, "-o", "-", "--format", "md")

    assert [row["qid"] for row in csv.DictReader(table.out.splitlines())] == [
        *["q1", "q2", "q3", "q4"],
        *["q1", "q3"],
    ]
    assert text.out.startswith("# Evaluation: birds\n")
    assert not (two / "report.html").exists()


def test_comparing_shows_what_changed_question_by_question(arag: Arag, two: Path) -> None:
    ran = arag("eval", "compare", f"{two}:agent", f"{two}:other")
    lines = [line.strip() for line in ran.out.splitlines()]

    assert (ran.code, ran.err) == (0, "")
    assert "A 50.0 %, B 0.0 %, McNemar's p = 1" in lines
    assert "Left out: 2 that only A was asked, 0 that only B was." in lines
    assert lines[lines.index("Only A is right: 1 question") + 2 :] == [
        "q1  Who built Oriole Bridge?",
        "gold  Ada Brown",
        "A     Ada Brown built it [1].",
        "B     The model failed: no such model. (failed)",
    ]


def test_comparing_as_json_has_the_answers_whole(arag: Arag, two: Path) -> None:
    found = arag("eval", "compare", f"{two}:other", two, "--variant", "agent", "--json").json

    assert (found["only_first"], found["only_second"], found["neither"]) == (0, 1, 1)
    assert (found["measure"], found["p"]) == ("contain", 1.0)
    assert found["changed"][0]["right"] == "second"
    assert found["changed"][0]["second"]["answer"] == "Ada Brown built it [1]."


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["report"], 2, "Missing argument"),
        (["report", "nowhere"], 1, "There is no run in nowhere"),
        (["report", "two", "-o", "results.jsonl"], 2, "does not say the format"),
        (["report", "two", "--format", "pdf"], 2, "'pdf' is not one of html, md, csv"),
        (["report", "two", "-o", "-", "--format", "md,csv"], 2, "takes one format alone"),
        (["report", "two", "-o", "nowhere/a.html"], 1, "cannot be written"),
        (["compare", "two:agent"], 2, "Missing argument"),
        (["compare", "two", "two:other"], 1, "several variants (agent, other)"),
        (["compare", "two:agent", "two:other", "--by", "luck"], 2, "'luck' is not one of"),
        (["compare", "two:agent", "two:other", "--by", "judge"], 1, "arag eval judge"),
        (["compare", "", "two:other"], 2, "It is empty"),
    ],
)
def test_bad_input_is_one_sentence(
    arag: Arag, two: Path, words: list[str], code: int, said: str
) -> None:
    before = (two / "results.jsonl").read_bytes()

    ran = arag("eval", *words)

    assert ran.code == code, ran.err
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err and not ran.out
    assert (two / "results.jsonl").read_bytes() == before


def test_control_characters_of_an_answer_do_not_reach_the_terminal(
    arag: Arag, write_run: WriteRun
) -> None:
    hostile = "\x1b[2Jnobody\x07"
    right, *_ = results_of()
    assert right.answer is not None
    wrong = right.answer.model_copy(update={"text": hostile, "raw_text": hostile})
    first = write_run("first", {"agent": [right]})
    second = write_run("second", {"agent": [right.model_copy(update={"answer": wrong})]})

    compared = arag("eval", "compare", first, second)
    listed = arag("eval", "report", second, "-o", "-", "--format", "csv")

    for ran in (compared, listed):
        assert "nobody" in ran.out
        assert "\x1b" not in ran.out and "\x07" not in ran.out
