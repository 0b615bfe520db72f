"""Damaging a knowledge base behind its back: by lance, and into what is committed."""

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

NAMES = ("documents", "chunks", "sentences")


def table(directory: Path, name: str) -> lance.LanceDataset:
    return lance.dataset(str(directory / f"{name}.lance"))


def commit(directory: Path, **changes: Any) -> None:
    """Make the newest versions the committed ones, as a faulty writer would."""
    head = json.loads((directory / "head.json").read_text())
    head |= {name: table(directory, name).version for name in NAMES} | changes
    (directory / "head.json").write_text(json.dumps(head))


def delete(directory: Path, name: str, where: str) -> None:
    table(directory, name).delete(where)
    commit(directory)


def repeat(directory: Path, name: str, where: str) -> None:
    """Write rows a second time."""
    append(directory, name, table(directory, name).to_table(filter=where))


def append(directory: Path, name: str, rows: pa.Table) -> None:
    lance.write_dataset(rows, str(directory / f"{name}.lance"), mode="append")
    commit(directory)


def set_vector(directory: Path, where: str, value: float) -> int:
    """Fill the vectors of some sentences with `value`; how many."""
    sentences = table(directory, "sentences")
    rows = sentences.to_table(filter=where)
    dimensions = sentences.schema.field("vector").type.list_size
    vectors = np.full((rows.num_rows, dimensions), value, dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimensions)
    spoilt = rows.set_column(
        rows.schema.get_field_index("vector"), sentences.schema.field("vector"), column
    )
    sentences.delete(where)
    append(directory, "sentences", spoilt)
    return int(rows.num_rows)
