"""The knowledge base that the variants of a run share: the dataset's own, or one that is named."""

import json
import stat
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.documents.document import GivenChunk
from agentic_rag.documents.given_chunks import given_chunks
from agentic_rag.errors import AragError
from agentic_rag.evaluation.dataset import CHUNKS, BadDataset, Dataset
from agentic_rag.knowledge_base import KnowledgeBase, NoKnowledgeBase, Progress

if TYPE_CHECKING:
    from agentic_rag.config import Settings

OWN = ".arag"  # of a dataset's folder
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class IndexingStopped(AragError):
    """Indexing a dataset's chunks was ended before its end."""


def knowledge_base_of(
    dataset: Dataset,
    settings: "Settings",
    named: Path | None = None,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event | None = None,
) -> KnowledgeBase:
    """The knowledge base to ask: `named`, else the one in the dataset's folder.

    It is made of the dataset's `chunks.json` where it is not there, which blocks; what is embedded
    already is not embedded again. Raises `BadDataset` where it holds other chunks, or has no place;
    what `KnowledgeBase.add` raises.
    """
    if dataset.chunks is None:
        if named is None:
            raise BadDataset(
                f"{dataset.directory} has no {CHUNKS}: its questions are of documents that are "
                "indexed already. Name their knowledge base with --kb."
            )
        return KnowledgeBase.open(named, settings=_settings(settings, named), create=False)
    given = _given(dataset.chunks)
    place = named or dataset.directory / OWN
    if named is None and not place.exists() and not _takes_files(dataset.directory):
        raise BadDataset(
            f"{dataset.directory} may not be written to, so its knowledge base has no place there; "
            "name one with --kb, which is made where it is not there."
        )
    own = _settings(settings, place)
    try:
        kb = KnowledgeBase.open(place, settings=own, create=False)
    except NoKnowledgeBase:
        kb = KnowledgeBase.open(place, settings=own)
    documents = kb.documents()
    if all(Path(document.uri) == dataset.chunks.resolve() for document in documents):
        report = kb.add([dataset.chunks], on_progress=on_progress, stop=stop)
        if wrong := (*report.failed, *report.empty, *report.unsupported):
            raise BadDataset(f"{dataset.chunks} could not be indexed: {wrong[0].reason}")
        if report.stopped:
            raise IndexingStopped("Stopped; what is embedded is kept, the same command goes on.")
        held = sum(document.chunks for document in kb.documents())
        if held != len(given):
            raise BadDataset(
                f"{dataset.chunks} has {len(given):,} chunks, and {held:,} were indexed of it; let "
                "`arag eval prepare` write it anew."
            )
    elif not _is_of(kb, given):
        held = sum(document.chunks for document in documents)
        raise BadDataset(
            f"The knowledge base {place} holds {held:,} chunks, and they are not those of "
            f"{dataset.chunks} alone. Name another one with --kb, or a folder that is not there "
            "yet."
        )
    return kb


def _given(chunks: Path) -> tuple[GivenChunk, ...]:
    """The chunks of a dataset. Indexing takes a file that holds none for a text."""
    try:
        records = json.loads(chunks.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadDataset(f"{chunks} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise BadDataset(f"{chunks} is not JSON ({error}); correct it.") from None
    found = given_chunks(records) if isinstance(records, list) else None
    if found is None:
        raise BadDataset(
            f'{chunks} is no list of chunks, each {{"id": …, "text": …}} or "id:text"; correct it, '
            "or let `arag eval prepare` write it."
        )
    return found[0]


def _is_of(kb: KnowledgeBase, chunks: Sequence[GivenChunk]) -> bool:
    """Whether a knowledge base holds just these chunks, as that of a copy of their file does."""
    held = [chunk for document in kb.documents() for chunk in kb.chunks(document.number)]
    if Counter(chunk.source_id for chunk in held) != Counter(one.source_id for one in chunks):
        return False
    texts: dict[str | None, list[str]] = {}
    for chunk in held:
        texts.setdefault(chunk.source_id, []).append(chunk.text.rstrip())
    # A chunk as it is held begins with its title.
    return all(
        any(text.endswith(one.text.rstrip()) for text in texts[one.source_id]) for one in chunks
    )


def _settings(settings: "Settings", place: Path) -> "Settings":
    return settings.model_copy(update={"kb": place})


def _takes_files(directory: Path) -> bool:
    """Whether anybody may write there; a superuser could, where nobody is meant to."""
    return bool(directory.stat().st_mode & _ANY_WRITE)
