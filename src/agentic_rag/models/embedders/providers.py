"""Cohere, Voyage AI and Google, through Pydantic AI's embedders and the SDK of each.

They know by themselves whether a text is a query or a passage. The SDKs come with the extras of
the same names.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_rag.models.embedders.calls import Kind
from agentic_rag.models.embedders.failures import (
    CallFailed,
    Denied,
    Failed,
    Server,
    TimedOut,
    Unreachable,
    failure,
)
from agentic_rag.models.embedders.watched import Raw

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel

Build = Callable[[str], "EmbeddingModel"]  # from a key


class ProviderEndpoint:
    """A model of a provider. `build` makes it of the key that `key` gives, at the first request;
    `extra` is the extra that brings the SDK."""

    def __init__(
        self,
        server: Server,
        build: Build,
        key: Callable[[], str],
        extra: str,
        dimensions: int | None = None,
    ) -> None:
        self.title = server.title
        self._server = server
        self._build = build
        self._key = key
        self._extra = extra
        self._dimensions = dimensions
        self._model: EmbeddingModel | None = None

    async def vectors(self, texts: Sequence[str], kind: Kind, within: float) -> list[Raw]:
        """One request, as in `Endpoint`."""
        key = self._key()
        if self._model is None:
            self._model = await asyncio.to_thread(self._built, key)  # an SDK takes a second
        from pydantic_ai.embeddings import EmbeddingSettings

        settings = EmbeddingSettings(truncate=False)
        if self._dimensions is not None:
            settings["dimensions"] = self._dimensions
        try:
            async with asyncio.timeout(within):
                result = await self._model.embed(
                    list(texts),
                    input_type="query" if kind == "query" else "document",
                    settings=settings,
                )
        except TimeoutError:
            raise TimedOut(f"no answer within {within:.0f} s") from None
        except Exception as error:  # every SDK has errors of its own
            raise self._failure(error, key) from None
        vectors = result.embeddings
        if len(vectors) != len(texts):
            raise Failed(f"{len(vectors)} vectors came for {len(texts)} inputs")
        return [_vector(vector) for vector in vectors]

    def _built(self, key: str) -> "EmbeddingModel":
        try:
            return self._build(key)
        except ImportError:
            raise Denied(missing_extra(self._server.title, self._extra)) from None

    def _failure(self, error: Exception, key: str) -> CallFailed:
        from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelTimeoutError

        said = str(error) or type(error).__name__
        if isinstance(error, ModelTimeoutError):
            return TimedOut(_one_line(said, key))
        if isinstance(error, ModelConnectionError):
            return Unreachable(_one_line(said, key))
        status, headers, body = _http(error)
        if status is None or status < 300:
            return Failed(_one_line(said, key))
        found = failure(self._server, status, headers, _without(body, key))
        if isinstance(error, ModelHTTPError) and error.retry_after is not None:
            found.retry_after = error.retry_after
        return found


def missing_extra(title: str, extra: str) -> str:
    """The sentence about an extra that is not installed."""
    return (
        f"The embedder {title} needs a package that is not installed; run "
        f"`pip install 'agentic-rag[{extra}]'`."
    )


def cohere(model: str, base_url: str) -> Build:
    """Cohere's, at another address if `base_url` is not empty."""

    def build(key: str) -> "EmbeddingModel":
        from cohere import AsyncClientV2
        from pydantic_ai.embeddings.cohere import CohereEmbeddingModel
        from pydantic_ai.providers.cohere import CohereProvider

        client = AsyncClientV2(api_key=key, base_url=base_url or None)
        return CohereEmbeddingModel(model, provider=CohereProvider(cohere_client=client))

    return build


def voyage(model: str, base_url: str) -> Build:
    """Voyage AI's, at another address if `base_url` is not empty."""

    def build(key: str) -> "EmbeddingModel":
        from pydantic_ai.embeddings.voyageai import VoyageAIEmbeddingModel
        from pydantic_ai.providers.voyageai import VoyageAIProvider
        from voyageai.client_async import AsyncClient

        client = AsyncClient(api_key=key, base_url=base_url or None)
        return VoyageAIEmbeddingModel(model, provider=VoyageAIProvider(voyageai_client=client))

    return build


def google(model: str, base_url: str) -> Build:
    """Gemini's, at another address if `base_url` is not empty."""

    def build(key: str) -> "EmbeddingModel":
        from pydantic_ai.embeddings.google import GoogleEmbeddingModel
        from pydantic_ai.providers.google import GoogleProvider

        provider = GoogleProvider(api_key=key, base_url=base_url or None)
        return GoogleEmbeddingModel(model, provider=provider)

    return build


def _http(error: BaseException) -> tuple[int | None, dict[str, str], str]:
    """Status, headers and body of an error or of the one it was raised from."""
    import json

    current: BaseException | None = error
    while current is not None:
        for name in ("status_code", "http_status", "code"):
            status = getattr(current, name, None)
            if type(status) is int:
                headers: Any = getattr(current, "headers", None) or {}
                body: Any = getattr(current, "body", None) or getattr(current, "http_body", None)
                text = body if isinstance(body, str) else json.dumps(body or str(current))
                return status, {k.lower(): v for k, v in dict(headers).items()}, text
        current = current.__cause__
    return None, {}, ""


def _vector(given: Any) -> Raw:
    try:
        vector = np.array(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return vector if vector.ndim == 1 else None


def _without(text: str, key: str) -> str:
    return text.replace(key, "[key]") if len(key) >= 4 else text


def _one_line(text: str, key: str) -> str:
    return " ".join(_without(text, key).split())[:200]
