"""Corpora that come already cut, in the form of A-RAG (arXiv 2602.03442).

A list of `{"id", "text"}`, with an optional "title" and any other keys, or of `"id:text"`
strings. Recognised only if every item fits; each item is one chunk and keeps its id.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.document import GivenChunk, Scalar
from agentic_rag.documents.front_matter import as_json, scalar

_ID_AND_TEXT = re.compile(r"([^\s:]{1,64}):(?!//)(.*)", re.DOTALL)
_NAMED_AT_MOST = 10  # ids in a warning


def given_chunks(
    records: Sequence[object],
) -> tuple[tuple[GivenChunk, ...], tuple[str, ...]] | None:
    """The chunks, and warnings about ids used twice and items left out; None if it is no corpus."""
    chunks = _from_objects(records) or _from_strings(records)
    if not chunks:
        return None
    warnings = []
    twice = [chunk_id for chunk_id, n in Counter(c.source_id for c in chunks).items() if n > 1]
    if twice:
        warnings.append(f"ids used more than once: {_named(twice)}")
    empty = [chunk.source_id for chunk in chunks if not chunk.text.strip()]
    if empty:
        warnings.append(f"items without text were left out: {_named(empty)}")
    return tuple(chunk for chunk in chunks if chunk.text.strip()), tuple(warnings)


def _from_objects(records: Sequence[object]) -> list[GivenChunk] | None:
    chunks = []
    for record in records:
        if not isinstance(record, dict):
            return None
        given, text = record.get("id"), record.get("text")
        if isinstance(given, bool) or not isinstance(given, str | int) or not isinstance(text, str):
            return None
        source_id = one_line(str(given))
        if not source_id:
            return None
        title = record.get("title")
        name = one_line(str(title)) if isinstance(title, str | int | float) else ""
        chunks.append(_chunk(source_id, name, text, _metadata(record)))
    return chunks


def _from_strings(records: Sequence[object]) -> list[GivenChunk] | None:
    """`"id:text"` strings. Since any list of strings with colons looks so ("note: …", "note: …"),
    at least half of the ids must be distinct."""
    chunks = []
    for record in records:
        match = _ID_AND_TEXT.match(record) if isinstance(record, str) else None
        if match is None:
            return None
        source_id = one_line(match[1])
        if not source_id:
            return None
        chunks.append(_chunk(source_id, "", match[2], {}))
    return chunks if 2 * len({chunk.source_id for chunk in chunks}) > len(chunks) else None


def _chunk(source_id: str, title: str, text: str, metadata: Mapping[str, Scalar]) -> GivenChunk:
    text = clean_text(text).strip()
    first, _, rest = text.partition("\n")
    if title and one_line(first) == title:
        # A text that is nothing but its title keeps it as text: it must be found somewhere.
        text, title = (rest.strip("\n"), title) if rest.strip() else (text, "")
    return GivenChunk(source_id=source_id, title=title, text=text, metadata=metadata)


def _metadata(record: Mapping[object, object]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for key, value in record.items():
        if key in ("id", "text", "title") or value is None:
            continue
        single = scalar(value)
        found[one_line(str(key))] = as_json(value) if single is None else single
    return found


def _named(ids: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(ids))
    more = len(distinct) - _NAMED_AT_MOST
    return ", ".join(distinct[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
