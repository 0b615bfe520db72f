"""Which document a person means: by its number, its path, or the end of its path."""

from collections.abc import Sequence
from pathlib import Path

from agentic_rag.documents.source import given_source
from agentic_rag.knowledge_base.records import DocumentInfo, UnknownDocument


def selected(documents: Sequence[DocumentInfo], selector: str) -> DocumentInfo:
    """The one of `documents` that a selector names. Raises UnknownDocument."""
    if selector.isdecimal():
        found = [d for d in documents if d.number == int(selector)]
    else:
        absolute = Path(selector).absolute().as_posix()
        tail = "/" + selector.lstrip("./")
        given = given_source(selector, b"").uri  # standard input's, by the name it was given
        found = [d for d in documents if d.uri in (selector, absolute, given)]
        found = found or [d for d in documents if d.uri.endswith(tail)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{d.number} ({d.uri})" for d in found[:5])
        raise UnknownDocument(f"'{selector}' fits {len(found)} documents: {names}; give a number.")
    raise UnknownDocument(f"There is no document '{selector}'; 'arag list' shows them all.")


def selected_with_members(
    documents: Sequence[DocumentInfo], selector: str
) -> Sequence[DocumentInfo]:
    """The same, where a selector may also name an archive and then means all files in it.

    Raises UnknownDocument.
    """
    try:
        return [selected(documents, selector)]
    except UnknownDocument:
        members = _members(documents, selector)
        archives = {uri for uri, _ in members}
        if not members:
            raise
    if len(archives) > 1:
        raise UnknownDocument(
            f"'{selector}' fits {len(archives)} archives: {', '.join(sorted(archives)[:5])}; give "
            "the whole path."
        )
    return [document for _, document in members]


def _members(
    documents: Sequence[DocumentInfo], selector: str
) -> Sequence[tuple[str, DocumentInfo]]:
    """Documents in archives that a path or the end of one names, each with its archive."""
    path = selector.rstrip("/")
    absolute = Path(path).absolute()
    if absolute.suffix.lower() != ".zip" and not absolute.is_file():
        return ()
    whole, tail = f"{absolute.as_posix()}/", f"/{path.lstrip('./')}/"
    exact = [(whole, d) for d in documents if d.uri.startswith(whole)]
    ends = [(d.uri[: d.uri.index(tail)] + tail, d) for d in documents if tail in d.uri]
    return [(uri.rstrip("/"), document) for uri, document in exact or ends]
