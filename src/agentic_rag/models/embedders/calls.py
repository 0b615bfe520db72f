"""Embedding many texts by a server that has limits, is busy at times, and fails at times.

A batch that is refused is halved until it is taken, and the size that was taken is kept to. A text
that is refused by itself is cut to half until it is taken. Who is busy is asked again when it says,
or after growing pauses (exponential back-off with jitter), for as long as `patience`. A batch that
fails twice while the server answers a plain text is at fault itself, and is halved like a refused
one; so one text that breaks the server costs no other its vector.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from agentic_rag.models.embedder import Vectors
from agentic_rag.models.embedders.failures import (
    Busy,
    CallFailed,
    Denied,
    Failed,
    Refused,
    TimedOut,
    Unreachable,
)
from agentic_rag.models.embedders.watched import EmbedderUnavailable, Outcome, Raw, usable

Kind = Literal["query", "passage"]

PROBE = "The pump was replaced in 2019."  # a text that every embedder can take
_FIRST_PAUSE = 0.5  # seconds; doubled each time
_LONGEST_PAUSE = 30.0  # seconds
# A refused text no longer than this was not too long: the shortest limit of models in use is 128
# tokens. A server that fails, rather than refuses, seldom does so for the length.
_NOT_TOO_LONG = 100  # characters
_FAILING_NOT_TOO_LONG = 500  # characters


class Endpoint(Protocol):
    """A model behind one address. `title` names both ("openai:bge-m3 at http://host/v1")."""

    title: str

    async def vectors(self, texts: Sequence[str], kind: Kind, within: float) -> list[Raw]:
        """One request of at most `within` seconds: vectors in the order of `texts`.

        Raises CallFailed.
        """


class _AtFault(CallFailed):
    """These inputs fail where others are answered."""

    def __init__(self, error: Failed) -> None:
        super().__init__(error.said)
        self.timed_out = isinstance(error, TimedOut)


class Calls:
    """The calls to one endpoint, which share what was learnt of it. One event loop at a time.

    `batch_size`, `concurrency`, `timeout` and `patience` (seconds) are the settings of
    `[embedding]`; `tell` is given sentences about what is waited for.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        batch_size: int,
        concurrency: int,
        timeout: float,
        patience: float,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.tell = tell
        self._endpoint = endpoint
        self._timeout = timeout
        self._patience = patience
        self._limit = batch_size  # inputs of one request
        self._taken = 0  # the most inputs that were ever taken
        self._too_long: float = float("inf")  # bytes of the shortest text that was too long
        self._lanes = asyncio.Semaphore(concurrency)
        self._first = asyncio.Lock()  # held while a size is tried for the first time
        self._recovering = asyncio.Lock()
        now = time.monotonic()
        self._last_good = now - 1  # when a usable vector came
        self._recovered = now - 1  # when the server answered again after it had not
        self._failing_since: float | None = None
        self._pauses = 0  # in a row
        self._not_before = now

    async def width(self) -> int:
        """How long the vectors are, by embedding one text. Raises EmbedderUnavailable."""
        vector = await self._probed()
        return len(vector)

    async def embed(
        self, texts: Sequence[str], kind: Kind, dimensions: int, outcome: Outcome
    ) -> None:
        """Embed `texts` into `outcome`. Raises EmbedderUnavailable, WrongWidth."""
        job = _Job(self, texts, kind, dimensions, outcome)
        try:
            async with asyncio.TaskGroup() as tasks:
                for batch in self._batches(texts):
                    tasks.create_task(job.batch(batch))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Places of texts by batches; one that may be too long is alone in its."""
        batch: list[int] = []
        for place, text in enumerate(texts):
            if len(text.encode()) >= self._too_long:
                yield [place]
                continue
            batch.append(place)
            if len(batch) >= self._limit:
                yield batch
                batch = []
        if batch:
            yield batch

    # -- one request, until it is answered ----------------------------------------------------

    async def answered(self, texts: Sequence[str], kind: Kind) -> list[Raw]:
        """The answer to one request, asked again while the server is busy or down.

        Raises Refused, _AtFault, EmbedderUnavailable.
        """
        failures = 0
        while True:
            await asyncio.sleep(self._not_before - time.monotonic())
            began = time.monotonic()
            try:
                async with self._lanes:
                    vectors = await self._endpoint.vectors(texts, kind, self._timeout)
                self._answered()
                return vectors
            except Busy as error:
                await self._pause(error)
            except Unreachable as error:
                await self._until_it_answers(began, error)
            except Failed as error:
                failures += 1
                if failures == 1:
                    await asyncio.sleep(_jittered(_FIRST_PAUSE))
                elif await self._until_it_answers(began, error):
                    raise _AtFault(error) from None
                else:
                    failures = 0
            except Denied as error:
                raise EmbedderUnavailable(error.said) from None

    async def _until_it_answers(self, began: float, error: CallFailed) -> bool:
        """Wait until the server answers a plain text. True if it did so all along, so that what
        failed since `began` is the inputs' fault. Only one asks, on behalf of all who wait."""
        async with self._recovering:
            if self._recovered > began:
                return False
            inputs_may_be_at_fault = isinstance(error, Failed)
            if self._last_good > began and inputs_may_be_at_fault:
                return True
            if not inputs_may_be_at_fault:
                await self._pause(error)
            waited = not inputs_may_be_at_fault
            while True:
                try:
                    await self._probed_once()
                    break
                except (Busy, Unreachable, Failed) as still:
                    waited = True
                    await self._pause(still)
            if waited:
                self._recovered = time.monotonic()
            return not waited

    async def _probed(self) -> Vectors:
        """The vector of a plain text. Raises EmbedderUnavailable."""
        failures = 0
        while True:
            try:
                return await self._probed_once()
            except (Busy, Unreachable, Failed) as error:
                failures += 1
                await self._pause(error)

    async def _probed_once(self) -> Vectors:
        try:
            (raw,) = await self._endpoint.vectors([PROBE], "passage", self._timeout)
        except Refused as error:
            raise EmbedderUnavailable(
                f"The embedder {self._endpoint.title} refuses even a short text ({error.said}); "
                "check embedding.model and embedding.dimensions."
            ) from None
        except Denied as error:
            raise EmbedderUnavailable(error.said) from None
        vector, wrong = usable(raw, None if raw is None else len(raw))
        if vector is None:
            raise EmbedderUnavailable(
                f"The embedder {self._endpoint.title} gives vectors that cannot be used ({wrong}); "
                "check the model on that server."
            )
        self._answered()
        self._last_good = time.monotonic()
        return vector

    async def _pause(self, error: CallFailed) -> None:
        """Wait, all calls together, before the server is asked again. Raises EmbedderUnavailable
        when `patience` is over."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if self._not_before <= now:  # nobody else has set a pause meanwhile
            growing = min(_FIRST_PAUSE * 2**self._pauses, _LONGEST_PAUSE)
            self._pauses += 1
            self._not_before = now + _jittered(growing)
        if error.retry_after is not None:
            self._not_before = max(self._not_before, now + error.retry_after)
        if self._not_before - self._failing_since > self._patience:
            raise EmbedderUnavailable(self._patience_over(error, now - self._failing_since))
        self.tell(
            f"the embedder {self._endpoint.title} does not answer ({error.said}); it is asked "
            f"again for up to {self._patience:.0f} s"
        )
        await asyncio.sleep(self._not_before - now)

    def _patience_over(self, error: CallFailed, failing: float) -> str:
        title = self._endpoint.title
        if error.retry_after is not None and error.retry_after > self._patience:
            return (
                f"The embedder {title} asks to wait {error.retry_after:.0f} s ({error.said}); run "
                "the same command again then, or raise embedding.patience."
            )
        since = f" for {failing:.0f} s" if failing >= 1 else ""
        return (
            f"The embedder {title} has given no vectors{since} ({error.said}); see that it runs "
            "and has time, or correct embedding.base_url, and run the same command again."
        )

    def _answered(self) -> None:
        self._failing_since = None
        self._pauses = 0

    # -- what is learnt -----------------------------------------------------------------------

    def over_limit(self, size: int) -> int | None:
        """The most inputs for one request where `size` is more; else None."""
        return self._limit if size > self._limit else None

    def untried(self, size: int) -> bool:
        return min(size, self._limit) > self._taken

    def trying(self) -> asyncio.Lock:
        return self._first

    def took(self, size: int) -> None:
        self._taken = max(self._taken, size)

    def keep_to(self, size: int) -> None:
        self._limit = min(self._limit, size)

    def was_too_long(self, text: str) -> None:
        self._too_long = min(self._too_long, len(text.encode()))

    def good(self) -> None:
        self._last_good = time.monotonic()

    async def vouch(self, since: float) -> None:
        """Make sure that the server gives usable vectors, unless one has come after `since`.

        Raises EmbedderUnavailable.
        """
        if self._last_good < since:
            await self._probed()


class _Job:
    """Texts on their way into an outcome."""

    def __init__(
        self, calls: Calls, texts: Sequence[str], kind: Kind, dimensions: int, outcome: Outcome
    ) -> None:
        self._calls = calls
        self._texts = texts
        self._kind = kind
        self._dimensions = dimensions
        self._outcome = outcome

    async def batch(self, places: list[int]) -> None:
        """Embed the texts at `places`. A size that is not known to be taken is tried by one batch
        alone, so that a limit is learnt once and not by every batch in flight."""
        if self._calls.untried(len(places)):
            async with self._calls.trying():
                if self._calls.untried(len(places)):
                    await self._taken_or_split(places)
                    return
        await self._taken_or_split(places)

    async def _taken_or_split(self, places: list[int]) -> bool:
        """Whether a text among those was refused by itself, which says nothing of sizes."""
        limit = self._calls.over_limit(len(places))
        if limit is not None:
            parts = [places[i : i + limit] for i in range(0, len(places), limit)]
            return any([await self._taken_or_split(part) for part in parts])
        try:
            raws = await self._calls.answered([self._texts[p] for p in places], self._kind)
        except (Refused, _AtFault) as error:
            if len(places) == 1:
                await self._cut(places[0], error)
                return True
            half = (len(places) + 1) // 2
            first = await self._taken_or_split(places[:half])
            second = await self._taken_or_split(places[half:])
            # A batch that failed twice by chance says nothing of sizes either.
            by_size = isinstance(error, Refused) or error.timed_out
            if by_size and not first and not second:
                self._calls.keep_to(half)
            return first or second
        self._calls.took(len(places))
        began = time.monotonic()
        for place, raw in zip(places, raws, strict=True):
            if not self._took(place, raw):
                await self._once_more(place, began)
        return False

    def _took(self, place: int, raw: Raw) -> bool:
        """Take a vector; False if it is not usable."""
        vector, wrong = usable(raw, self._dimensions)
        if vector is None:
            self._outcome.failed[place] = wrong
            return False
        self._outcome.vectors[place] = vector
        self._outcome.failed.pop(place, None)
        self._calls.good()
        return True

    async def _once_more(self, place: int, began: float) -> None:
        """Ask alone for a vector that was not usable in a batch."""
        try:
            (raw,) = await self._calls.answered([self._texts[place]], self._kind)
        except (Refused, _AtFault) as error:
            self._outcome.failed[place] = error.said
            return
        if not self._took(place, raw):
            await self._calls.vouch(began)

    async def _cut(self, place: int, error: "Refused | _AtFault") -> None:
        """Embed the beginning of a text that is refused, as much of it as is taken."""
        text = whole = self._texts[place]
        floor = _NOT_TOO_LONG if isinstance(error, Refused) else _FAILING_NOT_TOO_LONG
        began = time.monotonic()
        while len(text) > floor:
            text = text[: len(text) // 2].rstrip()
            try:
                (raw,) = await self._calls.answered([text], self._kind)
            except (Refused, _AtFault) as still:
                error = still
                continue
            if self._took(place, raw):
                self._outcome.shortened.add(place)
                self._calls.was_too_long(whole)
            return
        self._outcome.failed[place] = error.said
        await self._calls.vouch(began)


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.0)
