"""Questions of one's own in a table."""

import json
from pathlib import Path

import pytest

from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.table import from_table
from agentic_rag.evaluation.prepare import form_of
from agentic_rag.evaluation.records import GoldQuestion

TABLE = """id,question,answer,aliases,supporting,type
p1,"When was it, the pump, replaced?",2019,in 2019|year 2019,notes/pump.md | fees.txt,two
p2,谁批准出国？,院长,,规定.docx,
"""
QUESTIONS = (
    GoldQuestion(
        qid="p1",
        question="When was it, the pump, replaced?",
        answer="2019",
        aliases=("in 2019", "year 2019"),
        supporting=("notes/pump.md", "fees.txt"),
        kind="two",
    ),
    GoldQuestion(qid="p2", question="谁批准出国？", answer="院长", supporting=("规定.docx",)),
)


def table(path: Path, text: str, encoding: str = "utf-8") -> tuple[GoldQuestion, ...]:
    path.write_bytes(text.encode(encoding))
    return from_table(path).questions


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_a_table_is_read_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    assert table(tmp_path / "q.csv", TABLE, encoding) == QUESTIONS


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_ends_of_other_systems_change_nothing(tmp_path: Path, line_end: str) -> None:
    assert table(tmp_path / "q.csv", TABLE.replace("\n", line_end)) == QUESTIONS


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_the_delimiter_is_the_one_that_makes_a_heading(tmp_path: Path, delimiter: str) -> None:
    text = f"问题{delimiter}答案\nWhy, and how?{delimiter}So, and so\n"
    (question,) = table(tmp_path / "q.csv", text)
    assert (question.question, question.answer) == ("Why, and how?", "So, and so")


def test_excels_line_about_the_delimiter_is_no_heading(tmp_path: Path) -> None:
    (question,) = table(tmp_path / "q.csv", "sep=;\nQuestion;Ground truth\nWhy?;So\n")
    assert (question.question, question.answer) == ("Why?", "So")


def test_chinese_headings_are_equals(tmp_path: Path) -> None:
    text = (
        "编号,问题,参考答案,别名,出处,类型\n7,谁批准？,院长,学院院长｜院领导,规定.docx|附则,流程\n"
    )
    assert table(tmp_path / "题目.csv", text) == (
        GoldQuestion(
            qid="7",
            question="谁批准？",
            answer="院长",
            aliases=("学院院长", "院领导"),
            supporting=("规定.docx", "附则"),
            kind="流程",
        ),
    )


def test_questions_without_ids_are_numbered(tmp_path: Path) -> None:
    questions = table(tmp_path / "q.csv", "question,answer\n\nOne?,1\n,\n\n Two? \n")
    assert [(one.qid, one.question) for one in questions] == [("1", "One?"), ("2", "Two?")]


def test_a_cell_may_hold_lines_and_quotation_marks(tmp_path: Path) -> None:
    text = 'question,answer\n"What is\n""it""?",So\nNext?,No\n'
    questions = table(tmp_path / "q.csv", text)
    assert questions[0].question == 'What is\n"it"?'
    assert questions[1].question == "Next?"


def test_json_lines_may_have_lists_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    record = {"问题": "几台？", "答案": 2, "aliases": ["两台", "二"], "supporting": "a.md|b.md"}
    (question,) = table(path, json.dumps(record, ensure_ascii=False) + "\n")
    assert question.golds == ("2", "两台", "二")
    assert question.supporting == ("a.md", "b.md")
    assert form_of(path) == "jsonl"


def test_a_json_list_inside_an_object_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    questions = table(path, json.dumps({"version": 1, "data": [{"question": "Why?"}]}))
    assert [one.question for one in questions] == ["Why?"]
    assert form_of(path) == "json"


def test_broken_characters_are_left_out(tmp_path: Path) -> None:
    (question,) = table(tmp_path / "q.json", r'[{"question": "Why\ud800 so?\u0000"}]')
    assert question.question == "Why so?"
    assert question.question.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "line 1 has no heading `question` (问题), but: a, b;"),
        ("question,answer\nWhy?,a\n,b\n", "line 3 has no text in `question`"),
        ("question,answer\nWhy?,a\nWell, why?,b\n", "line 3 has 3 cells and there are 2 headings"),
        ('question,answer\n"A\nB",a\n"Open?,b\nNext?,c\n', "line 4: its quotation marks"),
        ("question,answer,answer\nWhy?,a,b\n", "line 1: the heading 'answer' stands twice"),
        ("question\n", "holds no question"),
        ("id,question\n1,A?\n1,B?\n", "line 3: the id '1' is that of another question"),
        ('{"question": "A?", "answer": {"a": 1}}', "record 1: `answer` must be a text"),
        ('{"question": "A?"}\n{"answer": "a"}', "line 2 has no `question`"),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadDataset) as raised:
        table(tmp_path / "q.csv", text)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "q.csv"))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="There is no file"):
        from_table(tmp_path / "q.csv")
    with pytest.raises(BadDataset, match="is a folder"):
        from_table(tmp_path)


@pytest.mark.parametrize("text", ["", "\n\n", ",,\n"])
def test_an_empty_table_is_called_empty(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadDataset, match="is empty; its first line names the columns"):
        table(tmp_path / "空.csv", text)
