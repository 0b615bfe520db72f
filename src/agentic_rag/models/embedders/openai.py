"""The `/embeddings` call of OpenAI's API, which most servers speak.

Spoken by OpenAI, Azure-like gateways, DashScope, SiliconFlow, vLLM, llama.cpp, Text Embeddings
Inference, Infinity, LM Studio and Ollama. Called directly rather than by an SDK, since what
matters here lies below one: Retry-After, errors within a 200, vectors out of order or missing.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from agentic_rag.models.embedders.calls import Kind
from agentic_rag.models.embedders.failures import (
    Failed,
    Server,
    TimedOut,
    Unreachable,
    failure,
    is_error,
    retry_after,
    words_of,
)
from agentic_rag.models.embedders.watched import Raw

if TYPE_CHECKING:
    import httpx2

_CONNECT = 5.0  # seconds


class OpenAIEndpoint:
    """`model` at `base_url`. `key` gives the key anew for each request ("" for none), so that it
    is kept nowhere; `dimensions` is sent only if it is set."""

    def __init__(
        self,
        model: str,
        base_url: str,
        server: Server,
        key: Callable[[], str],
        dimensions: int | None = None,
    ) -> None:
        self.title = server.title
        self._server = server
        self._model = model
        self._address = f"{base_url.rstrip('/')}/embeddings"
        self._key = key
        self._dimensions = dimensions
        self._client: httpx2.AsyncClient | None = None

    async def vectors(self, texts: Sequence[str], kind: Kind, within: float) -> list[Raw]:
        """One request, as in `Endpoint`."""
        import httpx2

        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body: dict[str, Any] = {"model": self._model, "input": list(texts)}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        limits = httpx2.Timeout(None, connect=min(_CONNECT, within))
        try:
            async with asyncio.timeout(within):
                reply = await self._connected().post(
                    self._address, json=body, headers=headers, timeout=limits
                )
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise Unreachable(_clean(f"no connection: {error}", key)) from None
        except (TimeoutError, httpx2.TimeoutException):
            raise TimedOut(f"no answer within {within:.0f} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise Failed(_clean(said, key)) from None
        text = _clean(reply.text, key)
        if not reply.is_success:
            raise failure(self._server, reply.status_code, reply.headers, text)
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise Failed("the answer is no JSON", retry_after(reply.headers)) from None
        if is_error(data):
            said = words_of(text) or "the answer holds no vectors"
            raise Failed(said, retry_after(reply.headers))
        return in_order(data["data"], len(texts))

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            host = urlsplit(self._address).hostname or ""
            here = host in ("localhost", "::1") or host.startswith("127.")
            self._client = httpx2.AsyncClient(trust_env=not here)  # no proxy to this machine
        return self._client


def in_order(items: Sequence[Any], count: int) -> list[Raw]:
    """The vectors of `data`, put in the order of the `count` inputs by their `index`; None where
    one is missing. Raises Failed where it cannot be told which input a vector belongs to."""
    indexes = [item.get("index") if isinstance(item, dict) else None for item in items]
    if indexes == [None] or (len(items) > 1 and len(set(map(str, indexes))) == 1):
        indexes = list(range(len(items)))  # a server that does not number them
        if len(items) != count:
            raise Failed(f"{len(items)} vectors came for {count} inputs")
    vectors: list[Raw] = [None] * count
    seen: set[int] = set()
    for index, item in zip(indexes, items, strict=True):
        if type(index) is not int or not 0 <= index < count or index in seen:
            raise Failed(f"{len(items)} vectors came for {count} inputs, wrongly numbered")
        seen.add(index)
        vectors[index] = _vector(item.get("embedding") if isinstance(item, dict) else None)
    if not seen:
        raise Failed(f"no vectors came for {count} inputs")
    return vectors


def _vector(given: Any) -> Raw:
    """A list of numbers, or base64 of 32-bit floats, as an array."""
    try:
        if isinstance(given, str):
            return np.frombuffer(base64.b64decode(given, validate=True), "<f4").astype(np.float64)
        if isinstance(given, list):
            vector = np.array(given, dtype=np.float64)  # null becomes NaN
            return vector if vector.ndim == 1 else None
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    return None


def _clean(text: str, key: str) -> str:
    """A text in which a server, or an error, repeats the key."""
    return text.replace(key, "[key]") if len(key) >= 4 else text
