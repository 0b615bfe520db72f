"""A writer to be killed: runs one action, and dies by SIGKILL at the N-th step of the commit.

    python -m tests.knowledge_base.writing ACTION KB DOCS STEP

STEP 0 never dies. A step is the moment right after a call that changed a table or the head.
Prints "steps N" at the end, so that a test knows how many there are.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentic_rag.knowledge_base import creation, head, tables
from tests.knowledge_base.whole import REMOVED, opened

_steps = 0
_before: object = None


def _on_disk(directory: Path) -> object:
    tables_there = [name for name in tables.NAMES if (directory / f"{name}.lance").exists()]
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
    for name in ("append", "put_documents", "index_words", "compact", "clean", "sweep"):
        setattr(writer, name, _counted(getattr(writer, name), directory, deadly))
    tables.write_head = _counted(head.write_head, directory, deadly)
    delete = writer.delete_rows

    def delete_one_by_one(self: Any, numbers: Any, names: Any = tables.NAMES) -> None:
        numbers = list(numbers)  # each table is deleted from in a step of its own
        for name in names:
            _counted(delete, directory, deadly)(self, numbers, (name,))

    writer.delete_rows = delete_one_by_one  # type: ignore[method-assign,assignment]
    creation.create_tables = _counted(tables.create_tables, directory, deadly)
    kb = opened(directory, batch_mb=0.5, batch_seconds=0.3)
    if action == "add":
        kb.add(docs, sync=True)
    elif action == "remove":
        kb.remove(REMOVED)
    else:
        kb.compact()
    print("steps", _steps)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
