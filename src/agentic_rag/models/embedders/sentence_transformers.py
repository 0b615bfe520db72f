"""Models of the sentence-transformers library (arXiv 1908.10084), run in this process.

BGE-M3, Qwen3-Embedding, gte-Qwen2, E5 and the like, from a folder or the library's own cache. The
library loads with the first text. A model's own prompts (config_sentence_transformers.json) count
where it has some, else what is known for its name.
"""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_rag.models.embedder import Vectors
from agentic_rag.models.embedders.prompts import Prompts, chosen, known_prompts
from agentic_rag.models.embedders.providers import missing_extra
from agentic_rag.models.embedders.remote import recorded_name
from agentic_rag.models.embedders.watched import EmbedderUnavailable

if TYPE_CHECKING:
    from agentic_rag.config import Embedding

_FINGERPRINT = 1 << 16  # bytes of each file of weights


class SentenceTransformersEmbedder:
    """`model` is a folder, or a name on the Hugging Face Hub. Implements `Embedder`.

    A folder is recorded by its name and a fingerprint of its weights, so that it can be moved.
    """

    def __init__(self, model: str, settings: "Embedding") -> None:
        path = Path(model).expanduser()
        self._folder = path if path.is_dir() else None
        self._source = str(path) if self._folder else model
        self._settings = settings
        shown = f"{path.resolve().name}@{_fingerprint(path)}" if self._folder else model
        # What a model asks for by itself is part of the model; only a setting changes vectors.
        self.name = recorded_name(
            f"sentence-transformers:{shown}", settings.passage_prompt or "", settings.dimensions
        )
        self._known = known_prompts(path.resolve().name if self._folder else model)
        self.known_dimensions: int | None = None
        self._model: Any = None
        self._prompts = Prompts()
        self._lock = threading.Lock()  # one text at a time through one model

    @property
    def dimensions(self) -> int:
        """Length of a vector; loads the model. Raises EmbedderUnavailable."""
        if self.known_dimensions is None:
            with self._lock:
                self._loaded()
        assert self.known_dimensions is not None
        return self.known_dimensions

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """As in `Embedder`."""
        with self._lock:
            self._loaded()
            return self._encoded(texts, self._prompts.passage)

    def embed_query(self, text: str) -> Vectors:
        """As in `Embedder`."""
        with self._lock:
            self._loaded()
            vector: Vectors = self._encoded([text], self._prompts.query)[0]
        return vector

    def _encoded(self, texts: Sequence[str], prompt: str) -> Vectors:
        """Unit vectors. The library sorts texts by length for its batches itself."""
        vectors = self._model.encode(
            [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts],
            prompt=prompt or None,
            batch_size=self._settings.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError:
                title = f"sentence-transformers:{self._source}"
                raise EmbedderUnavailable(missing_extra(title, "sentence-transformers")) from None
            try:
                model = SentenceTransformer(self._source, truncate_dim=self._settings.dimensions)
            except Exception as error:  # the library, the hub and torch raise all kinds
                said = (" ".join(str(error).split()) or type(error).__name__)[:200]
                raise EmbedderUnavailable(
                    f"The model '{self._source}' cannot be loaded ({said}); name a folder with a "
                    "sentence-transformers model, or one on the Hugging Face Hub that this machine "
                    "can reach."
                ) from None
            self.known_dimensions = self._width(model)
            self._prompts = chosen(_shipped(model.prompts, self._known), self._settings)
            # A default prompt would be put before everything, also where none is wanted.
            model.default_prompt_name = None
            self._model = model
        return self._model

    def _width(self, model: Any) -> int:
        asked = self._settings.dimensions
        # Its name before version 6.
        width = getattr(model, "get_embedding_dimension", None)
        own = int((width or model.get_sentence_embedding_dimension)())
        if asked is not None and own < asked:
            raise EmbedderUnavailable(
                f"The model '{self._source}' has {own} dimensions and {asked} are asked for; lower "
                "or remove embedding.dimensions."
            )
        return own if asked is None else asked


def _shipped(prompts: dict[str, str], known: Prompts) -> Prompts:
    """The prompts in a model's own configuration, or those that are known for its name."""
    query = prompts.get("query") or ""
    passage = prompts.get("document") or prompts.get("passage") or ""
    return Prompts(query, passage) if query or passage else known


def _fingerprint(folder: Path) -> str:
    """Tells weights in a folder from others: their sizes and how they begin and end."""
    digest = hashlib.blake2b(digest_size=4)
    weights = [p for p in sorted(folder.rglob("*")) if p.suffix in (".safetensors", ".bin")]
    for path in weights:
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_FINGERPRINT))
            file.seek(max(0, size - _FINGERPRINT))
            digest.update(file.read(_FINGERPRINT))
    return digest.hexdigest()
