"""An embedder behind a server, as a knowledge base uses one: calls that block and can be stopped.

The calls run on an event loop in a thread of its own, so that they can be cut short while the
server hangs, and may be made from any thread.
"""

import asyncio
import queue
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from agentic_rag.models.embedder import EmbeddingFailed, Vectors
from agentic_rag.models.embedders.calls import Calls, Endpoint, Kind
from agentic_rag.models.embedders.failures import (
    Busy,
    CallFailed,
    Failed,
    Refused,
    Unreachable,
)
from agentic_rag.models.embedders.prompts import Prompts
from agentic_rag.models.embedders.watched import (
    EmbedderUnavailable,
    EmbeddingStopped,
    Outcome,
    Watch,
    WrongWidth,
    usable,
)

if TYPE_CHECKING:
    from agentic_rag.config import Embedding

T = TypeVar("T")
_LOOK = 0.1  # seconds between two looks at `stop`
_AGAIN = 0.3  # seconds before a query is asked again
_SHORTEST_QUERY = 20  # characters


class RemoteEmbedder:
    """The model of an endpoint. Implements `Embedder` and `WatchedEmbedder`.

    `name` says the model, its passage prompt and asked-for dimensions, not the address: the same
    model elsewhere gives the same vectors. The query prompt changes no vector that is stored.
    """

    def __init__(
        self, model: str, endpoint: Endpoint, prompts: Prompts, settings: "Embedding"
    ) -> None:
        self.name = recorded_name(model, prompts.passage, settings.dimensions)
        self.batches_at_once = settings.concurrency
        self._endpoint = endpoint
        self._prompts = prompts
        self._settings = settings
        self.known_dimensions: int | None = None
        self._calls = self._calls_of(settings.patience)

    @property
    def dimensions(self) -> int:
        """Length of a vector; the first time one text is embedded to learn it, with no more
        patience than for a query. Raises EmbedderUnavailable."""
        if self.known_dimensions is None:
            return self._learnt(self._calls_of(self._settings.query_timeout), Watch())
        return self.known_dimensions

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found, as in `Embedder`; a row of NaN for one without."""
        outcome = Outcome()
        self.embed_watched(texts, self.dimensions, outcome, Watch())
        vectors = np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)
        for place, vector in outcome.vectors.items():
            vectors[place] = vector
        return vectors

    def embed_watched(
        self, texts: Sequence[str], dimensions: int, outcome: Outcome, watch: Watch
    ) -> None:
        """As in `WatchedEmbedder`."""
        self._expect(dimensions, watch)
        asked = [self._prompts.passage + text for text in texts]
        self._bulk(self._calls, asked, "passage", dimensions, outcome, watch)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of several questions at once, a row of NaN for one without. Raises as
        `embed_passages`, with no more patience than for a query."""
        outcome = Outcome()
        asked = [self._prompts.query + text for text in texts]
        calls = self._calls_of(self._settings.query_timeout)
        self._bulk(calls, asked, "query", self.dimensions, outcome, Watch())
        vectors = np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)
        for place, vector in outcome.vectors.items():
            vectors[place] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Vector of a question, within `query_timeout` seconds. Raises EmbeddingFailed."""
        limit = self._settings.query_timeout
        return _run(self._query(_as_utf8(self._prompts.query + text), limit), Watch())

    # -- parts --------------------------------------------------------------------------------

    def _calls_of(self, patience: float) -> Calls:
        return Calls(
            self._endpoint,
            batch_size=self._settings.batch_size,
            concurrency=self._settings.concurrency,
            timeout=self._settings.timeout,
            patience=patience,
        )

    def _learnt(self, calls: Calls, watch: Watch) -> int:
        width = _told(calls, watch, calls.width())
        asked = self._settings.dimensions
        if asked is not None and width != asked:
            raise EmbedderUnavailable(
                f"The embedder {self._endpoint.title} gives {width} dimensions though {asked} are "
                "asked for, so it cannot shorten its vectors; remove embedding.dimensions."
            )
        self.known_dimensions = width
        return width

    def _expect(self, dimensions: int, watch: Watch) -> None:
        if self.known_dimensions is None:
            self._learnt(self._calls, watch)
        if self.known_dimensions != dimensions:
            raise WrongWidth(
                f"The embedder {self._endpoint.title} gives vectors of {self.known_dimensions} "
                f"dimensions, not of {dimensions}; set embedding.model back."
            )

    @staticmethod
    def _bulk(
        calls: Calls,
        texts: Sequence[str],
        kind: Kind,
        dimensions: int,
        outcome: Outcome,
        watch: Watch,
    ) -> None:
        cleaned = [_as_utf8(text) for text in texts]
        _told(calls, watch, calls.embed(cleaned, kind, dimensions, outcome))

    async def _query(self, text: str, limit: float) -> Vectors:
        try:
            async with asyncio.timeout(limit):
                return await self._asked(text, limit)
        except TimeoutError:
            raise EmbedderUnavailable(
                f"The embedder {self._endpoint.title} did not answer within {limit:.0f} s; try "
                "again, or raise embedding.query_timeout."
            ) from None

    async def _asked(self, text: str, limit: float) -> Vectors:
        tries = 2
        while True:
            try:
                (raw,) = await self._endpoint.vectors([text], "query", limit)
                break
            except Refused as error:
                if len(text) <= _SHORTEST_QUERY:
                    raise EmbeddingFailed(
                        f"The embedder {self._endpoint.title} refuses the query ({error.said}); "
                        "try other words."
                    ) from None
                text = text[: len(text) // 2]
            except (Busy, Failed, Unreachable) as error:
                tries -= 1
                wait = _AGAIN if error.retry_after is None else error.retry_after
                if not tries or wait > limit:
                    raise EmbedderUnavailable(_does_not_work(self._endpoint, error)) from None
                await asyncio.sleep(wait)
            except CallFailed as error:
                raise EmbedderUnavailable(error.said) from None
        vector, wrong = usable(raw, None if raw is None else len(raw))
        if vector is None:
            raise EmbeddingFailed(
                f"The embedder {self._endpoint.title} gave no usable vector for the query "
                f"({wrong}); try again, or check the model on that server."
            )
        return vector


def recorded_name(model: str, passage_prompt: str, dimensions: int | None) -> str:
    """What a knowledge base keeps of an embedder: all that its vectors depend on."""
    parts = [model]
    if passage_prompt:
        parts.append(f"passage prompt {passage_prompt!r}")
    if dimensions is not None:
        parts.append(f"cut to {dimensions} dimensions")
    return ", ".join(parts)


def _does_not_work(endpoint: Endpoint, error: CallFailed) -> str:
    if isinstance(error, Busy):
        return f"The embedder {endpoint.title} has no time now ({error.said}); try again later."
    if isinstance(error, Unreachable):
        return (
            f"The embedder {endpoint.title} cannot be reached ({error.said}); start it, or correct "
            "embedding.base_url."
        )
    return f"The embedder {endpoint.title} fails ({error.said}); look at that server's log."


def _as_utf8(text: str) -> str:
    """A text without NUL and lone surrogates, which no JSON reader has to take."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


# -- the event loop ---------------------------------------------------------------------------


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    # A daemon: a server that hangs must not keep the process from ending.
    threading.Thread(target=loop.run_forever, name="embedding calls", daemon=True).start()
    return loop


def _told(calls: Calls, watch: Watch, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` of `calls`, whose sentences are told in this thread."""
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    calls.tell = said.put
    return _run(work, watch, said)


def _run(
    work: Coroutine[Any, Any, T], watch: Watch, said: "queue.SimpleQueue[str] | None" = None
) -> T:
    """Run `work` on the loop and wait for it. Raises EmbeddingStopped."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        while True:
            try:
                return future.result(_LOOK)
            except NotYet:
                if future.done():
                    return future.result()
            except CancelledError:
                raise EmbeddingStopped("The call was cut short.") from None
            while said is not None and not said.empty():
                watch.tell(said.get())
            if watch.stop.is_set():
                raise EmbeddingStopped("It was asked to stop.")
    finally:
        future.cancel()  # Ctrl-C, or `stop`; of no effect on what is done
