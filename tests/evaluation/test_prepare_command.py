"""`arag eval prepare`, and that what it writes is what `arag eval run` loads."""

import json
import os
from pathlib import Path

import pytest

from agentic_rag.documents.cleaning import clean_text
from agentic_rag.evaluation.dataset import BadDataset, load_dataset
from agentic_rag.evaluation.measures.matching import contains
from agentic_rag.evaluation.prepare import Files, read_form, write_dataset
from agentic_rag.knowledge_base import KnowledgeBase
from tests.cli.running import run_arag
from tests.knowledge_base.embedders import HashEmbedder

DATA = Path(__file__).parents[3] / "shared" / "data"
EXAMPLE = Path(__file__).parents[2] / "examples" / "evaluation" / "questions.csv"
TABLE = "question,answer,supporting\nWho approves?,the dean,rules.md\n谁批准？,院长,规定.docx\n"
PARAGRAPHS = [
    {"idx": 0, "title": "Pump", "paragraph_text": "Built in 2019.", "is_supporting": True},
    {"idx": 1, "title": "水泵", "paragraph_text": "二号泵。", "is_supporting": False},
]
MUSIQUE = {"id": "2hop__1", "question": "When?", "answer": "2019", "paragraphs": PARAGRAPHS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "dev.jsonl").write_text(json.dumps(MUSIQUE) + "\n", encoding="utf-8")
    return tmp_path


def test_a_published_set_becomes_one_that_loads_and_indexes(folder: Path) -> None:
    ran = run_arag(folder, "eval", "prepare", "musique", "dev.jsonl", "-o", "new/set")
    assert ran.code == 0, ran.err
    assert "questions  1 (2hop 1)" in ran.out
    assert "chunks     2, " in ran.out
    assert ran.err == "Written; go on with: arag eval run new/set\n"
    dataset = load_dataset(folder / "new" / "set")
    assert dataset.questions[0].supporting == ("0",)
    assert dataset.chunks is not None
    kb = KnowledgeBase.open(folder / "kb", embedder=HashEmbedder())
    kb.add([dataset.chunks])
    chunks = kb.chunks(1)
    assert [(chunk.source_id, chunk.text) for chunk in chunks] == [
        ("0", "Pump\nBuilt in 2019."),
        ("1", "水泵\n二号泵。"),
    ]


def test_a_table_has_no_chunks_and_names_the_knowledge_base(folder: Path) -> None:
    ran = run_arag(folder, "eval", "prepare", "auto", "q.csv", "-o", "own set")
    assert ran.code == 0, ran.err
    assert "form       csv" in ran.out
    assert "chunks     none" in ran.out
    assert ran.err == "Written; go on with: arag eval run 'own set' --kb .arag\n"
    dataset = load_dataset(folder / "own set")
    assert [question.answer for question in dataset.questions] == ["the dean", "院长"]
    assert dataset.chunks is None


def test_a_table_may_have_a_corpus_in_chunks(folder: Path) -> None:
    (folder / "c.json").write_text('[{"id": "rules.md", "text": "The dean approves."}]')
    ran = run_arag(folder, "eval", "prepare", "csv", "q.csv", "c.json", "-o", "set", "--json")
    assert ran.json["missing"] == [["2", "规定.docx"]]
    assert ran.json["chunks"] == 1
    assert ran.json["form"] == "csv"


