"""The searches measured alone: by hand over a small corpus, and from the command line."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.evaluation.retrieval_only import (
    MODES,
    keywords_of,
    search_all,
    summarise_modes,
)
from agentic_rag.knowledge_base import KnowledgeBase
from tests.cli.running import Ran, run_arag

QUESTIONS = [
    GoldQuestion(qid="1", question="Who opened the Oriole Bridge?", supporting=("bridge",)),
    GoldQuestion(
        qid="2", question="Where was Ada Brown born?", supporting=("ada", "no such chunk")
    ),
    GoldQuestion(qid="3", question="蓝桥泵站由谁设计？", supporting=("泵站",)),
]


@pytest.mark.parametrize(
    ("question", "keywords"),
    [
        ("Who opened the Oriole Bridge?", ["opened", "oriole", "bridge"]),
        ("What is it?", ["what", "is", "it"]),  # nothing but stop words: all of them
        ("蓝桥泵站由谁设计？", ["蓝桥", "泵站", "设计"]),
        ("?!", []),
    ],
)
def test_keywords_are_the_words_of_a_question_by_rule(question: str, keywords: list[str]) -> None:
    assert keywords_of(question) == keywords


def test_searches_by_words_have_these_measures(corpus: KnowledgeBase, ids: dict[str, str]) -> None:
    settings = Settings(model="none")
    told: list[tuple[int, int]] = []
    found = list(
        search_all(
            corpus,
            QUESTIONS,
            ("keyword", "bm25", "sparse"),
            (1, 3),
            settings=settings,
            on_done=lambda done, total: told.append((done, total)),
        )
    )
    assert [(one.mode, one.qid) for one in found[:4]] == [
        ("keyword", "1"),
        ("keyword", "2"),
        ("keyword", "3"),
        ("bm25", "1"),
    ]
    assert told[-1] == (9, 9)
    for one in found:
        golds = next(q.supporting for q in QUESTIONS if q.qid == one.qid)
        right = [place for place, c in enumerate(one.chunk_ids, 1) if c == ids[golds[0]]]
        assert right == [1]  # each is the only chunk with its words, or the one with most of them
        assert one.recall_at == {1: 1 / len(golds), 3: 1 / len(golds)}
        assert one.reciprocal_rank == 1.0
    keyword, bm25, sparse = summarise_modes(found)
    assert (keyword.mode, bm25.mode, sparse.mode) == ("keyword", "bm25", "sparse")
    assert keyword.questions == 3 and keyword.milliseconds > 0
    assert keyword.recall_at[1].mean == pytest.approx((1 + 0.5 + 1) / 3)
    assert keyword.mrr.mean == 1.0


def test_every_search_ranks_as_deep_as_it_is_asked_and_no_deeper(corpus: KnowledgeBase) -> None:
    found = list(search_all(corpus, QUESTIONS[:1], MODES, (2,), settings=Settings(model="none")))
    assert [one.mode for one in found] == list(MODES)
    for one in found:
        assert 1 <= len(one.chunk_ids) <= 2
        assert len(set(one.chunk_ids)) == len(one.chunk_ids)
        assert 0 <= one.recall_at[2] <= 1 and 0 <= one.ndcg_at[2] <= 1


@pytest.fixture(scope="session")
def indexed_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("datasets") / "pumps"
    folder.mkdir()
    chunks = [
        {"id": "a", "text": "The Blue Bridge station has two pumps."},
        {"id": "b", "text": "Apples keep best in a cold cellar."},
        {"id": "c", "text": "年费为十二欧元，三月到期。"},
    ]
    questions: list[dict[str, Any]] = [
        {"qid": "1", "question": "How many pumps?", "supporting_chunk_ids": ["a"]},
        {"qid": "2", "question": "年费是多少？", "supporting_chunk_ids": ["c"]},
        {"qid": "3", "question": "Why?", "answer": "No ids."},
    ]
    (folder / "chunks.json").write_text(json.dumps(chunks), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    assert retrieval(folder, "--mode", "bm25").code == 0
    return folder


@pytest.fixture
def dataset(indexed_dataset: Path, tmp_path: Path) -> Path:
    """A copy of the dataset with its knowledge base, to write to."""
    return shutil.copytree(indexed_dataset, tmp_path / "pumps")


def retrieval(folder: Path, *words: str) -> Ran:
    return run_arag(folder.parent, "eval", "retrieval", folder.name, *words)


def test_the_command_prints_a_table_and_writes_a_line_for_each_question(dataset: Path) -> None:
    ran = retrieval(dataset, "--mode", "bm25,keyword", "--k", "2,1", "--csv", "out.csv")
    assert ran.code == 0, ran.err
    assert "1 question without supporting ids" in ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["search", "n", "R@1", "R@2", "95", "%", "MRR", "nDCG@2", "ms"] in lines
    row = next(line for line in lines if line[:1] == ["bm25"])
    assert row[:7] == ["bm25", "2", "100.0", "100.0", "100-100", "1.000", "1.000"]
    with (dataset.parent / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["search"], row["question"]) for row in rows] == [
        ("bm25", "1"),
        ("bm25", "2"),
        ("keyword", "1"),
        ("keyword", "2"),
    ]
    assert rows[0]["recall@1"] == "1.0000" and rows[0]["hits"].split()[0] == "1-1"
    again = retrieval(dataset, "--mode", "bm25", "--json", "--limit", "1")
    found = again.json["searches"][0]
    assert (found["mode"], found["questions"]) == ("bm25", 1)
    assert found["recall_at"]["1"]["mean"] == 1.0


def test_ids_that_are_nowhere_are_told(dataset: Path) -> None:
    questions = [{"qid": "1", "question": "How many pumps?", "supporting_chunk_ids": ["zz"]}]
    (dataset / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    ran = retrieval(dataset, "--mode", "bm25")
    assert ran.code == 0 and "check that the ids" in ran.err
    (dataset / "questions.json").write_text(
        json.dumps([{"qid": "1", "question": "Why?"}]), encoding="utf-8"
    )
    ran = retrieval(dataset, "--mode", "bm25")
    assert ran.code == 1 and "supporting_chunk_ids" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mode", "bm26"), "'bm26' is not one of keyword, bm25"),
        (("--mode", ","), "is not one of"),
        (("--k", "0"), "no list of numbers from 1 to 1000"),
        (("--k", "five"), "no list of numbers"),
        (("--csv", "nowhere/out.csv"), "There is no folder"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_is_done(
    dataset: Path, words: tuple[str, ...], said: str
) -> None:
    shutil.rmtree(dataset / ".arag")
    ran = retrieval(dataset, *words)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert not (dataset / ".arag").exists()
