"""What searches keep in memory or in mapped files, one piece a Lance fragment.

A fragment's rows never change, so a piece is derived once and serves every later version that
still has the fragment; a new document costs only its own fragment. Deletions are laid over as a
mask when a version is opened.
"""

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

_DRAFT_LIFE = 3600  # seconds
Derived = tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int32]]
Keys = NDArray[np.int64]  # document number << 32 | chunk number, so that order is reading order


def keys_of(rows: pa.Table | pa.RecordBatch) -> Keys:
    """The chunk keys of rows with columns `document` and `chunk`."""
    documents: Keys = rows["document"].to_numpy().astype(np.int64)
    chunks: Keys = rows["chunk"].to_numpy().astype(np.int64)
    return (documents << 32) | chunks


def key(document: int, chunk: int) -> int:
    return (document << 32) | chunk


def chunk_id(chunk_key: int) -> str:
    return f"{chunk_key >> 32}-{chunk_key & 0xFFFFFFFF}"


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Lowered texts of a fragment's live rows, with their keys; `ngram_counts` are filled in by
    keyword search, by the length of the n-grams."""

    lowered: "pl.Series"
    keys: Keys
    ngram_counts: dict[int, NDArray[np.uint8]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VectorPiece:
    """Vectors of a fragment, (rows, dimensions); `owners` are chunk keys, `sentences` indexes into
    the chunk's sentences; rows that are deleted or have no vector are False in `live`."""

    vectors: NDArray[np.float32]
    owners: Keys
    sentences: NDArray[np.int32]
    live: NDArray[np.bool_]


