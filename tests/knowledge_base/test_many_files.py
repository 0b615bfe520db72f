"""Ten thousand small files with a few dozen bad ones among them."""

import os
from pathlib import Path

import psutil
import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase, Progress
from tests.knowledge_base.embedders import HashEmbedder

FILES = 10_000
BAD_EVERY = 250
GROWTH_MB = 150  # from the third thousand files on; their rows alone are some ten


def write_tree(root: Path, files: int = FILES) -> set[str]:
    """A tree of small files in a hundred folders; the paths of the bad ones."""
    bad = set()
    for number in range(files):
        folder = root / f"部门 {number % 100}"
        if number < 100:
            folder.mkdir(parents=True)
        if number % BAD_EVERY == 7:
            kind = number // BAD_EVERY % 4
            path = folder / f"bad{number}.{('txt', 'pdf', 'csv', 'md')[kind]}"
            path.write_bytes(
                (
                    bytes(range(256)) * 4,
                    b"%PDF-1.7\n" + os.urandom(200),
                    b"a,b\n" + bytes(range(256)) * 4,
                    b"\x89PNG\r\n\x1a\n" + os.urandom(200),
                )[kind]
            )
            bad.add(str(path))
        else:
            path = folder / f"note{number}.md"
            path.write_text(
                f"# Note {number}\n\nPump {number} stands in hall {number % 17}. "
                f"第 {number} 号水泵由值班工程师检修。\n",
                encoding="utf-8",
            )
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return bad


@pytest.mark.slow
def test_ten_thousand_files_are_indexed_and_every_bad_one_named(tmp_path: Path) -> None:
    bad = write_tree(tmp_path / "docs")
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    process = psutil.Process()
    memory: list[int] = []

    def look(progress: Progress) -> None:
        if progress.stage == "parse" and progress.done % 1_000 == 0:
            memory.append(process.memory_info().rss)

    report = kb.add(tmp_path / "docs", on_progress=look)

    assert {outcome.uri for outcome in report.failed} == bad
    assert all(outcome.reason for outcome in report.failed)
    assert len(report.added) == FILES - len(bad)
    assert (memory[-1] - memory[2]) / 1e6 < GROWTH_MB
    assert [Path(h.uri).name for h in kb.keyword_search("Pump 4321").hits] == ["note4321.md"]

    again = kb.add(tmp_path / "docs")

    assert len(again.unchanged) == FILES - len(bad)
    assert {outcome.uri for outcome in again.failed} == bad
    assert again.sentences_embedded == 0
