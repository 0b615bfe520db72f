"""Filters: which documents fit path globs, which metadata fit the values asked for."""

import json
from collections.abc import Mapping

import pathspec

from agentic_rag.text.document import Scalar
from agentic_rag.knowledge_base.records import BadQuery


def path_matcher(globs: tuple[str, ...]) -> pathspec.PathSpec:  # type: ignore[type-arg]
    """A matcher for document paths; a relative glob fits at any depth, a folder all in it."""
    lines = []
    for glob in globs:
        if not glob.strip():
            raise BadQuery("A path filter is empty; give a glob such as 'docs/*.md'.")
        literal = "\\" + glob if glob[0] in "!#" else glob
        lines.append(literal if glob.startswith("/") else f"**/{literal}")
    try:
        return pathspec.PathSpec.from_lines("gitwildmatch", lines)
    except ValueError as error:
        raise BadQuery(f"The path filter is not a glob ({error}); give one such as 'docs/*.md'.") from None


def fits(metadata: Mapping[str, Scalar], wanted: Mapping[str, str]) -> bool:
    """Whether metadata has every wanted value; values are compared as they are written."""
    return all(name in metadata and written(metadata[name]) == value for name, value in wanted.items())


def written(value: Scalar) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
