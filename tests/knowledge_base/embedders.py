"""A small deterministic embedder for tests about commits and speed, never about finding."""

import hashlib
from collections.abc import Sequence

import numpy as np

from agentic_rag.models.embedder import Vectors


class HashEmbedder:
    """Vectors from the hash of a text: equal texts, equal vectors. Counts what it was asked."""

    def __init__(self, dimensions: int = 16, name: str = "hash") -> None:
        self.dimensions = dimensions
        self.name = name
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.texts.extend(texts)
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        vector = np.random.default_rng(seed).standard_normal(self.dimensions).astype(np.float32)
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit
