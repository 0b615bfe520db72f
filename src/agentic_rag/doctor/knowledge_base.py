"""The check-up of a knowledge base: every finding, and the repairs for those that need one."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from agentic_rag.doctor.files import (
    check_derived,
    check_sentence_tables,
    check_versions,
    check_word_index,
    word_index_state,
    wrong_derived_files,
)
from agentic_rag.doctor.records import Finding
from agentic_rag.doctor.rows import check_rows, check_vectors, read_rows
from agentic_rag.doctor.wording import cure_of, said
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import DamagedKnowledgeBase, KnowledgeBase
from agentic_rag.knowledge_base.head import read_head
from agentic_rag.knowledge_base.lock import writer_lock
from agentic_rag.knowledge_base.scanning import is_gone
from agentic_rag.knowledge_base.tables import (
    DOCUMENTS,
    NAMES,
    Writer,
    has_rows,
    open_committed,
    reading,
    sentence_tables,
    unindexed_rows,
)

_AGAIN = {"incomplete_documents", "rows_twice", "vectors_not_finite", "vectors_zero"}
_ORPHANS = {"orphan_chunks", "orphan_sentences"}


def check_knowledge_base(directory: Path) -> list[Finding]:
    """Everything wrong with the knowledge base in `directory`; nothing is changed.

    Reads every vector once. A base that is not there has no findings.
    """
    try:
        head = read_head(directory)
        if head is None:
            return [_without_head(directory)] if has_rows(directory) else []
        documents, chunks, sentences = (open_committed(directory, head, name) for name in NAMES)
    except DamagedKnowledgeBase as error:
        return [_unreadable(error)]

    def rows_and_vectors() -> Iterator[Finding]:
        rows = read_rows(documents, chunks, sentences)
        yield from check_rows(rows, head.next_number)
        yield from check_vectors(rows, sentences)

    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        rows_and_vectors,
        lambda: check_word_index(chunks),
        lambda: check_versions(directory),
        lambda: check_sentence_tables(directory, head.sentences_table),
        lambda: check_derived(
            directory, sentences, sentence_tables(directory, head.sentences_table)
        ),
    )
    found: list[Finding] = []
    unreadable: list[Finding] = []
    for check in checks:
        try:
            with reading(directory):
                found += check()
        except DamagedKnowledgeBase as error:
            unreadable.append(_unreadable(error))
    return unreadable[:1] + found  # what cannot be read fails more than one check


def _without_head(directory: Path) -> Finding:
    return Finding(
        "unreadable",
        f"{directory} has tables but no head.json, which says what is valid in them.",
        "Restore that file from a backup, or move the directory away and index again.",
    )


def _unreadable(error: DamagedKnowledgeBase) -> Finding:
    return Finding("unreadable", f"{said(error)}.", cure_of(error, "Restore it from a backup."))


@dataclass(frozen=True, slots=True)
class Repair:
    """What `repair` did: sentences for a person, and the documents it could not index again."""

    done: tuple[str, ...]
    failed: tuple[str, ...]


def repair(
    kb: KnowledgeBase,
    findings: list[Finding],
    *,
    on_wait: Callable[[str], None] | None = None,
) -> Repair:
    """Cure the findings that this program can cure. Takes the writer's lock.

    Damaged documents whose file is still there are indexed again under their number; those whose
    file is gone are left as they are. Raises EmbeddingModelMismatch before anything is written.
    """
    codes = {finding.code for finding in findings}
    kb.embedder()
    done: list[str] = []
    with writer_lock(kb.directory, on_wait=on_wait):
        writer = Writer(kb.directory)
        writer.sweep()
        if "tables_past_head" in codes:
            done.append("put aside what an interrupted writer had left")
        orphans = {n for f in findings if f.code in _ORPHANS for n in f.documents}
        if orphans:
            writer.delete_rows(orphans, ("chunks", "sentences"))
            done.append(f"deleted the rows of {len(orphans)} documents that are not there")
        known = {row["number"]: row for row in writer.table("documents").to_table().to_pylist()}
        damaged = {n for f in findings if f.code in _AGAIN for n in f.documents} & known.keys()
        again = {n: known[n] for n in sorted(damaged) if Path(known[n]["uri"]).is_file()}
        if again:
            writer.delete_rows(again)
            rows = [_to_index_again(row) for row in again.values()]
            writer.append("documents", pa.Table.from_pylist(rows, schema=DOCUMENTS))
        if word_index_state(writer.table("chunks")) != "usable":
            writer.remake_word_index()
            done.append("made the word index anew")
        elif unindexed_rows(writer.table("chunks")):
            writer.index_all_words()
            done.append("brought all rows into the word index")
        next_number = max([writer.head.next_number, *(number + 1 for number in known)])
        writer.commit(next_number=next_number)
        left = [Path(p) for f in findings if f.code == "derived_files_left" for p in f.files]
        for path in [*wrong_derived_files(kb.directory, writer.table("sentences")), *left]:
            with suppress(OSError):
                path.unlink()
                done.append(f"deleted {path.name}")
    failed = [f"{row['number']} {row['uri']}: its file is gone" for row in _gone(known, damaged)]
    for row in again.values():
        try:
            report = kb.add([row["uri"]], retry_failed=True)
        except AragError as error:
            failed.append(f"{row['number']} {row['uri']}: {error}")
            continue
        failed += [f"{row['number']} {o.uri}: {o.reason}" for o in report.failed]
        if not report.failed:
            done.append(f"indexed {row['number']} {row['uri']} again")
    return Repair(tuple(done), tuple(failed))


def _gone(known: Mapping[int, Any], damaged: set[int]) -> list[Any]:
    return [known[n] for n in sorted(damaged) if is_gone(Path(known[n]["uri"]))]


def _to_index_again(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "status": "failed",
        "reason": "it was damaged; `arag index --retry-failed` takes it again",
        "content_hash": "",
        "chunks": 0,
        "sentences": 0,
        "without_vector": 0,
        "tokens": 0,
    }
