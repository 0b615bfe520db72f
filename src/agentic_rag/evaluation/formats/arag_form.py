"""A-RAG's own form (arXiv 2602.03442): `questions.json` and `chunks.json`.

Questions as `evaluation.dataset` reads them; chunks as `documents.given_chunks` does: objects with
`id` and `text`, or `"id:text"` strings.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agentic_rag.documents.given_chunks import given_chunks
from agentic_rag.evaluation.dataset import BadDataset, question_from
from agentic_rag.evaluation.formats.prepared import (
    REPEATED,
    CorpusChunk,
    Prepared,
    notes_of,
    titled_text,
    without_repeats,
)
from agentic_rag.evaluation.formats.source_file import Entry, read_entries


def from_arag_form(entries: Sequence[Entry], corpus: Path | None) -> Prepared:
    """Questions, and the chunks of `corpus`, where one is named. Raises `BadDataset`."""
    pairs = [(entry, question_from(entry.value, entry.place)) for entry in entries]
    questions, repeated = without_repeats(pairs)
    chunks, notes = read_chunks(corpus) if corpus else (None, ())
    return Prepared(questions, chunks, (*notes_of(Counter({REPEATED: repeated})), *notes))


def read_chunks(path: Path) -> tuple[tuple[CorpusChunk, ...], tuple[str, ...]]:
    """The chunks of a `chunks.json`, and notes on items that were left out. Raises `BadDataset`."""
    entries = read_entries(path)
    found = given_chunks([entry.value for entry in entries])
    if found is None:
        wrong = next((e for e in entries if given_chunks([e.value]) is None), entries[0])
        raise BadDataset(f'{wrong.place} is no chunk such as {{"id": …, "text": …}}; correct it.')
    chunks, warnings = found
    kept: dict[str, CorpusChunk] = {}
    for chunk in chunks:
        new = CorpusChunk(
            chunk.source_id, chunk.title, titled_text(chunk.title, chunk.text), chunk.metadata
        )
        if kept.setdefault(chunk.source_id, new) != new:
            raise BadDataset(
                f"{path}: the id {chunk.source_id!r} is that of two different chunks; give each "
                "one its own."
            )
    return tuple(kept.values()), tuple(f"{path.name}: {warning}." for warning in warnings)
