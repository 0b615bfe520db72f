"""Documents that are parsed and wait until they have sentences enough for a call of the embedder.

A call for each short document would leave an embedding server idle most of the time, and run a
local model in small batches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentic_rag.documents import Source
from agentic_rag.knowledge_base.batches import Row
from agentic_rag.knowledge_base.embedding import ENDS_THE_RUN, VectorSource
from agentic_rag.knowledge_base.rows import SLICE, SentenceDraft
from agentic_rag.text.chunking import ChunkDraft
from agentic_rag.text.document import Document


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document that is cut into chunks and not embedded yet; `known` is its row from before."""

    source: Source
    known: Row | None
    number: int
    digest: str
    document: Document
    drafts: Sequence[ChunkDraft]
    sentences: Sequence[SentenceDraft]


class Ahead:
    """Takes documents in order and gives each to `finish`, in order, when its vectors are there.

    A document that fills a call by itself is not embedded here: `finish` does so, bit by bit.
    Where the embedder gives up, `put_aside` gets the documents that are not whole.
    """

    def __init__(
        self,
        vectors: VectorSource,
        batch_size: int,
        finish: Callable[[Parsed], None],
        put_aside: Callable[[Sequence[Parsed]], None],
    ) -> None:
        self._vectors = vectors
        self._most = batch_size * vectors.batches_at_once  # sentences, and documents
        self._longest = SLICE * vectors.batches_at_once  # characters
        self._finish = finish
        self._put_aside = put_aside
        self._waiting: list[Parsed] = []

    def holds(self, uri: str) -> bool:
        """Whether the document of this URI waits."""
        return any(parsed.source.uri == uri for parsed in self._waiting)

    def put(self, parsed: Parsed) -> None:
        """Take a document. Raises what `finish` raises."""
        if self._is_too_much([*self._waiting, parsed]):
            self.flush()
        self._waiting.append(parsed)
        if self._is_too_much(self._waiting):
            self.flush()

    def flush(self) -> None:
        """Finish all that wait. Raises what `finish` raises."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) > 1:
            self._embed(waiting)
        for parsed in waiting:
            self._finish(parsed)

    def _embed(self, waiting: Sequence[Parsed]) -> None:
        try:
            self._vectors.embed_ahead([s for parsed in waiting for s in parsed.sentences])
        except ENDS_THE_RUN:
            whole = [parsed for parsed in waiting if self._vectors.has_all(parsed.sentences)]
            for parsed in whole:
                self._finish(parsed)
            self._put_aside([parsed for parsed in waiting if parsed not in whole])
            raise
        except Exception:
            pass  # each is embedded by itself, so that the one that cannot be fails alone

    def _is_too_much(self, waiting: Sequence[Parsed]) -> bool:
        sentences = [s for parsed in waiting for s in parsed.sentences]
        return (
            len(sentences) >= self._most
            or len(waiting) >= self._most
            or sum(len(s.text) for s in sentences) >= self._longest
        )
