"""Whether the committed tables hold whole documents and nothing else, each row once.

Takes the pinned versions of a head and gives findings; changes nothing. Keys of all rows are
held in memory (8 bytes each), vectors are read a batch at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentic_rag.doctor.records import Finding
from agentic_rag.knowledge_base.fragments import Keys, keys_of

_BATCH = 8192  # vectors looked at together
_ZERO = 1e-6  # a vector of unit length is far above this
_NAMED = 5  # documents named in a message


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that the committed versions hold. `sentence_index` goes with `sentence_keys`."""

    documents: Sequence[Mapping[str, Any]]
    chunk_keys: Keys
    sentence_keys: Keys
    sentence_index: NDArray[np.int64]

    @property
    def numbers(self) -> set[int]:
        return {int(row["number"]) for row in self.documents}


def read_rows(
    documents: lance.LanceDataset, chunks: lance.LanceDataset, sentences: lance.LanceDataset
) -> Rows:
    """Every document, and the keys of every other row."""
    columns = ["number", "uri", "status", "chunks", "sentences", "metadata"]
    sentence_rows = sentences.to_table(columns=["document", "chunk", "sentence"])
    return Rows(
        documents.to_table(columns=columns).to_pylist(),
        keys_of(chunks.to_table(columns=["document", "chunk"])),
        keys_of(sentence_rows),
        sentence_rows["sentence"].to_numpy().astype(np.int64),
    )


def check_rows(rows: Rows, next_number: int) -> Iterator[Finding]:
    """Findings about documents that are not whole, orphans and rows that stand twice."""
    incomplete = incomplete_documents(rows)
    if incomplete:
        yield Finding(
            "incomplete_documents",
            f"{_count(len(incomplete))} not whole: rows are missing or do not belong together: "
            f"{_named(rows, incomplete)}.",
            _again(len(incomplete)),
            documents=tuple(incomplete),
        )
    for table, keys in (("chunks", rows.chunk_keys), ("sentences", rows.sentence_keys)):
        owners = keys >> 32
        lost = ~np.isin(owners, np.array(sorted(rows.numbers), dtype=np.int64))
        if lost.any():
            yield Finding(
                f"orphan_{table}",
                f"{int(lost.sum()):,} rows of the table {table} belong to no document; "
                "searches may show them or fail.",
                "`arag doctor --fix` deletes them.",
                documents=_numbers(owners[lost]),
            )
    twice = repeated_documents(rows)
    if twice:
        yield Finding(
            "rows_twice",
            f"{_count(len(twice))} with rows that stand twice: {_named(rows, twice)}.",
            _again(len(twice)),
            documents=tuple(twice),
        )
    uris: dict[str, list[int]] = {}
    for row in rows.documents:
        uris.setdefault(row["uri"], []).append(int(row["number"]))
    for uri, numbers in uris.items():
        if len(set(numbers)) > 1:
            surplus = sorted(set(numbers))[:-1]
            listed = " ".join(str(number) for number in surplus)
            yield Finding(
                "path_twice",
                f"{uri} is there as {len(set(numbers))} documents.",
                f"`arag remove {listed}` leaves the newest.",
                documents=tuple(surplus),
            )
    highest = max(rows.numbers, default=0)
    if highest >= next_number:
        yield Finding(
            "number_used_again",
            f"The next new document would get number {next_number}, and {highest} is in use.",
            "`arag doctor --fix` raises the count.",
        )


def incomplete_documents(rows: Rows) -> list[int]:
    """Documents whose chunks or sentences are not those that their row counts."""
    chunks = np.unique(rows.chunk_keys)
    sentences, counts = _sentences_once(rows)
    chunk_count = _count_by_document(chunks)
    last = chunks[np.append(chunks[1:] >> 32 != chunks[:-1] >> 32, True)] if len(chunks) else chunks
    last_chunk = dict(zip((last >> 32).tolist(), (last & 0xFFFFFFFF).tolist(), strict=True))
    stray = set((sentences[~np.isin(sentences, chunks)] >> 32).tolist())
    return sorted(
        {
            number
            for row in rows.documents
            if (number := int(row["number"])) in stray
            or chunk_count.get(number, 0) != row["chunks"]
            or last_chunk.get(number, 0) != row["chunks"]
            or counts.get(number, 0) != row["sentences"]
        }
    )


