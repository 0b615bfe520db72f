"""The tables of sentences: the one that serves, and those beside it.

Embedding anew (reembedding.py) writes another table next to the one that serves: `sentences`,
then `sentences-2` and so on. Numbers only grow. One above the number that serves is unfinished;
one below is left over: it served until a while ago, and a reader may hold it still, or it was
never finished. Either is known by its name alone, so that a crash leaves nothing in doubt.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa

from agentic_rag.knowledge_base.records import Unfinished

# An unfinished table may be days of work or money; it is kept this long for whoever goes on.
UNFINISHED_LIFE = timedelta(days=7)
_NAME = re.compile(r"sentences(?:-([1-9]\d{0,8}))?\.lance")
_MODEL, _DIMENSIONS = b"embedding_model", b"dimensions"  # in the schema of the table


def other_tables(directory: Path, serving: str) -> list[str]:
    """The tables of sentences beside the one that serves, oldest first."""
    found = [path.name for path in directory.glob("sentences*.lance") if _NAME.fullmatch(path.name)]
    return sorted({Path(name).stem for name in found} - {serving}, key=_number)


def next_table(directory: Path, serving: str) -> str:
    """A name that no table has, above all there are."""
    return f"sentences-{max(map(_number, [*other_tables(directory, serving), serving])) + 1}"


def marked(schema: pa.Schema, embedding_model: str, dimensions: int) -> pa.Schema:
    """The schema of a table that is being filled with vectors of this model."""
    return schema.with_metadata(
        {_MODEL: embedding_model.encode(), _DIMENSIONS: str(dimensions).encode()}
    )


def unfinished_tables(directory: Path, serving: str) -> Iterator[Unfinished]:
    """The unfinished tables that can be read, oldest first."""
    for name in other_tables(directory, serving):
        if _number(name) < _number(serving):
            continue
        with suppress(ValueError, OSError, KeyError, TypeError):  # cut short when it was made
            table = lance.dataset(str(_path(directory, name)))
            said = table.schema.metadata
            yield Unfinished(
                name, said[_MODEL].decode(), int(said[_DIMENSIONS]), table.count_rows()
            )


def touch(directory: Path, name: str) -> None:
    """Let the time run anew after which a table beside the one that serves is removed."""
    os.utime(_path(directory, name))


def remove(directory: Path, name: str) -> None:
    """Remove a table; what cannot be removed now is left to the next time."""
    shutil.rmtree(_path(directory, name), ignore_errors=True)


def remove_old(directory: Path, serving: str, grace: timedelta) -> None:
    """Remove the tables that nobody can need any more."""
    for name in old_tables(directory, serving, grace):
        remove(directory, name)


def old_tables(directory: Path, serving: str, grace: timedelta) -> list[str]:
    """Left over tables last touched `grace` ago or more, and unfinished ones much older."""
    old = []
    for name in other_tables(directory, serving):
        life = UNFINISHED_LIFE if _number(name) > _number(serving) else grace
        with suppress(OSError):
            if time.time() - _path(directory, name).stat().st_mtime >= life.total_seconds():
                old.append(name)
    return old


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name}.lance"


def _number(name: str) -> int:
    return int(name.partition("-")[2] or 1)
