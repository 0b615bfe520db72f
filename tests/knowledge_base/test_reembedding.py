"""Changing the embedding model: as if the knowledge base had been made with the new one, while the
old vectors serve until then, and going on after any interruption."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentic_rag.doctor.knowledge_base import check_knowledge_base
from agentic_rag.knowledge_base import (
    EmbeddingModelMismatch,
    KnowledgeBase,
    KnowledgeBaseBusy,
    KnowledgeBaseReadOnly,
    tables,
)
from agentic_rag.knowledge_base.lock import writer_lock
from agentic_rag.models.embedder import EmbeddingFailed, Vectors
from tests.doctor import damage
from tests.knowledge_base.changing_model import other, state, with_model
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.test_crashes import ROOT
from tests.knowledge_base.whole import OTHER

Write = Callable[[str, str], Path]


def write_many_kinds(write: Write) -> Path:
    """Documents whose sentences get their place in many ways."""
    write("pump.md", "# Pump\n\nLead.\n\n## History\n\nTwo pumps. One burnt.\n\n### 1990\n\nNew.\n")
    write("sub/deep/泵站.md", "# 泵站\n\n蓝桥泵站有两台水泵。\n\n## 历史\n\n第二台于2019年更换。\n")
    write(
        "corpus.json",
        '[{"id": "a", "title": "Old", "text": "One. Two."}, {"id": 7, "text": "三。"}]',
    )
    write("lines.json", '["x:First item. It goes on.", "y:第二条。"]')
    write(
        "fees.csv",
        "year,fee\n" + "".join(f"{year},{year % 7} euros\n" for year in range(1700, 2020)),
    )
    write("code.py", "def pump():\n    return 'on'\n\n\ndef stop():\n    return 'off'\n")
    write(
        "page.html",
        "<title>Page</title><h1>Page</h1><h2>Part</h2><table><tr><th>a<th>b<tr><td>1<td>2</table>",
    )
    write("blank.txt", "  \n")
    return write("long.txt", "A sentence with  two blanks\nand a line end. " * 400).parent


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"embedding": {"with_heading": False}},
        {"chunking": {"size": 60, "overlap_sentences": 2, "overlap_tokens": 20}},
    ],
    ids=["default", "without headings", "overlapping"],
)
def test_the_result_is_that_of_a_base_made_with_the_new_model(
    settings: dict[str, Any], tmp_path: Path, write: Write
) -> None:
    docs = write_many_kinds(write)
    with_model(tmp_path / "kb", HashEmbedder(), **settings).add(docs)
    fresh = with_model(tmp_path / "fresh", other(), **settings)
    fresh.add(docs)
    new = other()
    kb = with_model(tmp_path / "kb", new, **settings)

    report = kb.reembed()

    assert state(kb) == state(fresh)
    assert (report.model_before, report.model, report.dimensions) == ("hash", "other", 24)
    assert report.changed
    assert report.sentences == kb.status().sentences == len(state(kb)[0])
    assert report.embedded == len(new.texts) == len(set(new.texts)) < report.sentences
    query = "Two pumps. One burnt."
    assert kb.semantic_search(query) == fresh.semantic_search(query)
    assert kb.hybrid_search(query) == fresh.hybrid_search(query)
    assert check_knowledge_base(kb.directory) == []
    again = kb.add(docs)  # goes on as one of that model
    assert again.sentences_embedded == 0
    assert not again.added


def test_until_it_is_done_only_search_by_meaning_and_adding_are_refused(
    kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", "The alpha text."))
    changed = with_model(kb.directory, other())
    for refused in (lambda: changed.semantic_search("x"), lambda: changed.add(write("b.txt", "b"))):
        with pytest.raises(EmbeddingModelMismatch) as error:
            refused()
        assert str(error.value) == (
            f"{kb.directory} holds vectors of the embedding model 'hash', and the settings name "
            "'other'; set embedding.model back, or change the knowledge base to that one with "
            "'arag reembed'."
        )
    assert len(changed.keyword_search("alpha").hits) == len(changed.bm25_search("alpha").hits) == 1
    assert changed.read_chunk(["1-1"]).chunks[0].text.endswith("The alpha text.")
    hybrid = changed.hybrid_search("alpha")
    assert len(hybrid.hits) == 1
    assert "'arag reembed'" in hybrid.notices[0]

    changed.reembed()

    assert changed.semantic_search("x").hits
    assert changed.hybrid_search("alpha").notices == ()
    with pytest.raises(EmbeddingModelMismatch, match=r"'other'.*'hash'.*arag reembed"):
        kb.semantic_search("x")


def test_the_same_width_and_the_same_name_are_told_apart(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", "The alpha text."))
    for embedder in (HashEmbedder(16, "same width"), HashEmbedder(17, "hash")):
        with pytest.raises(EmbeddingModelMismatch, match="arag reembed"):
            with_model(kb.directory, embedder).semantic_search("x")
        assert with_model(kb.directory, embedder).reembed().changed
        assert with_model(kb.directory, embedder).semantic_search("x").hits


def test_an_empty_base_changes_too(kb: KnowledgeBase, write: Write) -> None:
    changed = with_model(kb.directory, other())
    report = changed.reembed()
    assert (report.changed, report.sentences, report.embedded) == (True, 0, 0)
    changed.add(write("a.txt", "The alpha text."))
    assert len(changed.semantic_search("alpha").hits) == 1


def test_with_the_same_model_nothing_is_done_unless_forced(kb: KnowledgeBase, write: Write) -> None:
    docs = write("a.txt", "One. Two.")
    kb.add(docs)
    before = (kb.directory / "head.json").read_text()
    assert not kb.reembed().changed
    assert (kb.directory / "head.json").read_text() == before

    class NewWeights(HashEmbedder):
        def _vector(self, text: str) -> Vectors:
            return super()._vector(f"new {text}")

    fresh = with_model(kb.directory.with_name("fresh"), NewWeights())
    fresh.add(docs)
    changed = with_model(kb.directory, NewWeights())
    assert changed.reembed(force=True).embedded == 2
    assert state(changed) == state(fresh)


# -- readers ------------------------------------------------------------------------------------


def test_a_reader_that_pinned_the_old_version_answers_until_the_grace_is_over(
    kb: KnowledgeBase, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.add(write("a.txt", "The alpha text. The beta text."))
    warm, lazy = kb.snapshot(), with_model(kb.directory, HashEmbedder()).snapshot()
    expected = warm.semantic_search("The beta text.")
    changed = with_model(kb.directory, other())

    changed.reembed()
    changed.compact()
    changed.add(write("b.txt", "The gamma text."))

    assert warm.semantic_search("The beta text.") == expected
    assert lazy.semantic_search("The beta text.") == expected  # its vectors are read only now
    assert lazy.hybrid_search("alpha").notices == ()
    assert (kb.directory / "sentences.lance").is_dir()
    old_fragments = {p.name.split(".")[0] for p in kb.directory.glob("sentences.lance/data/*")}
    derived = {p.name.split(".")[0] for p in kb.directory.glob("derived/*")}
    assert old_fragments & derived
    monkeypatch.setattr(tables, "GRACE", timedelta(0))
    changed.compact()
    assert not (kb.directory / "sentences.lance").exists()
    derived = {p.name.split(".")[0] for p in kb.directory.glob("derived/*")}
    assert not old_fragments & derived
    assert changed.semantic_search("beta").hits


_READER = """
import sys
from pathlib import Path
from tests.knowledge_base.changing_model import other, with_model
kb = with_model(Path(sys.argv[1]), other())
for query in sys.stdin:
    result = kb.hybrid_search(query)
    print(len(result.hits), result.notices, flush=True)
