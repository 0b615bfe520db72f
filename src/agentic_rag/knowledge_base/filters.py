"""Filters: which documents fit path globs, which chunks the metadata asked for."""

import json
from collections.abc import Callable, Mapping

import lance
import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.fragments import Keys, keys_of
from agentic_rag.knowledge_base.records import BadQuery, DocumentInfo, Filter
from agentic_rag.text.document import Scalar

Allowed = Callable[[Keys], NDArray[np.bool_]]


def allowed_chunks(
    where: Filter | None, documents: Mapping[int, DocumentInfo], chunks: lance.LanceDataset
) -> Allowed | None:
    """A function that says which chunk keys pass the filter; None where all do."""
    if where is None or not (where.paths or where.metadata):
        return None
    fitting = documents if not where.paths else documents_on_paths(where.paths, documents)
    if where.metadata:
        own = _with_metadata(where.metadata, fitting, chunks)
        return lambda keys: np.isin(keys, own)
    by_number = np.zeros(max(documents, default=0) + 1, dtype=np.bool_)
    by_number[list(fitting)] = True
    return lambda keys: by_number[keys >> 32]


def documents_on_paths(
    globs: tuple[str, ...], documents: Mapping[int, DocumentInfo]
) -> dict[int, DocumentInfo]:
    """Documents on paths that fit; a relative glob fits at any depth, a folder all in it."""
    import pathspec

    lines = []
    for glob in globs:
        if not glob.strip():
            raise BadQuery("A path filter is empty; give a glob such as 'docs/*.md'.")
        literal = f"\\{glob}" if glob[0] in "!#" else glob.removeprefix("./")
        lines.append(literal if glob.startswith("/") else f"**/{literal}")
    try:
        matcher = pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise BadQuery(
            f"The path filter is not a glob ({error}); give one such as 'docs/*.md'."
        ) from None
    return {n: d for n, d in documents.items() if matcher.match_file(d.uri)}


def _with_metadata(
    wanted: Mapping[str, str], documents: Mapping[int, DocumentInfo], chunks: lance.LanceDataset
) -> Keys:
    """Keys of the chunks whose metadata, with their document's, has every wanted value."""
    rows = chunks.to_table(columns=["document", "chunk", "metadata"])
    whole = {n for n, d in documents.items() if _fits(d.metadata, wanted)}
    keep = [
        number in documents
        and (
            _fits({**documents[number].metadata, **json.loads(own)}, wanted)
            if own
            else number in whole
        )
        for number, own in zip(
            rows["document"].to_pylist(), rows["metadata"].to_pylist(), strict=True
        )
    ]
    return keys_of(rows)[np.array(keep, dtype=np.bool_)]


def _fits(metadata: Mapping[str, Scalar], wanted: Mapping[str, str]) -> bool:
    return all(n in metadata and _written(metadata[n]) == value for n, value in wanted.items())


def _written(value: Scalar) -> str:
    """A value as a person writes it in a filter: true, 3, 0.5, text."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _both(document: DocumentInfo, own: str) -> dict[str, Scalar]:
    return {**document.metadata, **json.loads(own)}