def repeated_documents(rows: Rows) -> list[int]:
    """Documents of which a row stands twice, in any table."""
    numbers = np.array([row["number"] for row in rows.documents], dtype=np.int64)
    order = np.lexsort((rows.sentence_index, rows.sentence_keys))
    keys, index = rows.sentence_keys[order], rows.sentence_index[order]
    same = (keys[1:] == keys[:-1]) & (index[1:] == index[:-1])
    found = {
        *_repeated(numbers).tolist(),
        *(_repeated(rows.chunk_keys) >> 32).tolist(),
        *(keys[1:][same] >> 32).tolist(),
    }
    return sorted(found & rows.numbers)


def check_vectors(rows: Rows, sentences: lance.LanceDataset) -> Iterator[Finding]:
    """Findings about vectors that spoil a search: not finite, or all zero."""
    bad = {"not finite": lambda v: ~np.isfinite(v).all(axis=1), "zero": _is_zero}
    found: dict[str, list[int]] = {name: [] for name in bad}
    for owners, vectors in _vectors(sentences):
        for name, test in bad.items():
            found[name] += owners[test(vectors)].tolist()
    for name, owners_of in found.items():
        if owners_of:
            documents = _numbers(np.array(owners_of))
            yield Finding(
                "vectors_" + name.replace(" ", "_"),
                f"{len(owners_of):,} vectors are {name} ({_named(rows, documents)}).",
                _again(len(documents)),
                documents=documents,
            )


def _is_zero(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    zero: NDArray[np.bool_] = np.abs(vectors).max(axis=1, initial=0) < _ZERO
    return zero


def _vectors(
    sentences: lance.LanceDataset,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    dimensions = sentences.schema.field("vector").type.list_size
    scanner = sentences.scanner(
        columns=["document", "vector"], filter="vector IS NOT NULL", batch_size=_BATCH
    )
    for batch in scanner.to_batches():
        column = batch["vector"]
        assert isinstance(column, pa.FixedSizeListArray)
        flat = column.flatten().to_numpy(zero_copy_only=False)
        yield batch["document"].to_numpy().astype(np.int64), flat.reshape(-1, dimensions)


def _repeated(keys: Keys) -> Keys:
    ordered = np.sort(keys)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _count_by_document(keys: Keys) -> dict[int, int]:
    numbers, counts = np.unique(keys >> 32, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _sentences_once(rows: Rows) -> tuple[Keys, dict[int, int]]:
    """The keys of sentence rows, each row once, and how many each document has."""
    order = np.lexsort((rows.sentence_index, rows.sentence_keys))
    keys, index = rows.sentence_keys[order], rows.sentence_index[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (index[1:] != index[:-1])
    return keys[first], _count_by_document(keys[first])


def _numbers(owners: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(number) for number in np.unique(owners))


def _count(documents: int) -> str:
    return "1 document" if documents == 1 else f"{documents:,} documents"


def _named(rows: Rows, numbers: Sequence[int]) -> str:
    uris = {int(row["number"]): row["uri"] for row in rows.documents}
    named = [f"{number} {uris[number]}" for number in numbers[:_NAMED] if number in uris]
    more = len(numbers) - len(named)
    return ", ".join([*named, *([f"and {more} more"] if more else [])])


def _again(count: int) -> str:
    them, files = ("it", "its file") if count == 1 else ("them", "their files")
    return (
        f"`arag doctor --fix` indexes {them} again from {files}; "
        "where the file is gone, `arag remove NUMBER` takes the document out."
    )
