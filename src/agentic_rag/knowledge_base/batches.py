"""Documents on their way into the tables, committed a batch at a time.

A batch ends by bytes, documents or seconds. A document too long for one batch is spilled: its
vectors are written as they come, unseen until it is whole, and where an interrupted run left them
the next run finds them again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from agentic_rag.config import Index
from agentic_rag.knowledge_base.tables import DOCUMENTS, Writer

Row = dict[str, Any]
# A waiting document takes some 25 kB besides its bytes, however small it is.
_MOST_DOCUMENTS = 2_000


@dataclass(slots=True)
class Entry:
    """A document for the next commit: its row, and its rows in the other tables.

    With `chunks` None only the document's row changes. `report` is called once it is committed.
    """

    row: Row
    report: Callable[[], None]
    chunks: pa.Table | None = None
    sentences: list[pa.Table] = field(default_factory=list)


class Batches:
    """Collects entries for a writer and commits them. `next_number` is given to new documents."""

    def __init__(self, writer: Writer, settings: Index) -> None:
        self._writer = writer
        self._settings = settings
        self._entries: list[Entry] = []
        self._bytes = 0
        self._began = time.monotonic()
        self.next_number = writer.head.next_number

    def new_number(self) -> int:
        """The number of a document that is new here; never given before."""
        self.next_number += 1
        return self.next_number - 1

    def is_full(self) -> bool:
        """Whether the batch is to be committed before more is taken."""
        settings = self._settings
        return (
            self._bytes >= settings.batch_mb * 1_000_000
            or len(self._entries) >= _MOST_DOCUMENTS
            or time.monotonic() - self._began >= settings.batch_seconds
        )

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """Take a document into the batch."""
        self._entries.append(entry)
        self._bytes += entry.row["size"]

    def commit(self) -> bool:
        """Write the batch and make it visible. False if there was none."""
        entries, self._entries = self._entries, []
        self._bytes, self._began = 0, time.monotonic()
        if not entries:
            return False
        changed = [entry for entry in entries if entry.chunks is not None]
        self._delete([entry.row["number"] for entry in changed])
        self._append([table for entry in changed for table in entry.sentences], "sentences")
        self._append([entry.chunks for entry in changed], "chunks")
        self._writer.put_documents(pa.Table.from_pylist([e.row for e in entries], schema=DOCUMENTS))
        self._writer.index_words()
        self._writer.compact()
        self._writer.commit(next_number=self.next_number)
        for entry in entries:
            entry.report()
        return True

    def spill(self, number: int, sentences: list[pa.Table], *, first: bool) -> None:
        """Write the vectors of a document that is not whole yet. The batch must be empty."""
        if first:
            self._delete([number])
        self._append(sentences, "sentences")
        self._began = time.monotonic()

    def put_spilled(self, entry: Entry) -> None:
        """Take a document whose vectors were spilled into the batch: write the rest of it now."""
        self._append(entry.sentences, "sentences")
        self._append([entry.chunks], "chunks")
        entry.sentences, entry.chunks = [], None
        self.put(entry)

    def _delete(self, numbers: Sequence[int]) -> None:
        self._writer.delete_rows(numbers, ("sentences", "chunks"))

    def _append(self, tables: Sequence[pa.Table | None], name: str) -> None:
        if tables:
            self._writer.append(name, pa.concat_tables(tables))