def test_findings_are_named_with_the_ids_of_their_questions(folder: Path) -> None:
    record = {**MUSIQUE, "answer": "1999", "id": "2hop__2"}
    with (folder / "dev.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record))
    ran = run_arag(folder, "eval", "prepare", "musique", "dev.jsonl", "-o", "set")
    assert ran.code == 0, ran.err
    assert "1 with an answer that stands in no supporting chunk: 2hop__2\n" in ran.out
    assert "1 with the text of an earlier question: 2hop__2\n" in ran.out


def test_a_dataset_that_is_there_is_overwritten_only_with_force(folder: Path) -> None:
    assert run_arag(folder, "eval", "prepare", "auto", "dev.jsonl", "-o", "set").code == 0
    again = run_arag(folder, "eval", "prepare", "auto", "q.csv", "-o", "set")
    assert (again.code, again.out) == (1, "")
    assert again.err == "error: set/questions.json is there already; --force overwrites it.\n"
    assert load_dataset(folder / "set").chunks is not None
    forced = run_arag(folder, "eval", "prepare", "auto", "q.csv", "-o", "set", "--force")
    assert forced.code == 0, forced.err
    assert load_dataset(folder / "set").chunks is None
    assert sorted(path.name for path in (folder / "set").iterdir()) == ["questions.json"]


def test_a_bad_file_leaves_no_folder_behind(folder: Path) -> None:
    ran = run_arag(folder, "eval", "prepare", "hotpotqa", "q.csv", "-o", "set")
    assert ran.code == 1
    assert ran.err.startswith("error: q.csv is not JSON")
    assert not (folder / "set").exists()


def test_a_folder_that_is_a_file_is_told(folder: Path) -> None:
    ran = run_arag(folder, "eval", "prepare", "auto", "q.csv", "-o", "dev.jsonl")
    assert (ran.code, ran.err) == (1, "error: dev.jsonl is no folder; name another one.\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_told(folder: Path) -> None:
    (folder / "set").mkdir(mode=0o500)
    ran = run_arag(folder, "eval", "prepare", "auto", "q.csv", "-o", "set")
    assert (ran.code, ran.err) == (1, "error: set cannot be written to (Permission denied).\n")


def test_limit_and_chunk_size_are_kept(folder: Path) -> None:
    (folder / "q.json").write_text(
        json.dumps(
            [
                {"id": n, "source": "B", "question": f"{n}?", "question_type": "k", "evidence": ""}
                for n in "ab"
            ]
        )
    )
    text = "It rained for days and days. " * 100
    (folder / "c.json").write_text(json.dumps({"corpus_name": "B", "context": text}))
    words = ("eval", "prepare", "auto", "q.json", "c.json", "-o", "set", "--limit", "1", "--json")
    ran = run_arag(folder, *words, ARAG_CHUNKING__SIZE="100")
    assert ran.json["questions"] == 1
    assert ran.json["chunks"] == 10  # of 1,000, the default, it would be one
    assert ran.json["chunk_tokens"] <= 110


@pytest.mark.parametrize("name", ["hotpotqa", "musique"])
def test_prepared_sets_of_a_rag_stay_as_they_are(tmp_path: Path, name: str) -> None:
    source = DATA / name
    if not source.is_dir():
        pytest.skip(f"{source} is not there")
    prepared = read_form("arag", Files(source)).prepared
    write_dataset(prepared, tmp_path / "set")
    assert load_dataset(tmp_path / "set").questions == load_dataset(source).questions
    before = json.loads((source / "chunks.json").read_text(encoding="utf-8"))
    after = json.loads((tmp_path / "set" / "chunks.json").read_text(encoding="utf-8"))
    # White space at the ends and characters that are none, as a byte order mark, are taken out.
    assert after == [{**chunk, "text": clean_text(chunk["text"]).strip()} for chunk in before]


def test_the_example_is_in_two_languages_and_its_pages_hold_the_answers() -> None:
    questions = read_form("csv", Files(EXAMPLE)).prepared.questions
    assert len(questions) == 20
    assert sum(question.qid.startswith("zh") for question in questions) == 10
    root = EXAMPLE.parents[2]
    for question in questions:
        assert question.golds
        assert question.supporting
        pages = [(root / path).read_text(encoding="utf-8") for path in question.supporting]
        assert contains("\n".join(pages), question.golds), question.qid


def test_questions_nested_too_deeply_are_told(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text("[" * 100_000)
    with pytest.raises(BadDataset, match="nested too deeply"):
        load_dataset(tmp_path)
