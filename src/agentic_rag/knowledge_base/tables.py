"""The three Lance tables, read and written through pylance.

`documents` has one row a document, `chunks` one a chunk, `sentences` one a vector. LanceDB opens
them as they are. Importing `lance` takes 0.3 s, `lancedb` would take 1.3 s more.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from agentic_rag.knowledge_base.head import Head, read_head, write_head
from agentic_rag.knowledge_base.records import (
    DamagedKnowledgeBase,
    KnowledgeBaseReadOnly,
    NoKnowledgeBase,
)
from agentic_rag.knowledge_base.sentence_tables import other_tables, remove_old

NAMES = ("documents", "chunks", "sentences")
# Another process's merge of the same new key fails instead of doubling it.
_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
# Fragments of this many rows are never rewritten by compaction (about 200 MB of vectors).
_FULL_FRAGMENT = {"documents": 1_000_000, "chunks": 131_072, "sentences": 131_072}
_SMALL_FRAGMENTS = 16  # more than this many are compacted
# Bringing the word index up to date rewrites it (1.3 s at 100,000 chunks), a query scans what it
# does not cover; so it is done when this share of the rows is new. At 50 chunks that is any row.
_UNINDEXED_SHARE = 0.02
_UNINDEXED_MOST = 1_000
GRACE = timedelta(hours=1)  # a reader may hold an old version for this long

DOCUMENTS = pa.schema(
    [
        pa.field("number", pa.int32(), nullable=False, metadata=_KEY),
        ("uri", pa.string()),
        ("title", pa.string()),
        ("media_type", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("content_hash", pa.string()),
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("indexed_ns", pa.int64()),
        ("chunks", pa.int32()),
        ("sentences", pa.int32()),
        ("without_vector", pa.int32()),
        ("tokens", pa.int64()),
        ("metadata", pa.string()),  # JSON object: the document's own and what was given to it
        ("given_metadata", pa.string()),  # JSON object: only what was given, kept when it changes
        ("folders", pa.list_(pa.string())),  # its knowledge path
    ]
)
_SENTENCE = pa.struct(
    [
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("section", pa.string()),
        ("page", pa.int32()),
    ]
)
CHUNKS = pa.schema(
    [
        pa.field("document", pa.int32(), nullable=False),
        pa.field("chunk", pa.int32(), nullable=False),
        ("source_id", pa.string()),
        ("title", pa.string()),
        ("section", pa.string()),
        ("page", pa.int32()),
        ("text", pa.string()),
        ("words", pa.string()),  # of the text, for BM25, parted by blanks
        ("tokens", pa.int32()),
        ("sentences", pa.list_(_SENTENCE)),
        ("metadata", pa.string()),  # JSON object, null where the chunk has none of its own
    ]
)


def sentences_schema(dimensions: int) -> pa.Schema:
    """Schema of the sentences table; a null vector is a sentence that could not be embedded."""
    return pa.schema(
        [
            pa.field("document", pa.int32(), nullable=False),
            pa.field("chunk", pa.int32(), nullable=False),
            pa.field("sentence", pa.int32(), nullable=False),  # index into the chunk's sentences
            ("hash", pa.binary(16)),  # of the text that was embedded
            ("vector", pa.list_(pa.float32(), dimensions)),
        ]
    )


def table_path(directory: Path, name: str) -> str:
    return str(directory / f"{name}.lance")


def open_table(directory: Path, name: str, version: int | None = None) -> lance.LanceDataset:
    """A table at a version (the newest by default). Raises DamagedKnowledgeBase."""
    try:
        return lance.dataset(table_path(directory, name), version=version)
    except (ValueError, OSError) as error:
        raise DamagedKnowledgeBase(
            f"Table '{name}' of {directory} cannot be opened at version {version} "
            f"({_short(error)}); restore the directory from a backup or index again elsewhere."
        ) from error


def open_committed(directory: Path, head: Head, name: str) -> lance.LanceDataset:
    """A table of `NAMES` at the version of a head. Raises DamagedKnowledgeBase."""
    return open_table(directory, head.table_name(name), getattr(head, name))


def sentence_tables(directory: Path, serving: str) -> list[lance.LanceDataset]:
    """The table of sentences that serves, and those beside it that can be opened."""
    found = [open_table(directory, serving)]
    for name in other_tables(directory, serving):
        with suppress(DamagedKnowledgeBase):  # cut short when it was made or removed
            found.append(open_table(directory, name))
    return found


def create_tables(directory: Path, head: Head) -> Head:
    """Make empty tables with their word index and commit them; `head` gives the rest.

    What a creation that was cut short left behind is cleared first; tables with rows never are.
    """
    if has_rows(directory):
        raise DamagedKnowledgeBase(
            f"{directory} has tables with rows but no head.json; restore that file from a "
            "backup, or move the directory away and index again."
        )
    for name in NAMES:
        left = Path(table_path(directory, name))
        if left.exists():
            shutil.rmtree(left)
    schemas = {
        "documents": DOCUMENTS,
        "chunks": CHUNKS,
        "sentences": sentences_schema(head.dimensions),
    }
    versions: dict[str, Any] = {}
    for name, schema in schemas.items():
        table = lance.write_dataset(schema.empty_table(), table_path(directory, name))
        if name == "chunks":
            _create_word_index(table)
        versions[name] = open_table(directory, name).version
    head = replace(head, **versions)
    write_head(directory, head)
    return head


def is_knowledge_base(directory: Path) -> bool:
    """Whether a directory is, or was about to become, a knowledge base."""
    return Path(table_path(directory, "documents")).is_dir()


def has_rows(directory: Path) -> bool:
    """Whether the tables of a directory, with or without a head, hold anything."""
    return any(_has_rows(directory, name) for name in NAMES)


def _has_rows(directory: Path, name: str) -> bool:
    try:
        return bool(lance.dataset(table_path(directory, name)).count_rows())
    except (ValueError, OSError):
        # Cut short before its first version, which is empty, or damaged.
        return any(Path(table_path(directory, name), "data").glob("*"))


def _create_word_index(table: lance.LanceDataset) -> None:
    # `whitespace` keeps our own words; the default length limit would lose long ones silently.
    table.create_scalar_index(
        "words",
        "INVERTED",
        base_tokenizer="whitespace",
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        lower_case=False,
        max_token_length=None,
        with_position=False,
    )


class Writer:
    """The newest versions of the tables, for whoever holds the lock.

    Every change is made to the newest version and stays unseen until `commit`.
    """

    def __init__(self, directory: Path) -> None:
        head = read_head(directory)
        if head is None:
            raise NoKnowledgeBase(
                f"There is no knowledge base at {directory}; make one with 'arag index PATH'."
            )
        self.directory = directory
        self.head = head

    def table(self, name: str) -> lance.LanceDataset:
        """The newest version of a table: one of `NAMES`, or one of sentences by its own name."""
        return open_table(self.directory, self.head.table_name(name))

    def committed(self, name: str) -> lance.LanceDataset:
        """The version of a table of `NAMES` that the head names."""
        return open_committed(self.directory, self.head, name)

    def sentence_tables(self) -> list[lance.LanceDataset]:
        """The table of sentences, and those beside it that can be opened."""
        return sentence_tables(self.directory, self.head.sentences_table)

    def _leftovers(self) -> dict[bytes, list[float]]:
        table = self.table("sentences")
        if table.version == self.head.sentences:
            return {}
        known = {_data_file(fragment) for fragment in self.committed("sentences").get_fragments()}
        new = [f for f in table.get_fragments() if _data_file(f) not in known]
        if not new:
            return {}
        rows = table.scanner(
            columns=["hash", "vector"], filter="vector IS NOT NULL", fragments=new
        ).to_table()
        return dict(zip(rows["hash"].to_pylist(), rows["vector"].to_pylist(), strict=True))

    def sweep(self) -> dict[bytes, list[float]]:
        """Put aside whatever the tables hold past the head, as an interrupted run leaves it.

        Gives the vectors among it by the hash of their text. Every writer begins with this.
        """
        leftovers = self._leftovers()
        swept = False
        for name in NAMES:
            if self.table(name).version != getattr(self.head, name):
                self.committed(name).restore()  # type: ignore[no-untyped-call]
                swept = True
        if swept:
            self.commit()
        return leftovers

    def append(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            path = table_path(self.directory, self.head.table_name(name))
            lance.write_dataset(rows, path, mode="append")

    def put_documents(self, rows: pa.Table) -> None:
        """Insert documents, or replace those of the same number."""
        (
            self.table("documents")
            .merge_insert("number")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(rows)
        )

    def delete_rows(self, numbers: Iterable[int], names: Iterable[str] = NAMES) -> None:
        """Delete the rows of the documents with these numbers."""
        listed = ", ".join(str(number) for number in sorted(numbers))
        if not listed:
            return
        for name in names:
            column = "number" if name == "documents" else "document"
            self.table(name).delete(f"{column} IN ({listed})")

    def commit(self, **changes: Any) -> Head:
        """Make the newest versions the knowledge base, with `changes` to the head's fields."""
        current = read_head(self.directory)
        if current is None or current.generation != self.head.generation:
            raise DamagedKnowledgeBase(
                f"{self.directory} was changed by a writer without the lock; nothing was "
                "committed: run the same command again."
            )
        head = replace(self.head, generation=self.head.generation + 1, **changes)
        versions: dict[str, Any] = {
            name: open_table(self.directory, head.table_name(name)).version for name in NAMES
        }
        self.head = replace(head, **versions)
        write_head(self.directory, self.head)
        return self.head

    def index_words(self) -> bool:
        """Bring new rows into the word index if there are enough of them to be worth it."""
        table = self.table("chunks")
        few = min(_UNINDEXED_MOST, _UNINDEXED_SHARE * table.count_rows())
        if unindexed_rows(table) <= few:
            return False
        table.optimize.optimize_indices()
        return True

    def index_all_words(self) -> None:
        """Bring every row into the word index."""
        self.table("chunks").optimize.optimize_indices()

    def remake_word_index(self) -> None:
        """Make the word index anew, over all rows."""
        _create_word_index(self.table("chunks"))

    def compact(self, *, at_least: int = _SMALL_FRAGMENTS) -> bool:
        """Join small files, in tables that have more than `at_least` of them."""
        return any([self.compact_table(name, at_least=at_least) for name in NAMES])

    def compact_table(self, name: str, *, at_least: int = _SMALL_FRAGMENTS) -> bool:
        """Join small files of one table, if it has more than `at_least` of them."""
        table = self.table(name)
        full = _FULL_FRAGMENT[name.partition("-")[0]]
        ragged = [f for f in table.get_fragments() if f.physical_rows < full or f.num_deletions]
        if len(ragged) <= at_least:
            return False
        table.optimize.compact_files(target_rows_per_fragment=full)
        return True

    def clean(self) -> None:
        """Delete versions and tables that no reader can hold any more; right after a commit."""
        for name in NAMES:
            self.table(name).cleanup_old_versions(older_than=GRACE)
        remove_old(self.directory, self.head.sentences_table, GRACE)


