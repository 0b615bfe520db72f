"""Which gold ids a hit, a citation or a chunk names.

Gold ids are those of given chunks, or chunk ids (`12-3`), or documents by path or file name.
"""

import unicodedata
from collections.abc import Iterable
from typing import Protocol


class Found(Protocol):
    """A hit, a citation or a chunk: what stands in a knowledge base and was found."""

    @property
    def chunk_id(self) -> str: ...
    @property
    def source_id(self) -> str | None: ...
    @property
    def uri(self) -> str: ...


def names(found: Found, gold: str) -> bool:
    """Whether `found` is what `gold` names.

    A given chunk goes by its own id, another by its chunk id; either also by its document: the
    whole path or URL, or the end of it from a `/` on (`docs/agent.md`, `agent.md`).
    """
    own = found.chunk_id if found.source_id is None else found.source_id
    return (own == gold and bool(own)) or _is_end_of(_path(gold), _path(found.uri))


def named(found: Found, golds: Iterable[str]) -> frozenset[str]:
    """Those of `golds` that `found` is."""
    return frozenset(gold for gold in golds if names(found, gold))


def ranked(hits: Iterable[Found], golds: Iterable[str]) -> list[frozenset[str]]:
    """For each hit the gold ids that it names: what the measures of `ranking` take."""
    wanted = tuple(golds)
    return [named(hit, wanted) for hit in hits]


def _path(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\\", "/").removeprefix("./")


def _is_end_of(gold: str, uri: str) -> bool:
    return bool(gold) and (uri == gold or uri.endswith(f"/{gold.lstrip('/')}"))
