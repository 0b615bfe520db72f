"""What an embedder that waits for a server offers beyond `Embedder`, and how it ends a run."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agentic_rag.models.embedder import Embedder, EmbeddingFailed, Vectors

Raw = NDArray[np.float64] | None  # a vector as it came, None for one that did not


class EmbedderUnavailable(EmbeddingFailed):
    """No text at all can be embedded now: a server that is down, a key it refuses, a package that
    is not installed. It is no document's fault, so it ends a run and fails none."""


class EmbeddingStopped(Exception):
    """The caller's `stop` was set while texts were being embedded."""


class WrongWidth(EmbedderUnavailable):
    """The embedder's vectors are not as long as those of the knowledge base."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches over a call: `stop`, once set, ends it within a second; `tell` is given
    sentences about what is waited for, in the thread of the caller."""

    stop: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[str], None] = lambda sentence: None


@dataclass(slots=True)
class Outcome:
    """What became of texts, by their place: unit vectors, those of which only the beginning was
    embedded, and why there is no vector. It grows during the call, and holds what was done also
    when the call raises."""

    vectors: dict[int, Vectors] = field(default_factory=dict)
    shortened: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)


@runtime_checkable
class WatchedEmbedder(Protocol):
    """An embedder whose work can be watched and stopped. `batches_at_once` is how many batches it
    is best given in one call."""

    batches_at_once: int

    def embed_query(self, text: str) -> Vectors:
        """As in `Embedder`."""

    def embed_watched(
        self, texts: Sequence[str], dimensions: int, outcome: Outcome, watch: Watch
    ) -> None:
        """Embed passages into `outcome`.

        Raises WrongWidth where the vectors of the model do not have `dimensions`,
        EmbedderUnavailable, and EmbeddingStopped.
        """

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions, a row of NaN for one without. Raises EmbedderUnavailable."""


@runtime_checkable
class LazyEmbedder(Protocol):
    """An embedder that learns its width by being used; None until then."""

    known_dimensions: int | None


def known_width(embedder: Embedder) -> int | None:
    """Length of an embedder's vectors, if it can be told without using it."""
    if isinstance(embedder, LazyEmbedder):
        return embedder.known_dimensions
    return embedder.dimensions


def usable(raw: Raw, dimensions: int | None) -> tuple[Vectors | None, str]:
    """A vector at unit length, or None and why it cannot be used."""
    if raw is None:
        return None, "no vector came"
    if raw.ndim != 1 or not raw.size or raw.size != dimensions:
        return None, f"a vector of {raw.size} numbers came, not of {dimensions}"
    if not np.isfinite(raw).all():
        return None, "a vector came that is not finite"
    peak = np.abs(raw).max()
    if not peak:
        return None, "a vector came that is all zero"
    scaled = raw / peak  # squares of very large or small numbers would leave the range
    unit: Vectors = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return unit, ""
