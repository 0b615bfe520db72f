"""Which chunks a version has, in reading order, and where their rows are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.fragments import Keys, chunk_id, key, keys_of
from agentic_rag.knowledge_base.tables import reading


@dataclass(frozen=True, slots=True)
class Catalog:
    """The chunk keys of a version of the chunks table, ascending, with their row ids."""

    table: lance.LanceDataset
    keys: Keys
    row_ids: NDArray[np.uint64]

    def rows(self, keys: Sequence[int], columns: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """Rows of these chunks by key; `columns` must hold `document` and `chunk`."""
        if not keys:
            return {}
        wanted = self.row_ids[np.searchsorted(self.keys, keys)]
        with reading(self.table.uri):
            taken = self.table._take_rows([int(row) for row in wanted], columns=list(columns))
        return {key(row["document"], row["chunk"]): row for row in taken.to_pylist()}

    def position(self, chunk_key: int) -> int | None:
        """Where a chunk stands in reading order; None if there is none of that key."""
        at = int(np.searchsorted(self.keys, chunk_key))
        return at if at < len(self.keys) and self.keys[at] == chunk_key else None

    def neighbours(self, position: int, before: int, after: int) -> list[int]:
        """Keys of a chunk and of those around it in the same document."""
        document = self.keys[position] >> 32
        near = self.keys[max(0, position - max(0, before)) : position + max(0, after) + 1]
        return [int(k) for k in near if k >> 32 == document]

    def of_document(self, number: int) -> list[int]:
        """Keys of a document's chunks."""
        first, last = np.searchsorted(self.keys, [key(number, 0), key(number + 1, 0)])
        return [int(k) for k in self.keys[first:last]]

    def nearest(self, chunk_key: int) -> str | None:
        """The id nearest to one that does not exist, of the same document where it has any."""
        if not len(self.keys):
            return None
        at = int(np.searchsorted(self.keys, chunk_key))
        near = [int(k) for k in self.keys[max(0, at - 1) : at + 1]]
        same = [k for k in near if k >> 32 == chunk_key >> 32]
        return chunk_id(min(same or near, key=lambda k: abs(k - chunk_key)))


def read_catalog(table: lance.LanceDataset) -> Catalog:
    """The catalog of a version of the chunks table."""
    with reading(table.uri):
        rows = table.scanner(columns=["document", "chunk"], with_row_id=True).to_table()
    keys = keys_of(rows)
    order = np.argsort(keys)
    return Catalog(table, keys[order], rows["_rowid"].to_numpy()[order])
