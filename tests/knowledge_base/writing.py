"""A writer to be killed: runs one action, and dies by SIGKILL at the N-th step of the commit.

    python -m tests.knowledge_base.writing ACTION KB DOCS STEP

STEP 0 never dies. A step is the moment right after a call that changed a table or the head.
Prints "steps N" at the end, so that a test knows how many there are.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentic_rag.knowledge_base import KnowledgeBase, creation, head, tables
from agentic_rag.models.embedder import Vectors
from tests.knowledge_base.embedders import HashEmbedder
from tests.knowledge_base.whole import OTHER, REMOVED, opened


class Telling(HashEmbedder):
    """Another embedder, which writes down what it is given."""

    def __init__(self, file: Path) -> None:
        super().__init__(OTHER.dimensions, OTHER.name)
        self._file = file

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)
        return super().embed_passages(texts)


_steps = 0
_before: object = None


def _on_disk(directory: Path) -> object:
    tables_there = sorted(path.stem for path in directory.glob("*.lance"))
    head_file = directory / "head.json"
    return (
        [tables.open_table(directory, name).latest_version for name in tables_there],
        head_file.read_text() if head_file.exists() else "",
    )


def _counted(function: Callable[..., Any], directory: Path, deadly: int) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        global _steps, _before
        result = function(*args, **kwargs)
        now = _on_disk(directory)
        if now != _before:
            _before = now
            _steps += 1
            if _steps == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


def main(action: str, directory: Path, docs: Path, deadly: int) -> None:
    writer = tables.Writer
    names = ("append", "put_documents", "index_words", "compact", "clean", "sweep")
    for name in (*names, "compact_table"):
        setattr(writer, name, _counted(getattr(writer, name), directory, deadly))
    tables.write_head = _counted(head.write_head, directory, deadly)
    delete = writer.delete_rows

    def delete_one_by_one(self: Any, numbers: Any, names: Any = tables.NAMES) -> None:
        numbers = list(numbers)  # each table is deleted from in a step of its own
        for name in names:
            _counted(delete, directory, deadly)(self, numbers, (name,))

    writer.delete_rows = delete_one_by_one  # type: ignore[method-assign,assignment]
    creation.create_tables = _counted(tables.create_tables, directory, deadly)
    # Vectors of another embedder are written as they come, so that each is kept at every step.
    seconds = 1e-9 if action == "reembed" else 0.3
    kb = opened(directory, batch_mb=0.5, batch_seconds=seconds)
    if action == "add":
        kb.add(docs, sync=True)
    elif action == "remove":
        kb.remove(REMOVED)
    elif action == "reembed":
        told = Telling(directory.with_suffix(".texts"))
        KnowledgeBase.open(directory, settings=kb.settings, embedder=told).reembed()
    else:
        kb.compact()
    print("steps", _steps)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