"""


def test_a_reader_in_another_process_sees_the_switch(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", "The alpha text. The beta text."))
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, str(kb.directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert reader.stdin is not None
    assert reader.stdout is not None

    def asked() -> str:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write("alpha\n")
        reader.stdin.flush()
        return reader.stdout.readline()

    try:
        assert '1 ("Semantic search is not available' in asked()
        with_model(kb.directory, other()).reembed()
        assert asked() == "1 ()\n"
    finally:
        reader.stdin.close()
        reader.wait(timeout=30)


def test_the_old_vectors_serve_while_the_new_ones_are_made(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", "The alpha text. The beta text."))
    expected = kb.semantic_search("The beta text.")
    seen: list[bool] = []

    class Asking(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            seen.append(kb.semantic_search("The beta text.") == expected)
            return super().embed_passages(texts)

    with_model(kb.directory, Asking(24, "other")).reembed()
    assert seen == [True]


# -- what goes wrong ----------------------------------------------------------------------------


class Failing(HashEmbedder):
    """Another embedder that is down after some texts, and cannot embed "poison" ever."""

    def __init__(self, good_for: int = 1_000_000) -> None:
        super().__init__(OTHER.dimensions, OTHER.name)
        self.good_for = good_for

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if len(self.texts) >= self.good_for:
            raise EmbeddingFailed("The server is down; start it.")
        vectors = super().embed_passages(texts)
        vectors[["poison" in text for text in texts]] = np.nan
        return vectors


def test_when_the_embedder_fails_what_was_embedded_is_kept(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    new = Failing(good_for=24)
    changed = with_model(kb.directory, new, embedding={"batch_size": 8})
    with pytest.raises(EmbeddingFailed, match="The server is down"):
        changed.reembed()
    assert kb.semantic_search("x").hits
    new.good_for = 1_000_000
    assert changed.reembed().embedded == 26
    assert len(new.texts) == len(set(new.texts)) == 50


def test_sentences_that_cannot_be_embedded_are_named_and_tried_again(
    kb: KnowledgeBase, write: Write
) -> None:
    docs = [write("a.txt", "One good. One poison. Another poison."), write("b.txt", "Good.")]
    kb.add(docs)
    fresh = with_model(kb.directory.with_name("fresh"), Failing())
    fresh.add(docs)
    changed = with_model(kb.directory, Failing())

    report = changed.reembed()

    assert [(one.chunk_id, one.text) for one in report.without_vector] == [
        ("1-1", "a.txt. One poison."),
        ("1-1", "a.txt. Another poison."),
    ]
    assert all(one.uri.endswith("a.txt") and one.reason for one in report.without_vector)
    assert state(changed) == state(fresh)
    assert changed.status().sentences_without_vector == 2
    assert len(changed.keyword_search("poison").hits) == 1
    healed = with_model(kb.directory, other())
    assert healed.reembed(force=True).without_vector == ()
    assert healed.status().sentences_without_vector == 0


def test_a_model_that_embeds_nothing_is_not_switched_to(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", "One poison. Another poison."))
    with pytest.raises(EmbeddingFailed, match=r"'other' gave no usable vector for any of 2"):
        with_model(kb.directory, Failing()).reembed()
    assert kb.semantic_search("x").hits
    assert with_model(kb.directory, other()).reembed().embedded == 2


@pytest.mark.parametrize("name", ["sentences", "chunks"])
def test_rows_that_stand_twice_are_made_once(name: str, kb: KnowledgeBase, write: Write) -> None:
    kb.add([write("a.txt", "One. Two."), write("b.txt", "Three.")])
    damage.repeat(kb.directory, name, "document = 1")
    changed = with_model(kb.directory, other())
    report = changed.reembed()
    assert report.embedded == 3
    assert len(state(changed)[0]) == 3
    assert changed.semantic_search("x").hits


def test_two_at_once_embed_once(kb: KnowledgeBase, write: Write) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    with writer_lock(kb.directory), pytest.raises(KnowledgeBaseBusy, match="being written"):
        with_model(kb.directory, other()).reembed(wait=False)
    embedders = [other(), other()]
    told: list[str] = []
    threads = [
        threading.Thread(
            target=with_model(kb.directory, embedder).reembed, kwargs={"on_wait": told.append}
        )
        for embedder in embedders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(len(embedder.texts) for embedder in embedders) == [0, 50]
    assert with_model(kb.directory, other()).semantic_search("x").hits


def test_a_full_disk_is_told_in_one_sentence_and_nothing_is_lost(
    kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", " ".join(f"Sentence {i}." for i in range(50))))
    wide = HashEmbedder(4096, "wide")  # 16 kB a vector
    changed = with_model(kb.directory, wide, embedding={"batch_size": 8})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(KnowledgeBaseReadOnly) as error:
            changed.reembed()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(error.value) == (
        f"{kb.directory} cannot be written to, as a file would be larger than is allowed there; "
        "raise that limit and run the same command again, which goes on with what is kept."
    )
    assert kb.semantic_search("x").hits
    assert changed.reembed().changed
    assert changed.semantic_search("x").hits


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (28, "cannot be written to, as the disk is full; make room there and run"),
        (30, "cannot be written to, as the file system is read-only; make it writable and run"),
        (13, "may be read but not written to; change its permissions"),
    ],
)
def test_a_disk_that_takes_nothing_is_told(
    code: int, said: str, kb: KnowledgeBase, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.add(write("a.txt", "The alpha text."))

    def refused(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code), "writer.lock")

    with monkeypatch.context() as patch:
        patch.setattr("filelock.FileLock.acquire", refused)
        with pytest.raises(KnowledgeBaseReadOnly, match=said):
            with_model(kb.directory, other()).reembed()
    assert kb.semantic_search("x").hits


def test_a_head_of_before_there_were_two_tables_opens_and_changes(
    kb: KnowledgeBase, write: Write
) -> None:
    kb.add(write("a.txt", "The alpha text."))
    path = kb.directory / "head.json"
    head = json.loads(path.read_text())
    del head["sentences_table"]
    path.write_text(json.dumps(head | {"schema_version": 1}))
    assert kb.semantic_search("x").hits
    assert with_model(kb.directory, other()).reembed().changed
    assert json.loads(path.read_text())["sentences_table"] == "sentences-2"


@pytest.mark.parametrize("name", ["../x", "sentences-0", "chunks", "", 3, "sentences-2/../../x"])
def test_a_table_name_that_cannot_be_is_told(kb: KnowledgeBase, name: object) -> None:
    path = kb.directory / "head.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sentences_table": name}))
    with pytest.raises(Exception, match="'sentences_table' cannot be"):
        kb.status()
