"""Which document a person means: by its number, its path, or the end of its path."""

from collections.abc import Sequence
from pathlib import Path

from agentic_rag.knowledge_base.records import DocumentInfo, UnknownDocument


def selected(documents: Sequence[DocumentInfo], selector: str) -> DocumentInfo:
    """The one of `documents` that a selector names. Raises UnknownDocument."""
    if selector.isdecimal():
        found = [d for d in documents if d.number == int(selector)]
    else:
        absolute = Path(selector).absolute().as_posix()
        tail = "/" + selector.lstrip("./")
        found = [d for d in documents if d.uri in (selector, absolute)]
        found = found or [d for d in documents if d.uri.endswith(tail)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{d.number} ({d.uri})" for d in found[:5])
        raise UnknownDocument(f"'{selector}' fits {len(found)} documents: {names}; give a number.")
    raise UnknownDocument(f"There is no document '{selector}'; 'arag list' shows them all.")
