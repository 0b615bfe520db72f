"""An embedder that takes its time, for tests of work that goes on in the background."""

import threading
from collections.abc import Sequence

from agentic_rag.models.embedder import Vectors
from tests.knowledge_base.embedders import HashEmbedder


class SlowEmbedder(HashEmbedder):
    """Waits a while before each batch; `release` ends that, `begun` is set by the first one."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.begun = threading.Event()
        self.released = threading.Event()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.begun.set()
        self.released.wait(self.seconds)
        return super().embed_passages(texts)
