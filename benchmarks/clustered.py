"""A quick stand-in for an embedder, for benchmarks of speed and commits only.

Vectors depend on nothing but the text's hash: a cluster's centre and noise around it, of unit
length. They say nothing about meaning.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_CLUSTERS = 2000
_NOISE = 4096  # vectors of noise; two of them are added, which gives 16 million kinds
_SPREAD = 0.6  # length of the noise beside a centre of length 1


class ClusteredEmbedder:
    """Implements `agentic_rag.models.embedder.Embedder`."""

    name = "benchmark:clustered"
    dimensions = 384

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        size = self.dimensions
        self._centres = random.standard_normal((_CLUSTERS, size), np.float32) / size**0.5
        scale = _SPREAD / (2 * size) ** 0.5
        self._noise = random.standard_normal((_NOISE, size), np.float32) * np.float32(scale)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        digests = b"".join(hashlib.blake2b(t.encode(), digest_size=12).digest() for t in texts)
        numbers = np.frombuffer(digests, dtype=np.uint32).reshape(-1, 3)
        vectors = (
            self._centres[numbers[:, 0] % _CLUSTERS]
            + self._noise[numbers[:, 1] % _NOISE]
            + self._noise[numbers[:, 2] % _NOISE]
        )
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed_passages([text])[0]
        return vector
