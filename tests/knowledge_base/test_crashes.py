"""`kill -9` at any moment leaves a knowledge base that opens and holds whole documents only."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import DamagedKnowledgeBase, KnowledgeBase
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.whole import REMOVED, assert_searchable, assert_whole, opened

ROOT = Path(__file__).parents[2]


FILLER = "and a few more words so that ten of these sentences make up a whole chunk " * 5


def write_documents(folder: Path, count: int, chunks: int, word: str = "first") -> None:
    """Documents of so many chunks each (of about 950 tokens), every one with its own marker."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = f"doc{number:04}"
        lines = [
            f"This is the {word} text, marker {name} in paragraph {i}, sentence {j} {FILLER}. "
            for i in range(chunks)
            for j in range(10)
        ]
        (folder / f"{name}.txt").write_text("".join(lines))


def writer(action: str, kb: Path, docs: Path, step: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.knowledge_base.writing",
            action,
            str(kb),
            str(docs),
            str(step),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )


def steps(action: str, kb: Path, docs: Path) -> int:
    process = writer(action, kb, docs)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return int(out.split()[-1])


def finish(action: str, kb: KnowledgeBase, docs: Path) -> None:
    """What a person does after a crash: run the same command again."""
    if action in ("add", "replace"):
        kb.add(docs, sync=True)
    elif action == "remove":
        kb.remove([n for n in REMOVED if any(n in d.uri for d in kb.documents())])
    else:
        kb.compact()


def test_killed_at_twenty_random_moments_of_indexing_two_thousand_chunks(tmp_path: Path) -> None:
    docs, kb = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 200, 10)
    began = time.monotonic()
    whole_run = writer("add", tmp_path / "other", docs)
    whole_run.communicate(timeout=300)
    seconds = time.monotonic() - began
    assert sum(assert_whole(tmp_path / "other").values()) >= 2000
    draw = random.Random(20)
    done = []
    for _ in range(20):
        process = writer("add", kb, docs)
        try:
            process.wait(timeout=draw.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if (kb / "head.json").exists():
            done.append(len(assert_whole(kb)))
        if done and done[-1] == 200:  # all in: start over, so that twenty kills are twenty tests
            shutil.rmtree(kb)
            done.clear()
    opened(kb).add(docs)
    assert assert_whole(kb) == assert_whole(tmp_path / "other")
    assert_searchable(kb)


@pytest.mark.parametrize("action", ["add", "replace", "remove", "compact"])
def test_killed_at_every_step_between_two_writes(action: str, tmp_path: Path) -> None:
    docs, start = tmp_path / "docs", tmp_path / "start"
    write_documents(docs, 4, 2)
    before: dict[str, int] = {}
    if action != "add":
        for name in sorted(docs.iterdir()):  # a commit each, so that there is something to compact
            opened(start).add(name)
        before = assert_whole(start)
    if action == "replace":
        write_documents(docs, 4, 3, "second")
        (docs / "doc0003.txt").unlink()
    verb = "add" if action == "replace" else action
    template = tmp_path / "template"
    if start.exists():
        shutil.copytree(start, template)
    count = steps(verb, template, docs)
    after = assert_whole(template)
    assert count >= 3
    for step in range(1, count + 1):
        kb = tmp_path / f"kb{step}"
        if start.exists():
            shutil.copytree(start, kb)
        process = writer(verb, kb, docs, step)
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        if (kb / "head.json").exists():
            found = assert_whole(kb)
            for name, chunks in found.items():
                assert chunks in (before.get(name), after.get(name))
            assert_searchable(kb)
            opened(kb).compact()  # a writer that is no indexing puts the rest aside as well
            assert assert_whole(kb) == found
        finish(action, opened(kb), docs)
        assert assert_whole(kb) == after
        shutil.rmtree(kb)


def test_a_crash_inside_one_large_document_shows_nothing_of_it(tmp_path: Path) -> None:
    docs, kb = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 1, 200)
    opened(kb)
    # A batch lasts .3 s: the vectors of this document are written in several parts.
    count = steps("add", tmp_path / "other", docs)
    for step in range(1, count, 2):
        writer("add", kb, docs, step).communicate(timeout=120)
        assert assert_whole(kb) in ({}, assert_whole(tmp_path / "other"))
    opened(kb).add(docs)
    assert assert_whole(kb) == assert_whole(tmp_path / "other")
    assert_searchable(kb)


def test_tables_without_a_head_are_never_overwritten(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 1, 1)
    opened(directory).add(docs)
    (directory / "head.json").unlink()
    with pytest.raises(DamagedKnowledgeBase, match=r"no head\.json"):
        opened(directory)
    with pytest.raises(DamagedKnowledgeBase, match=r"no head\.json"):
        KnowledgeBase.open(directory, settings=Settings(), create=False)
    (directory / "head.json").write_text("{")
    with pytest.raises(DamagedKnowledgeBase, match="not readable"):
        opened(directory)


def test_a_damaged_table_without_a_head_is_not_cleared_away(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 1, 1)
    opened(directory).add(docs)
    (directory / "head.json").unlink()
    shutil.rmtree(directory / "documents.lance/_versions")
    kept = sorted(directory.rglob("*.lance"))
    with pytest.raises(DamagedKnowledgeBase, match=r"no head\.json"):
        opened(directory)
    assert sorted(directory.rglob("*.lance")) == kept


@pytest.mark.parametrize("text", ["[1]", "{}", '{"schema_version": 1}', "null", "\x00"])
def test_a_head_of_other_content_is_named(tmp_path: Path, text: str) -> None:
    directory = tmp_path / "kb"
    opened(directory)
    (directory / "head.json").write_text(text)
    with pytest.raises(DamagedKnowledgeBase, match=r"head\.json|schema version"):
        opened(directory)


@pytest.mark.parametrize("table", ["documents", "chunks", "sentences"])
def test_spoilt_tables_are_named_in_one_sentence(tmp_path: Path, table: str) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 2, 1)
    opened(directory).add(docs)
    shutil.rmtree(directory / "derived")
    for path in (directory / f"{table}.lance/data").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    kb = opened(directory)
    with pytest.raises(DamagedKnowledgeBase, match="restore the directory") as error:
        kb.keyword_search("marker")
        kb.semantic_search("marker")
    assert ".rs" not in str(error.value)
    shutil.rmtree(directory / f"{table}.lance")
    with pytest.raises(DamagedKnowledgeBase, match="restore the directory"):
        opened(directory).hybrid_search("marker")


def test_a_newer_schema_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "kb"
    opened(directory)
    head = directory / "head.json"
    head.write_text(head.read_text().replace('"schema_version": 2', '"schema_version": 99'))
    with pytest.raises(DamagedKnowledgeBase, match=r"schema version 99.*upgrade agentic-rag"):
        KnowledgeBase.open(directory, settings=Settings(), embedder=HashEmbedder())


def test_an_older_schema_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentic_rag.knowledge_base import head as head_module

    directory = tmp_path / "kb"
    opened(directory)
    head = directory / "head.json"
    old = head.read_text().replace('"schema_version": 2', '"schema_version": 0')
    head.write_text(old.replace('"off_topic_score"', '"old_name"'))

    def rename(data: dict[str, object]) -> dict[str, object]:
        return {**{k: v for k, v in data.items() if k != "old_name"}, "off_topic_score": None}

    monkeypatch.setitem(head_module.MIGRATIONS, 0, rename)
    assert opened(directory).status().documents == 0
