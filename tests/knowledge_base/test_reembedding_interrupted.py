"""A change of the embedding model cut off at any moment is gone on with, or does no harm."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from agentic_rag.doctor.knowledge_base import check_knowledge_base
from agentic_rag.knowledge_base import (
    KnowledgeBase,
    Progress,
)
from agentic_rag.knowledge_base.head import read_head
from agentic_rag.knowledge_base.sentence_tables import other_tables, remove_old, unfinished_tables
from tests.knowledge_base.changing_model import other, state, stopped_after, with_model
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.test_crashes import steps, write_documents, writer
from tests.knowledge_base.whole import assert_searchable, assert_whole

Write = Callable[[str, str], Path]


def test_a_stopped_run_is_gone_on_with_and_embeds_nothing_twice(
    kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    new = other()
    changed = with_model(kb.directory, new, embedding={"batch_size": 8})
    stopped_after(changed, 16)

    (unfinished,) = kb.status().unfinished
    assert (unfinished.embedding_model, unfinished.dimensions) == ("other", 24)
    assert unfinished.sentences == 16
    assert kb.semantic_search("x").hits
    told: list[Progress] = []
    report = changed.reembed(on_progress=told.append)
    assert (told[0].done, told[0].total, told[-1].done) == (0, 34, 34)
    assert report.changed
    assert report.embedded == 34
    assert len(new.texts) == len(set(new.texts)) == 50
    assert changed.status().unfinished == ()


def test_killed_at_every_step(tmp_path: Path) -> None:
    docs, start = tmp_path / "docs", tmp_path / "start"
    write_documents(docs, 2, 2)
    with_model(start, HashEmbedder()).add(docs)
    fresh = with_model(tmp_path / "fresh", other())
    fresh.add(docs)
    before = assert_whole(start)
    shutil.copytree(start, tmp_path / "template")
    count = steps("reembed", tmp_path / "template", docs)
    assert count >= 5
    assert state(with_model(tmp_path / "template", other())) == state(fresh)
    for step in range(1, count + 1):
        kb = tmp_path / f"kb{step}"
        shutil.copytree(start, kb)
        process = writer("reembed", kb, docs, step)
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        assert assert_whole(kb) == before
        head = read_head(kb)
        assert head is not None
        model = HashEmbedder() if head.embedding_model == "hash" else other()
        assert with_model(kb, model).semantic_search("x").hits
        if model.name == "hash":
            # Whoever goes on with the old model is not disturbed, nor does it lose the new rows.
            assert_searchable(kb)
            with_model(kb, model).add(docs)
            assert assert_whole(kb) == before
        assert writer("reembed", kb, docs).wait(timeout=120) == 0
        assert state(with_model(kb, other())) == state(fresh)
        texts = (tmp_path / f"kb{step}.texts").read_text(encoding="utf-8").splitlines()
        assert len(texts) == len(set(texts)), "a text was embedded twice"
        assert check_knowledge_base(kb) == []
        shutil.rmtree(kb)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    docs, kb = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 20, 5)
    with_model(kb, HashEmbedder()).add(docs)
    fresh = with_model(tmp_path / "fresh", other())
    fresh.add(docs)
    shutil.copytree(kb, tmp_path / "template")
    began = time.monotonic()
    steps("reembed", tmp_path / "template", docs)
    seconds = time.monotonic() - began
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        process = writer("reembed", kb, docs)
        try:
            process.wait(timeout=share * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(assert_whole(kb)) == 20
    assert writer("reembed", kb, docs).wait(timeout=120) == 0
    assert state(with_model(kb, other())) == state(fresh)


def test_what_changes_between_two_runs_is_in_the_result(tmp_path: Path, write: Write) -> None:
    def changes(kb: KnowledgeBase) -> None:
        write("a.txt", "Before all. " + text)  # every sentence of it moves
        write("c.txt", "Another one. " + text)
        docs.joinpath("b.txt").unlink(missing_ok=True)
        kb.add(docs, sync=True)

    text = " ".join(f"Sentence {i}." for i in range(40))
    docs = write("a.txt", text).parent
    write("b.txt", text.replace("Sentence", "Line"))
    kb, fresh = with_model(tmp_path / "kb", HashEmbedder()), with_model(tmp_path / "fresh", other())
    kb.add(docs)
    fresh.add(docs)
    new = other()
    changed = with_model(kb.directory, new, embedding={"batch_size": 8})
    stopped_after(changed, 56)
    changes(kb)
    changed = with_model(kb.directory, new)

    report = changed.reembed()

    changes(fresh)
    assert state(changed)[0] == state(fresh)[0]
    assert assert_whole(kb.directory) == assert_whole(fresh.directory)
    assert len(new.texts) == len(set(new.texts))
    assert report.sentences == len(state(fresh)[0])
    assert check_knowledge_base(kb.directory) == []


def test_what_was_given_up_does_no_harm_and_is_cleaned(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    stopped_after(with_model(kb.directory, other(), embedding={"batch_size": 8}), 16)

    kb.add(write("b.txt", "The beta text."))
    assert kb.semantic_search("b.txt. The beta text.").hits[0].uri.endswith("b.txt")
    assert not kb.reembed().changed
    assert (kb.directory / "sentences-2.lance").is_dir()
    (finding,) = check_knowledge_base(kb.directory)
    assert finding.code == "unfinished_reembedding"
    assert "'other'" in finding.message
    with_model(kb.directory, other()).compact()  # the settings still want it
    assert (kb.directory / "sentences-2.lance").is_dir()

    shutil.copytree(kb.directory, copy := kb.directory.with_name("copy"))
    kb.compact()
    assert not (kb.directory / "sentences-2.lance").exists()
    assert check_knowledge_base(kb.directory) == []

    days_ago = time.time() - 8 * 86_400
    os.utime(copy / "sentences-2.lance", (days_ago, days_ago))
    with_model(copy, HashEmbedder()).add(write("c.txt", "The gamma text."))
    assert not (copy / "sentences-2.lance").exists()


def test_a_third_model_takes_over(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    stopped_after(with_model(kb.directory, other(), embedding={"batch_size": 8}), 16)
    third = HashEmbedder(8, "third")
    fresh = with_model(kb.directory.with_name("fresh"), third)
    fresh.add(kb.directory.parent / "docs")
    changed = with_model(kb.directory, third)
    changed.reembed()
    assert state(changed) == state(fresh)
    head = read_head(kb.directory)
    assert head is not None
    assert head.sentences_table == "sentences-3"
    assert list(unfinished_tables(kb.directory, head.sentences_table)) == []
    assert other_tables(kb.directory, head.sentences_table) == ["sentences", "sentences-2"]
    remove_old(kb.directory, head.sentences_table, timedelta(0))
    assert other_tables(kb.directory, head.sentences_table) == []
    assert with_model(kb.directory, HashEmbedder()).reembed().changed  # and back
    assert kb.semantic_search("x").hits


def test_a_forced_run_is_gone_on_with_too(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    same = HashEmbedder()
    changed = with_model(kb.directory, same, embedding={"batch_size": 8})
    stopped_after(changed, 16, force=True)
    assert changed.reembed().embedded == 34
    assert len(same.texts) == 50


def test_a_table_that_was_cut_short_when_it_was_made_is_passed_over(
    kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", "The alpha text."))
    (kb.directory / "sentences-2.lance/data").mkdir(parents=True)
    (kb.directory / "sentences-x.lance").mkdir()
    changed = with_model(kb.directory, other())
    assert changed.reembed().changed
    assert changed.semantic_search("x").hits
    changed.compact()
    kb.status()
