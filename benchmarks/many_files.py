"""Indexing ten thousand small files: time and memory per thousand, and the second run.

Set beside it: a commit for every file, as a program does that adds documents one by one, on as
many files as it manages in the same time as a tenth of the tree. Run by
`python benchmarks/many_files.py`; the embedder makes vectors from hashes, so that the rest is seen.
"""

import tempfile
import time
from pathlib import Path

import psutil

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase, Progress
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.test_many_files import FILES, write_tree

THOUSAND = 1_000
ONE_BY_ONE = 200


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        bad = write_tree(root / "docs")
        print(f"{FILES:,} files, {len(bad)} of them bad\n")
        print("| files | seconds for this thousand | memory, MB |")
        print("|---|---|---|")
        kb = KnowledgeBase.open(root / "kb", settings=Settings(), embedder=HashEmbedder())
        began = last = time.perf_counter()

        def look(progress: Progress) -> None:
            nonlocal last
            if progress.stage == "parse" and progress.done and progress.done % THOUSAND == 0:
                now = time.perf_counter()
                memory = psutil.Process().memory_info().rss / 1e6
                print(f"| {progress.done:,} | {now - last:.2f} | {memory:.0f} |")
                last = now

        report = kb.add(root / "docs", on_progress=look)
        whole = time.perf_counter() - began
        began = time.perf_counter()
        again = kb.add(root / "docs")
        second = time.perf_counter() - began
        named = {outcome.uri for outcome in report.failed} == bad
        print(f"\nIn all {whole:.1f} s; every bad file named: {'yes' if named else 'NO'}")
        print(f"Second run: {second:.2f} s, {len(again.unchanged):,} unchanged")

        single = KnowledgeBase.open(root / "single", settings=Settings(), embedder=HashEmbedder())
        files = sorted((root / "docs").rglob("note*.md"))[:ONE_BY_ONE]
        began = time.perf_counter()
        for file in files:
            single.add(file)
        each = (time.perf_counter() - began) / len(files)
        ratio = each / (whole / FILES)
        print(f"A commit for every file: {each * 1e3:.0f} ms a file, {ratio:.0f} times as long")


if __name__ == "__main__":
    main()
