"""Embedding again the sentences that could not be embedded when their document came in.

Their texts are made from the chunks, so the documents need not be there any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from agentic_rag.knowledge_base.batches import Row
from agentic_rag.knowledge_base.embedding import VectorSource
from agentic_rag.knowledge_base.rows import SentenceDraft, sentence_rows, slices, stored_sentences
from agentic_rag.knowledge_base.tables import DOCUMENTS, Writer


@dataclass(frozen=True, slots=True)
class Retried:
    """What came of a document: its row as it is now, and its sentences that were tried."""

    row: Row
    drafts: Sequence[SentenceDraft]
    found: int  # sentences that have a vector now


def embed_missing(
    writer: Writer, source: VectorSource, rows: Sequence[Row], batch_size: int
) -> list[Retried]:
    """Give sentences without a vector one, in the documents of `rows` (of the documents table),
    and commit. Raises as `VectorSource.vectors`; what was embedded until then is kept."""
    wanted = {row["number"]: _without_vector(writer, row["number"]) for row in rows}
    drafts = [draft for found in wanted.values() for draft in found]
    try:
        for part in slices(drafts, batch_size, source.batches_at_once):
            source.vectors(part)
    finally:
        retried = [_written(writer, source, row, wanted[row["number"]]) for row in rows]
        changed = [one.row for one in retried if one.found]
        if changed:
            writer.put_documents(pa.Table.from_pylist(changed, schema=DOCUMENTS))
            writer.compact()
            writer.commit()
            source.committed(writer.table("sentences"))
    return retried


def _without_vector(writer: Writer, number: int) -> list[SentenceDraft]:
    null = (
        writer.table("sentences")
        .scanner(
            columns=["chunk", "sentence", "hash"],
            filter=f"document = {number} AND vector IS NULL",
        )
        .to_table()
        .to_pylist()
    )
    hashes = {(row["chunk"], row["sentence"]): row["hash"] for row in null}
    indexes: dict[int, list[int]] = {}
    for chunk, sentence in sorted(hashes):
        indexes.setdefault(chunk, []).append(sentence)
    if not indexes:
        return []
    chunks = (
        writer.table("chunks")
        .scanner(
            columns=["chunk", "title", "text", "sentences"],
            filter=f"document = {number} AND chunk IN ({', '.join(map(str, indexes))})",
        )
        .to_table()
        .to_pylist()
    )
    drafts = [
        draft
        for row in chunks
        for draft in stored_sentences(row, indexes[row["chunk"]], writer.head.with_heading)
    ]
    return [draft for draft in drafts if hashes[draft.chunk, draft.sentence] == draft.hash]


def _written(
    writer: Writer, source: VectorSource, row: Row, drafts: Sequence[SentenceDraft]
) -> Retried:
    """Replace the rows whose vector is at hand now."""
    there, vectors, present = source.at_hand(drafts)
    if not there:
        return Retried(row, drafts, 0)
    places = " OR ".join(f"(chunk = {d.chunk} AND sentence = {d.sentence})" for d in there)
    writer.table("sentences").delete(f"document = {row['number']} AND ({places})")
    writer.append("sentences", sentence_rows(row["number"], there, vectors, present))
    left = int(row["without_vector"]) - len(there)
    return Retried({**row, "without_vector": left}, drafts, len(there))
