"""The head: one small file that says which version of each table is the knowledge base.

Writing it is the commit. A table may hold newer versions, which are work in progress or what a
crash left behind: no reader ever opens them, and the next writer puts them aside. So the three
tables change at once or not at all, and a query needs no filter on revisions.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentic_rag.knowledge_base.records import DamagedKnowledgeBase

SCHEMA_VERSION = 1
_NAME = "head.json"


@dataclass(frozen=True, slots=True)
class Head:
    """A committed state.

    `generation` grows with every commit; `documents`, `chunks`, `sentences` are Lance versions;
    `next_number` is the number of the next new document, so that none is used twice.
    `off_topic_score` was measured when there were `off_topic_sentences` sentences.
    """

    documents: int
    chunks: int
    sentences: int
    embedding_model: str
    dimensions: int
    with_heading: bool
    chunking: Mapping[str, int]
    generation: int = 1
    next_number: int = 1
    off_topic_score: float | None = None
    off_topic_sentences: int = 0
    schema_version: int = field(default=SCHEMA_VERSION)


def read_head(directory: Path) -> Head | None:
    """The committed state, or None where there is none."""
    path = directory / _NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedKnowledgeBase(
            f"{path} cannot be read ({error.strerror}); check who may read it."
        ) from None
    except ValueError as error:
        raise _damaged(path, error) from None
    if not isinstance(data, dict):
        raise _damaged(path, "it holds no object")
    try:
        return Head(**_migrated(data, path))
    except TypeError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, why: object) -> DamagedKnowledgeBase:
    return DamagedKnowledgeBase(
        f"{path} is not readable ({why}); restore it from a backup or index again elsewhere."
    )


def write_head(directory: Path, head: Head) -> None:
    """Commit `head`: the file is replaced in one step and is on disk when this returns."""
    path = directory / _NAME
    draft = path.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(head), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    if os.name == "posix":
        folder = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# From a schema version to the step that raises it by one. A step changes the head's data only;
# one that changes tables would write new versions and name them here.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def _migrated(data: dict[str, Any], path: Path) -> dict[str, Any]:
    while (version := data.get("schema_version")) in MIGRATIONS:
        data = {**MIGRATIONS[version](data), "schema_version": version + 1}
    if version == SCHEMA_VERSION:
        return data
    raise DamagedKnowledgeBase(
        f"{path.parent} has schema version {version} and this program knows {SCHEMA_VERSION}; "
        "upgrade agentic-rag, or index again into a new directory."
    )
