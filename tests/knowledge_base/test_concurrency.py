"""Several writers and readers at once: nothing doubled, nothing lost, no empty moment."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentic_rag.knowledge_base import KnowledgeBaseBusy, KnowledgeBaseReadOnly
from agentic_rag.knowledge_base.lock import writer, writer_lock
from tests.knowledge_base.test_crashes import ROOT, write_documents
from tests.knowledge_base.whole import assert_searchable, assert_whole, opened

_AT_A_BARRIER = """
import sys, time
from pathlib import Path
from tests.knowledge_base.whole import opened
kb, docs, barrier = sys.argv[1:]
Path(barrier, str(time.time_ns())).touch()
while len(list(Path(barrier).iterdir())) < 2:
    time.sleep(0.001)
report = opened(Path(kb), batch_seconds=0.05).add(docs)
print(len(report.added), len(report.unchanged))
"""


def test_two_writers_started_together_double_and_lose_nothing(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write_documents(docs, 40, 1)
    for turn in range(5):
        kb, barrier = tmp_path / f"kb{turn}", tmp_path / f"barrier{turn}"
        barrier.mkdir()
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _AT_A_BARRIER, str(kb), str(docs), str(barrier)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
                env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
            )
            for _ in range(2)
        ]
        counts = [process.communicate(timeout=120)[0].split() for process in processes]
        assert all(process.returncode == 0 for process in processes)
        assert sorted(counts) == [["0", "40"], ["40", "0"]]
        assert len(assert_whole(kb)) == 40
    assert_searchable(kb)


def test_many_small_writes_at_once_are_all_kept(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 50, 1)
    opened(directory)
    failures: list[BaseException] = []

    def add(path: Path) -> None:
        try:
            opened(directory).add(path)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(path,)) for path in sorted(docs.iterdir())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(assert_whole(directory)) == 50


def test_a_reader_never_sees_an_error_or_a_gap(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 12, 1, "round 0")
    (docs / "stays.txt").write_text("This text stays, marker stays here.")
    kb = opened(directory)
    kb.add(docs)
    stop = threading.Event()
    problems: list[object] = []
    answered: list[int] = []

    def read() -> None:
        reader = opened(directory)
        while not stop.is_set():
            try:
                snapshot = reader.snapshot()
                for result in (
                    snapshot.keyword_search(["marker stays"], 3),
                    snapshot.bm25_search("stays", 3),
                    snapshot.semantic_search("anything", 1000),
                ):
                    names = {Path(hit.uri).name for hit in result.hits}
                    if "stays.txt" not in names:
                        problems.append(("stays is missing", result.mode, names))
                shown = snapshot.keyword_search(["marker doc0003 "], 1)
                # It is replaced again and again: one version of it is there at every moment.
                if len(shown.hits) != 1:
                    problems.append(("doc0003 is missing", shown))
                read = snapshot.read_chunk([hit.chunk_id for hit in shown.hits])
                if any("marker doc0003 " not in chunk.text for chunk in read.chunks):
                    problems.append(("wrong text", read))
                answered.append(1)
            except Exception as error:
                problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(1, 9):
        write_documents(docs, 12, 1, f"round {turn}")
        (docs / "doc0007.txt").unlink()
        kb.add(docs, sync=True)
        kb.remove(["doc0001.txt"])
        kb.compact()
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(answered) >= 10
    assert_whole(directory)


def test_a_snapshot_is_pinned_while_a_writer_goes_on(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 3, 1)
    kb = opened(directory)
    kb.add(docs)
    snapshot = kb.snapshot()
    kb.remove(["doc0001.txt"])
    kb.compact()
    assert len(snapshot.documents) == 3
    assert len(snapshot.keyword_search(["marker doc0001 "]).hits) == 1
    assert len(snapshot.semantic_search("x", 10).hits) == 3
    assert snapshot.read_chunk(["2-1"]).chunks[0].chunk_id == "2-1"
    later = kb.snapshot()
    assert later.keyword_search(["marker doc0001 "]).hits == ()
    assert later.bm25_search("doc0001").hits == ()
    assert len(later.semantic_search("x", 10).hits) == 2
    assert later.read_chunk(["2-1"]).unknown == {"2-1": "1-1"}


def test_another_process_sees_a_removal_at_once(tmp_path: Path) -> None:
    docs, directory = tmp_path / "docs", tmp_path / "kb"
    write_documents(docs, 3, 1)
    kb = opened(directory)
    kb.add(docs)
    server = opened(directory)  # with its caches warm
    assert len(server.keyword_search(["marker doc0001 "]).hits) == 1
    assert len(server.semantic_search("x", 10).hits) == 3
    kb.remove(["doc0001.txt"])
    for result in (
        server.keyword_search(["marker doc0001 "]),
        server.bm25_search("doc0001"),
        server.semantic_search("x", 10),
    ):
        assert all("doc0001" not in hit.uri for hit in result.hits)


def test_a_second_writer_is_told_who_is_writing(tmp_path: Path) -> None:
    directory = tmp_path / "kb"
    kb = opened(directory)
    told: list[str] = []
    stop = threading.Event()
    with writer_lock(directory):
        assert "process" in str(writer(directory))
        assert kb.status().writer == writer(directory)
        with pytest.raises(KnowledgeBaseBusy, match=r"process .* try again"):
            kb.compact(wait=False)
        waiting = threading.Thread(
            target=lambda: kb.remove([], on_wait=lambda text: told.append(text))
        )
        waiting.start()
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        with pytest.raises(KnowledgeBaseBusy):
            kb.add(tmp_path, stop=stop)
    waiting.join(timeout=10)
    assert not waiting.is_alive()
    assert len(told) == 1
    assert writer(directory) is None


def test_a_knowledge_base_that_may_not_be_written_to_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = opened(tmp_path / "kb")

    def refused(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")  # as for anybody but root

    monkeypatch.setattr("filelock.FileLock.acquire", refused)
    with pytest.raises(KnowledgeBaseReadOnly, match="change its permissions"):
        kb.compact()
    assert kb.status().writer is None
    assert kb.keyword_search("x").hits == ()


def test_who_is_writing_names_the_verb_and_no_argument_that_might_be_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path / "kb")
    monkeypatch.setattr(sys, "argv", ["/usr/bin/arag", "index", "--secret", "x"])
    with writer_lock(tmp_path / "kb"):
        holder = json.loads((tmp_path / "kb/writer.json").read_text())
    assert holder["command"] == "arag index"