def unindexed_rows(table: lance.LanceDataset) -> int:
    """Rows that the word index does not cover yet (found all the same, by a scan)."""
    try:
        return int(table.stats.index_stats("words_idx")["num_unindexed_rows"])
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise lost_word_index(table, error) from error


def lost_word_index(table: lance.LanceDataset, error: Exception) -> DamagedKnowledgeBase:
    """The error for a word index that cannot be used, while the rows it is made from are there."""
    return DamagedKnowledgeBase(
        f"The word index of {table.uri} cannot be read ({_short(error)}); "
        "run `arag doctor --fix`, which makes it anew."
    )


def _data_file(fragment: lance.LanceFragment) -> str:
    return str(fragment.data_files()[0].path)


def bytes_and_files(directory: Path) -> tuple[int, int]:
    """Size in bytes and number of the files under a directory."""
    size = count = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += (Path(folder) / name).stat().st_size
                count += 1
            except OSError:
                continue  # a writer may remove it meanwhile
    return size, count


@contextmanager
def reading(directory: str | Path) -> Iterator[None]:
    """Turns what Lance raises for files that are lost or spoilt into DamagedKnowledgeBase."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, IndexError) as error:
        raise DamagedKnowledgeBase(
            f"The tables of {directory} cannot be read ({_short(error)}); restore the directory "
            "from a backup, or remove it and index again."
        ) from error


# What the system says where a file cannot be written, in any of its libraries; in plain words,
# and what to do.
_REFUSED = {
    "No space left on device": ("the disk is full", "make room there"),
    "Disk quota exceeded": ("the quota is used up", "make room there"),
    "File too large": ("a file would be larger than is allowed there", "raise that limit"),
    "Read-only file system": ("the file system is read-only", "make it writable"),
}


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turns what is raised where the disk takes no more into KnowledgeBaseReadOnly."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        for sign, (why, cure) in _REFUSED.items():
            if sign in str(error):
                raise KnowledgeBaseReadOnly(
                    f"{directory} cannot be written to, as {why}; {cure} and run the same command "
                    "again, which goes on with what is kept."
                ) from error
        raise


def _short(error: Exception) -> str:
    """The first line of a message of Lance, without the places in its own source code."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r",?\s*\S*\.rs(:\d+)*", "", line)[:200]
