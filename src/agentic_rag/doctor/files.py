"""Whether the files around the committed tables are right: newer versions that a crash left,
the word index, and the arrays derived from the sentences table.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import lance
import numpy as np

from agentic_rag.doctor.records import Finding
from agentic_rag.knowledge_base.bm25 import bm25
from agentic_rag.knowledge_base.fragments import (
    Derived,
    derived_files,
    keys_of,
    read_derived,
    stem_of,
)
from agentic_rag.knowledge_base.head import read_head
from agentic_rag.knowledge_base.lock import writer
from agentic_rag.knowledge_base.records import DamagedKnowledgeBase
from agentic_rag.knowledge_base.sentence_tables import old_tables, unfinished_tables
from agentic_rag.knowledge_base.tables import GRACE, NAMES, open_table, reading, unindexed_rows


def check_versions(directory: Path) -> Iterator[Finding]:
    """Versions newer than the head's, where nobody is writing now."""
    head = read_head(directory)  # a writer may have come and gone meanwhile
    if head is None or writer(directory):
        return
    past = [
        f"{name} (version {newest}, committed {committed})"
        for name in NAMES
        if (newest := open_table(directory, head.table_name(name)).version)
        != (committed := getattr(head, name))
    ]
    if past and not writer(directory):
        yield Finding(
            "tables_past_head",
            f"An interrupted writer left work behind in {', '.join(past)}; no search sees it.",
            "`arag index PATH` goes on with it; `arag compact` puts it aside.",
        )


def check_sentence_tables(directory: Path, serving: str) -> Iterator[Finding]:
    """Tables of sentences that an interrupted change of the embedding model left, where nobody is
    writing now, and such as no reader can hold any more."""
    if writer(directory):
        return
    for one in unfinished_tables(directory, serving):
        yield Finding(
            "unfinished_reembedding",
            f"A change to the embedding model '{one.embedding_model}' was interrupted after "
            f"{one.sentences:,} sentences; searches are as before it.",
            "`arag reembed`, with embedding.model set to that one, goes on with it; `arag compact` "
            "drops it when embedding.model is another.",
        )
    old = old_tables(directory, serving, GRACE)
    if old:
        yield Finding(
            "sentence_tables_left",
            f"{', '.join(old)}: of no use any more.",
            "`arag compact` deletes what is left over.",
        )


def check_word_index(chunks: lance.LanceDataset) -> Iterator[Finding]:
    """A word index that is not there, cannot be read, or does not cover every row."""
    state = word_index_state(chunks)
    if state == "usable":
        if rows := unindexed_rows(chunks):
            yield Finding(
                "unindexed_rows",
                f"The word index does not cover {rows:,} of {chunks.count_rows():,} chunks; BM25 "
                "finds them all the same, but slower.",
                "`arag compact` brings them in.",
            )
        return
    yield Finding(
        "no_word_index",
        f"The word index is {state}, so BM25 and hybrid search fail.",
        "`arag doctor --fix` makes it anew.",
    )


def word_index_state(chunks: lance.LanceDataset) -> Literal["usable", "missing", "not readable"]:
    """How the word index of this version of the chunks table is."""
    if not any(index.name == "words_idx" for index in chunks.describe_indices()):
        return "missing"
    words = chunks.to_table(columns=["words"], limit=1)["words"].to_pylist()
    try:
        with reading(chunks.uri):
            unindexed_rows(chunks)
        bm25(chunks, " ".join(words).split()[:1], 1, None)  # an index that is cut off fails here
    except DamagedKnowledgeBase:
        return "not readable"
    return "usable"


def check_derived(
    directory: Path, sentences: lance.LanceDataset, kept: Sequence[lance.LanceDataset]
) -> Iterator[Finding]:
    """Derived files that do not say what their table says, or belong to no fragment of it and of
    the tables that are `kept` beside it."""
    wrong = wrong_derived_files(directory, sentences)
    if wrong:
        yield Finding(
            "derived_files_wrong",
            f"{len(wrong)} derived files do not hold what their table holds, so that semantic "
            "search may err.",
            "`arag doctor --fix` deletes them; the next search makes them anew.",
            files=tuple(str(path) for path in wrong),
        )
    stems = {stem_of(fragment) for table in kept for fragment in table.get_fragments()}
    oldest = time.time() - GRACE.total_seconds()
    stray = [
        path
        for path in sorted((directory / "derived").glob("*"))
        if (path.name.split(".", 1)[0] not in stems or path.suffix == ".tmp")
        and path.stat().st_mtime < oldest
    ]
    if stray:
        size = sum(path.stat().st_size for path in stray) / 1e6
        yield Finding(
            "derived_files_left",
            f"{len(stray)} derived files of {size:.1f} MB are of no use any more.",
            "`arag compact` deletes them.",
            files=tuple(str(path) for path in stray),
        )


def wrong_derived_files(directory: Path, sentences: lance.LanceDataset) -> list[Path]:
    """The derived files, by fragment, that cannot be read or differ from the table."""
    wrong: list[Path] = []
    for fragment in sentences.get_fragments():
        files = derived_files(directory / "derived", stem_of(fragment))
        if not all(path.exists() for path in files):
            continue  # made when first needed
        derived = read_derived(directory / "derived", sentences, fragment)
        if derived is None or not _agrees(derived, sentences, fragment):
            wrong += files
    return wrong


def _agrees(derived: Derived, sentences: lance.LanceDataset, fragment: lance.LanceFragment) -> bool:
    vectors, owners, index = derived
    scanner = sentences.scanner(
        columns=["document", "chunk", "sentence", "vector"],
        fragments=[fragment],
        filter="vector IS NOT NULL",  # a sentence without one has no owner here
        with_row_address=True,
    )
    for batch in scanner.to_batches():
        rows = batch.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)
        flat = batch["vector"].flatten().to_numpy(zero_copy_only=False)
        same = (
            np.array_equal(owners[rows], keys_of(batch))
            and np.array_equal(index[rows], batch["sentence"].to_numpy())
            and np.array_equal(vectors[rows].ravel(), flat, equal_nan=True)
        )
        if not same:
            return False
    return True
