"""docs/eval-datasets.md says what is so."""

import json
import re
from pathlib import Path

import pytest

from agentic_rag.evaluation.formats.table import columns_of
from agentic_rag.evaluation.prepare import AUTO, FORMS
from tests.cli.running import run_arag

PAGE = (Path(__file__).parents[2] / "docs" / "eval-datasets.md").read_text(encoding="utf-8")


def paragraphs(*texts: tuple[str, str]) -> list[dict[str, object]]:
    return [
        {"idx": n, "title": title, "paragraph_text": text, "is_supporting": n == 0}
        for n, (title, text) in enumerate(texts)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the file of the page's example."""
    first = paragraphs(("Blue Bridge", "Built in 1931."), ("Otter", "It swims."))
    second = paragraphs(("Kestrel", "A pump made in Lisbon."), ("Otter", "It swims."))
    records = (
        {"id": "2hop__1", "question": "When was it built?", "answer": "1931", "paragraphs": first},
        {"id": "2hop__2", "question": "Who built it?", "answer": "Ana", "paragraphs": second},
    )
    (tmp_path / "dev.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    return tmp_path


def test_each_form_is_in_the_page_and_in_the_help(folder: Path) -> None:
    named = run_arag(folder, "eval", "prepare", "--help").out
    for form in (AUTO, *FORMS):
        assert f"`{form}`" in PAGE
        assert re.search(rf"\b{form}\b", named), form


def test_each_heading_in_the_page_is_known() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.M)
    columns = {column: names for column, names in rows if column in columns_of([column])}
    assert len(columns) == 6
    for column, names in columns.items():
        for name in (column, *re.findall(r"[^\s,`]+", names)):
            assert columns_of([name]) == {column: name}


def test_the_report_is_that_of_the_page(folder: Path) -> None:
    command = "arag eval prepare musique dev.jsonl -o data/musique"
    shown = PAGE.partition(f"$ {command}\n")[2].partition("```")[0]
    ran = run_arag(folder, *command.split()[1:])
    assert ran.out + ran.err == shown


def test_the_python_example_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    monkeypatch.chdir(folder)
    exec(compile(code, "eval-datasets.md", "exec"), {})
    assert (folder / "data" / "musique" / "questions.json").is_file()
