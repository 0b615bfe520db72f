"""The head: one small file that says which version of each table is the knowledge base.

Writing it is the commit. A table may hold newer versions, which are work in progress or what a
crash left behind: no reader ever opens them, and the next writer puts them aside. So the three
tables change at once or not at all, and a query needs no filter on revisions.
"""

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rag.knowledge_base.records import DamagedKnowledgeBase, EmbeddingModelMismatch
from agentic_rag.models.embedders.watched import known_width

if TYPE_CHECKING:
    from agentic_rag.models.embedder import Embedder

SCHEMA_VERSION = 2
_NAME = "head.json"


@dataclass(frozen=True, slots=True)
class Head:
    """A committed state.

    `generation` grows with every commit; `documents`, `chunks`, `sentences` are Lance versions;
    `next_number` is the number of the next new document, so that none is used twice.
    `off_topic_score` was measured when there were `off_topic_sentences` sentences.
    `sentences_table` is what the table of sentences is called (see sentence_tables.py).
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
    sentences_table: str = "sentences"
    schema_version: int = field(default=SCHEMA_VERSION)

    def table_name(self, name: str) -> str:
        """What a table of `NAMES` is called on disk; other names are as they are."""
        return self.sentences_table if name == "sentences" else name


def check_model(directory: Path, head: Head, embedder: "Embedder") -> None:
    """Raises EmbeddingModelMismatch if the vectors of a knowledge base are of another model."""
    ours, theirs = f"'{head.embedding_model}'", f"'{embedder.name}'"
    if ours == theirs:
        # One that learns its width by being used is not used for this: a server need not be up.
        width = known_width(embedder)
        if width in (None, head.dimensions):
            return
        ours += f" of {head.dimensions} dimensions"
        theirs += f" of {width}"
    raise EmbeddingModelMismatch(
        f"{directory} holds vectors of the embedding model {ours}, and the settings name "
        f"{theirs}; set embedding.model back, or change the knowledge base to that one with "
        "'arag reembed'."
    )


def read_head(directory: Path) -> Head | None:
    """The committed state, or None where there is none.

    Raises DamagedKnowledgeBase where there is one that cannot be used.
    """
    path = directory / _NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise _damaged(path, "it is a folder") from None
    except OSError as error:
        raise DamagedKnowledgeBase(
            f"{path} cannot be read ({error.strerror}); check the path and who may read it."
        ) from None
    except UnicodeDecodeError:
        raise _damaged(path, "it is no text in UTF-8") from None
    if not text.strip():
        raise _damaged(path, "it is empty")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(path, "it is not valid JSON") from None
    if not isinstance(data, dict):
        raise _damaged(path, "it holds no JSON object")
    data = _migrated(data, path)
    if wrong := _first_wrong(data):
        raise _damaged(path, wrong)
    return Head(**data)


def _damaged(path: Path, why: str) -> DamagedKnowledgeBase:
    return DamagedKnowledgeBase(
        f"{path} is not readable: {why}; restore it from a backup, or index again into another "
        "directory with 'arag index PATH --kb NEW_DIRECTORY'."
    )


def _first_wrong(data: Mapping[str, Any]) -> str:
    """What is wrong with the fields of a head, in words; "" when nothing is."""
    known = {field.name: field for field in dataclasses.fields(Head)}
    for name, field_ in known.items():
        if name not in data:
            if field_.default is dataclasses.MISSING:
                return f"'{name}' is missing"
        elif not _FITS[name](data[name]):
            shown = json.dumps(data[name], ensure_ascii=False)
            return f"'{name}' cannot be {shown if len(shown) <= _SHOWN else f'{shown[:_SHOWN]}…'}"
    unknown = next((name for name in data if name not in known), None)
    return "" if unknown is None else f"'{unknown[:_SHOWN]}' is no field of it"


def _whole(at_least: int) -> Callable[[Any], bool]:
    # In JSON true is no number, though Python counts it as one. Lance counts in 64 bits.
    return lambda value: type(value) is int and at_least <= value < 1 << 63


def _is_score(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) < math.inf)


def _is_chunking(value: Any) -> bool:
    # How documents are cut; the cut has to go forward.
    names = ("size", "overlap_tokens", "overlap_sentences")
    return (
        isinstance(value, dict)
        and value.keys() >= {*names}
        and all(map(_whole(0), value.values()))
        and value["size"] > value["overlap_tokens"]
    )


def _is_sentences_table(value: Any) -> bool:
    # It becomes a path.
    return isinstance(value, str) and re.fullmatch(r"sentences(-[1-9]\d{0,8})?", value) is not None


_SHOWN = 40  # characters of a wrong value
_FITS: dict[str, Callable[[Any], bool]] = {
    "documents": _whole(1),
    "chunks": _whole(1),
    "sentences": _whole(1),
    "embedding_model": lambda value: isinstance(value, str) and value != "",
    "dimensions": _whole(1),
    "with_heading": lambda value: isinstance(value, bool),
    "chunking": _is_chunking,
    "generation": _whole(1),
    "next_number": _whole(1),
    "off_topic_score": _is_score,
    "off_topic_sentences": _whole(0),
    "sentences_table": _is_sentences_table,
    "schema_version": _whole(0),
}


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
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda data: {"sentences_table": "sentences", **data},
}


def _migrated(data: dict[str, Any], path: Path) -> dict[str, Any]:
    if not _whole(0)(version := data.get("schema_version")):
        raise _damaged(path, "it names no schema version")
    assert isinstance(version, int)
    while version in MIGRATIONS:
        data = {**MIGRATIONS[version](data), "schema_version": version + 1}
        version += 1
    if version == SCHEMA_VERSION:
        return data
    newer = "upgrade agentic-rag, or " if version > SCHEMA_VERSION else ""
    raise DamagedKnowledgeBase(
        f"{path.parent} has schema version {version} and this program knows {SCHEMA_VERSION}; "
        f"{newer}index again into a new directory with 'arag index PATH --kb NEW_DIRECTORY'."
    )