class FragmentCache:
    """Pieces by the name of the fragment's data file; safe to use from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "derived"
        self._texts: dict[str, TextPiece] = {}
        self._mapped: dict[str, Derived] = {}
        self._vectors: dict[str, VectorPiece] = {}
        self._lock = threading.Lock()

    def texts(self, table: lance.LanceDataset) -> list[TextPiece]:
        """Lowered texts of every fragment of this version of the chunks table."""
        with self._lock:
            wanted = {_name(f): f for f in table.get_fragments()}
            pieces = {n: self._texts.get(n) or _lowered(table, f) for n, f in wanted.items()}
            self._texts = pieces
            return list(pieces.values())

    def vectors(self, table: lance.LanceDataset) -> list[VectorPiece]:
        """Vectors of every fragment of this version of the sentences table."""
        with self._lock:
            wanted = {_name(f): f for f in table.get_fragments()}
            pieces = {
                n: self._vectors.get(n) or self._vector_piece(table, f) for n, f in wanted.items()
            }
            self._vectors = pieces
            self._mapped = {
                n: m for n, m in self._mapped.items() if any(w.startswith(n) for w in wanted)
            }
            return list(pieces.values())

    def _vector_piece(
        self, table: lance.LanceDataset, fragment: lance.LanceFragment
    ) -> VectorPiece:
        stem = stem_of(fragment)
        if stem not in self._mapped:
            known = read_derived(self._directory, table, fragment)
            self._mapped[stem] = known or self._derive(table, fragment)
        vectors, owners, sentences = self._mapped[stem]
        live = owners >= 0
        if fragment.num_deletions:
            alive = np.zeros(len(live), dtype=np.bool_)
            alive[_live_offsets(table, fragment)] = True
            live &= alive
        return VectorPiece(vectors, owners, sentences, live)

    def _derive(self, table: lance.LanceDataset, fragment: lance.LanceFragment) -> Derived:
        columns = ["document", "chunk", "sentence", "vector"]
        rows = table.scanner(
            columns=columns, fragments=[fragment], with_row_address=True
        ).to_table()
        offsets = _offsets(rows)
        dimensions = _dimensions(table)
        vectors = np.zeros((fragment.physical_rows, dimensions), dtype=np.float32)
        owners = np.full(fragment.physical_rows, -1, dtype=np.int64)
        sentences = np.zeros(fragment.physical_rows, dtype=np.int32)
        column = rows["vector"].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        present = column.is_valid().to_numpy(zero_copy_only=False)
        flat = column.values.to_numpy(zero_copy_only=False).reshape(-1, dimensions)
        vectors[offsets[present]] = flat[column.offset : column.offset + len(column)][present]
        owners[offsets[present]] = keys_of(rows)[present]
        sentences[offsets] = rows["sentence"].to_numpy()
        derived: Derived = (vectors, owners, sentences)
        with contextlib.suppress(OSError):  # a read-only knowledge base is searched from memory
            self._directory.mkdir(exist_ok=True)
            for path, array in zip(
                derived_files(self._directory, stem_of(fragment)), derived, strict=True
            ):
                draft = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
                with draft.open("wb") as file:
                    np.save(file, np.asarray(array))
                draft.replace(path)
            return read_derived(self._directory, table, fragment) or derived
        return derived

    def clean(self, keep: list[lance.LanceDataset]) -> None:
        """Delete derived files of fragments that none of these versions has."""
        stems = {stem_of(f) for table in keep for f in table.get_fragments()}
        for path in self._directory.glob("*"):
            with contextlib.suppress(OSError):  # another process may be clearing it too
                # A draft this old was left by a crash.
                old = time.time() - path.stat().st_mtime > _DRAFT_LIFE
                if path.name.split(".", 1)[0] not in stems or (path.suffix == ".tmp" and old):
                    path.unlink()


def derived_files(folder: Path, stem: str) -> list[Path]:
    """The files of a fragment in `folder`: its vectors, their owners, their sentences."""
    return [folder / f"{stem}.{part}.npy" for part in ("vectors", "owners", "sentences")]


def read_derived(
    folder: Path, table: lance.LanceDataset, fragment: lance.LanceFragment
) -> Derived | None:
    """What the derived files of a fragment hold, the vectors mapped; None where they are not all
    there, cannot be read, or are not arrays of the fragment's size."""
    vectors_file, owners_file, sentences_file = derived_files(folder, stem_of(fragment))
    try:
        vectors = np.load(vectors_file, mmap_mode="r")
        owners, sentences = np.load(owners_file), np.load(sentences_file)
        found = [(array.shape, array.dtype) for array in (vectors, owners, sentences)]
    except Exception:  # numpy has many errors for spoilt bytes, EOFError and BadZipFile among them
        return None
    rows = fragment.physical_rows
    fits = found == [
        ((rows, _dimensions(table)), np.float32),
        ((rows,), np.int64),
        ((rows,), np.int32),
    ]
    return (vectors, owners, sentences) if fits else None


def stem_of(fragment: lance.LanceFragment) -> str:
    """What the names of a fragment's derived files begin with."""
    return Path(fragment.data_files()[0].path).stem


def _dimensions(table: lance.LanceDataset) -> int:
    return int(table.schema.field("vector").type.list_size)


def _name(fragment: lance.LanceFragment) -> str:
    return f"{stem_of(fragment)}-{fragment.num_deletions}"


def _offsets(rows: pa.Table) -> NDArray[np.int64]:
    # A row address is fragment id << 32 | offset.
    addresses: NDArray[np.uint64] = rows["_rowaddr"].to_numpy()
    return (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _live_offsets(table: lance.LanceDataset, fragment: lance.LanceFragment) -> NDArray[np.int64]:
    rows = table.scanner(
        columns=["sentence"], fragments=[fragment], with_row_address=True
    ).to_table()
    return _offsets(rows)


def _lowered(table: lance.LanceDataset, fragment: lance.LanceFragment) -> TextPiece:
    rows = table.scanner(columns=["document", "chunk", "text"], fragments=[fragment]).to_table()
    import polars as pl  # 0.1 s, which only keyword search waits for

    # Python's lower(), since polars lowers 55 code points another way.
    lowered = pl.Series([text.lower() for text in rows["text"].to_pylist()], dtype=pl.String)
    return TextPiece(lowered, keys_of(rows))
