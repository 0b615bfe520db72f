"""`arag eval run`, `sweep` and `judge` as commands: tables, bad input, killing and going on."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agentic_rag.evaluation.running.result_file import read_results
from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, Arag, run_arag
from tests.cli.slow_model import SlowModel, serving
from tests.models.embedders.embedding_server import running

COUNT = 9


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "水泵 set"
    folder.mkdir()
    chunks = [{"id": f"c{n}", "text": f"Pump {n} has {n + 3} blades."} for n in range(COUNT)]
    questions = [
        {
            "qid": f"q{n}",
            "question": f"How many blades has pump {n}?",
            "answer": f"{n + 3} blades",
            "supporting_chunk_ids": [f"c{n}"],
        }
        for n in range(COUNT)
    ]
    (folder / "chunks.json").write_text(json.dumps(chunks))
    (folder / "questions.json").write_text(json.dumps(questions))
    return folder


def test_a_run_prints_its_table_and_the_same_again_asks_nothing(
    arag: Arag, dataset: Path, tmp_path: Path
) -> None:
    first = arag("eval", "run", dataset, "--strategy", "naive,workflow", "--model", "none")
    run_dir = tmp_path / "runs" / dataset.name
    size = (run_dir / "results.jsonl").stat().st_size
    second = arag(
        "eval", "run", dataset, "--strategy", "naive,workflow", "--model", "none", "--json"
    )

    assert first.code == 0, first.err
    assert "naive" in first.out and "workflow" in first.out
    assert f"asking: {2 * COUNT} of {2 * COUNT}" in first.err
    assert (run_dir / "results.jsonl").stat().st_size == size
    summaries = {one["variant"]: one for one in second.json["summaries"]}
    assert summaries["naive"]["questions"] == COUNT
    assert summaries["naive"]["contain"]["mean"] == 1.0  # the best passages hold every answer
    assert summaries["naive"]["recall_at"]["5"]["mean"] == 1.0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "nowhere"], 1, "There is no folder nowhere"),
        (["run", ".", "--strategy", "naiv"], 1, "There is no strategy 'naiv'"),
        (["run", "."], 1, "There is no questions.json in"),
        (["run", ".", "--limit", "0"], 2, "--limit"),
        (["run", ".", "--max-cost", "-1"], 2, "--max-cost"),
        (["sweep", "."], 2, "--max-steps or --effort"),
        (["sweep", ".", "--max-steps", "5,x"], 2, "no list of numbers"),
        (["sweep", ".", "--effort", "hard"], 1, "There is no effort 'hard'"),
        (["judge", "nowhere"], 1, "There is no run in nowhere"),
    ],
)
def test_bad_input_is_one_sentence(arag: Arag, words: list[str], code: int, said: str) -> None:
    ran = arag("eval", *words)

    assert ran.code == code, ran.err
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err


def test_questions_without_a_corpus_need_a_knowledge_base(
    arag: Arag, dataset: Path, tmp_path: Path
) -> None:
    (dataset / "chunks.json").rename(tmp_path / "elsewhere.json")

    ran = arag("eval", "run", dataset, "--model", "none")

    assert ran.code == 1
    assert "Name their knowledge base with --kb." in ran.err


def test_a_knowledge_base_of_other_chunks_is_refused(
    arag: Arag, dataset: Path, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("Something else altogether stands here.")
    arag("index", "note.txt", "--kb", "other")

    ran = arag("eval", "run", dataset, "--model", "none", "--kb", "other")

    assert ran.code == 1
    assert (
        "holds 1 chunks, and they are not those of" in ran.err
        and "Name another one with --kb" in ran.err
    )


def test_killed_and_stopped_anywhere_no_question_is_lost_and_none_is_asked_twice(
    dataset: Path, tmp_path: Path
) -> None:
    """Five times the model falls silent in some answer, and the run is ended there."""
    words = ["eval", "run", dataset, "-o", "run", "--strategy", "agent", "--model", "any"]
    words += ["--workers", "1", "-q"]
    ends = (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
    kept = 0
    with running() as embedder:
        embedding = {
            "ARAG_EMBEDDING__MODEL": "openai:m",
            "ARAG_EMBEDDING__BASE_URL": embedder.base_url,
        }
        for end, silent_in in zip(ends, (2, 3, 1, 2, 4), strict=True):
            with playing(AgentModel(hang_in=silent_in)) as model:
                asking = subprocess.Popen(
                    [*ARAG, *map(str, words)],
                    cwd=tmp_path,
                    env={**os.environ, **embedding, "ARAG_BASE_URL": model.address},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                assert model.hanging.wait(60)
                asking.send_signal(end)
                _, err = asking.communicate(timeout=60)
            assert asking.returncode == (130 if end == signal.SIGINT else -end), err
            kept += silent_in - 1
            assert len(read_results(tmp_path / "run")) == kept
        with playing(AgentModel()) as model:
            last = run_arag(tmp_path, *words, "--json", **embedding, ARAG_BASE_URL=model.address)

    assert last.code == 0, last.err
    results = read_results(tmp_path / "run")
    assert [result.qid for result in results] == [f"q{n}" for n in range(COUNT)]
    assert all(result.tries == 1 and result.outcome == "answered" for result in results)
    assert model.answers == COUNT - kept
    assert (tmp_path / "run" / "results.jsonl").read_bytes().count(b"\n") == COUNT


def test_a_ceiling_that_cannot_count_says_so(arag: Arag, dataset: Path) -> None:
    with running() as embedder, playing(AgentModel()) as model:
        ran = arag(
            *("eval", "run", dataset, "--strategy", "agent", "--model", "any", "--limit", "1"),
            *("--max-cost", "1"),
            ARAG_BASE_URL=model.address,
            ARAG_EMBEDDING__MODEL="openai:m",
            ARAG_EMBEDDING__BASE_URL=embedder.base_url,
        )

    assert ran.code == 0, ran.err
    assert "note: no price is known of 1 question, so --max-cost could not count them." in ran.err


def test_a_copied_dataset_keeps_its_index_and_line_separators_break_no_chunk(
    arag: Arag, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    texts = {"c1": "Blue Bridge\u2028was built in 1932.", "c2": "Heron Mill\x85closed in 1911."}
    chunks = [{"id": name, "title": f"About {name}", "text": text} for name, text in texts.items()]
    (folder / "chunks.json").write_text(json.dumps(chunks, ensure_ascii=False), encoding="utf-8")
    question = {"qid": "q", "question": "When was Blue Bridge built?", "answer": "1932"}
    (folder / "questions.json").write_text(
        json.dumps([question | {"supporting_chunk_ids": ["c1"]}])
    )

    first = arag("eval", "run", folder, "--model", "none", "--json", "-o", "one")
    shutil.copytree(folder, tmp_path / "copy")
    second = arag("eval", "run", "copy", "--model", "none", "--json", "-o", "two")

    assert (first.code, second.code) == (0, 0), second.err
    for ran in (first, second):
        assert ran.json["summaries"][0]["recall_at"]["5"]["mean"] == 1.0
    assert arag("list", "--kb", "set/.arag", "--json").json["documents"][0]["chunks"] == 2


def test_answers_that_the_judge_gave_no_clear_verdict_on_are_told(
    arag: Arag, dataset: Path
) -> None:
    words = ("eval", "run", dataset, "--model", "none", "--limit", "1", "-q", "-o", "run")
    with serving(SlowModel(["It depends."], pause=0)) as model:
        ran = arag(*words, "--judge", "any", ARAG_EVALUATION__JUDGE_BASE_URL=model.address)

    assert ran.code == 0, ran.err
    assert "1 answer without a verdict of the judge: `arag eval judge run` asks" in ran.err
