"""Rerankers behind a `/rerank` address: Jina, Cohere (v1, v2), SiliconFlow, Voyage, vLLM, Infinity,
llama.cpp, Xinference and Text Embeddings Inference (TEI).

All but the last take {"model", "query", "documents"} and give {"results": [{"index",
"relevance_score"}]}; TEI takes {"query", "texts"} and gives a bare list with "score". Which form a
server takes is found out by its refusal, and kept.
"""

import asyncio
import json
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentic_rag.models.embedders.failures import words_of
from agentic_rag.models.reranker import Ranked, RerankFailed, UnknownReranker

if TYPE_CHECKING:
    import httpx2

    from agentic_rag.config import Rerank

_logger = logging.getLogger(__name__)

_JINA, _PLAIN, _TEI = "jina", "plain", "tei"
# What a refusal for too long a text speaks of; texts are then cut to these many characters.
_TOO_LONG = re.compile(r"token|length|too long|context|truncat|exceed", re.IGNORECASE)
_OF_FORM = re.compile(r"field|missing|required|unknown param|documents|texts", re.IGNORECASE)
_CUTS = (2_000, 1_000, 500)
_REFUSED = (400, 413, 422)
_CONNECT = 5.0  # seconds


class _Refused(Exception):
    """The server does not take this form, this many texts, or texts as long as these."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def http_reranker(model: str, section: "Rerank", env: Mapping[str, str]) -> "HttpReranker":
    """The reranker `model` ("" where the server has just one) at `section.base_url`; what was
    learnt of a server serves the whole process. Raises UnknownReranker."""
    url = _address(section.base_url)
    variable = section.api_key_env
    key = env.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise UnknownReranker(
            f"rerank.api_key_env names {variable}, which is not set; set that environment "
            "variable, or correct the name."
        )
    if not key.isascii() or not key.isprintable():
        raise UnknownReranker(
            f"The key in {variable} holds characters that no key has; correct that environment "
            "variable."
        )
    return _made(model, url, key, section)


def _address(base_url: str) -> str:
    if not base_url.strip():
        raise UnknownReranker(
            "rerank.model names an endpoint but rerank.base_url is empty; set it to the address "
            "before /rerank, such as https://api.jina.ai/v1 or http://localhost:8080."
        )
    try:
        url = urlsplit(base_url.strip())
        if url.scheme in ("http", "https") and url.hostname:
            path = url.path.rstrip("/").removesuffix("/rerank")
            return url._replace(path=f"{path}/rerank", fragment="").geturl()
    except ValueError:
        pass
    raise UnknownReranker(
        "rerank.base_url is no http address; write it like http://localhost:8080."
    )


@cache
def _made(model: str, url: str, key: str, section: "Rerank") -> "HttpReranker":
    return HttpReranker(model, url, key, section)


class HttpReranker:
    """`model` at `url`. Implements `Reranker`."""

    def __init__(self, model: str, url: str, key: str, section: "Rerank") -> None:
        self.name = f"http:{model}" if model else "http"
        self._model = model
        self._url = url
        self._key = key
        self._key_variable = section.api_key_env
        self._batch_size = section.batch_size
        self._timeout = section.timeout
        parts = urlsplit(url)
        self._shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        self._form = ""  # the one that was taken
        self._most: int | None = None  # texts in one request, where more were refused
        self._longest: int | None = None  # characters of a text, where longer ones were refused

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        """As in `Reranker`. Every request has the timeout of the settings."""
        if not texts:
            return []
        import httpx2

        here = (urlsplit(self._url).hostname or "") in ("localhost", "::1", "127.0.0.1")
        async with httpx2.AsyncClient(trust_env=not here) as client:  # no proxy to this machine
            return await self._ranked(client, query, texts)

    async def _ranked(
        self, client: "httpx2.AsyncClient", query: str, texts: Sequence[str]
    ) -> list[Ranked]:
        """The first way of asking that is not refused."""
        refused: list[_Refused] = []
        for form, most, longest in self._ways(len(texts), refused):
            cut = [text[:longest] for text in texts]
            try:
                ranked = await self._in_batches(client, query, cut, form, most)
            except _Refused as error:
                refused.append(error)
                continue
            self._form = form
            self._most = most if most < len(texts) else self._most
            if longest is not None and self._longest != longest:
                _logger.warning(
                    "The reranker %s takes no texts as long as some of these; it is given their "
                    "first %d characters.",
                    self.name,
                    longest,
                )
                self._longest = longest
            return sorted(ranked, key=lambda one: (-one.score, one.index))
        # That a form was not known says nothing where another one was.
        told = next((one for one in refused if not _OF_FORM.search(one.said)), refused[0])
        raise RerankFailed(
            f"The reranker {self.name} at {self._shown} refuses the request ({told.said}); check "
            "rerank.model, and lower rerank.batch_size or rerank.candidates if it is too large."
        )

    def _ways(self, count: int, refused: list[_Refused]) -> Iterator[tuple[str, int, int | None]]:
        """Forms, most texts in one request and longest text to try, by what was refused so far."""
        forms = sorted((_JINA, _PLAIN, _TEI), key=lambda form: form != self._form)
        sizes = [min(count, self._most or count)]
        if self._batch_size < sizes[0]:
            sizes.append(self._batch_size)
        for size in sizes:
            for form in forms:
                yield form, size, self._longest
                if refused and refused[-1].status == 413:  # the form is understood
                    forms = [form]
                    break
        if any(_TOO_LONG.search(one.said) for one in refused):
            for longest in _CUTS:
                if self._longest is None or longest < self._longest:
                    for form in forms:
                        yield form, sizes[-1], longest

    async def _in_batches(
        self, client: "httpx2.AsyncClient", query: str, texts: Sequence[str], form: str, most: int
    ) -> list[Ranked]:
        ranked: list[Ranked] = []
        for start in range(0, len(texts), most):
            batch = texts[start : start + most]
            data = await self._asked(client, self._body(form, query, batch))
            ranked += [Ranked(start + r.index, r.score) for r in self._read(data, len(batch))]
        return ranked

    def _body(self, form: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        sendable = [text.encode("utf-8", "replace").decode() for text in texts]
        query = query.encode("utf-8", "replace").decode()
        if form == _TEI:
            return {"query": query, "texts": sendable, "truncate": True}
        body: dict[str, Any] = {"query": query, "documents": sendable}
        if self._model:
            body["model"] = self._model
        if form == _JINA:
            body["return_documents"] = False  # they would come back whole
        return body

    async def _asked(self, client: "httpx2.AsyncClient", body: dict[str, Any]) -> Any:
        """The JSON of one reply. Raises _Refused, RerankFailed."""
        import httpx2

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx2.Timeout(None, connect=min(_CONNECT, self._timeout))
        try:
            async with asyncio.timeout(self._timeout):
                reply = await client.post(self._url, json=body, headers=headers, timeout=limits)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise self._failed(
                "cannot be reached", "start it, or correct rerank.base_url"
            ) from None
        except (TimeoutError, httpx2.TimeoutException):
            raise self._failed(
                f"did not answer within {self._timeout:g} s",
                "raise rerank.timeout or lower rerank.candidates",
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            said = self._clean(f"{type(error).__name__}: {error}".removesuffix(": "))
            raise self._failed(f"failed ({said})", "check rerank.base_url and the server") from None
        text = self._clean(reply.text)
        if not reply.is_success:
            self._raise_for(reply.status_code, text)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._failed(
                "gave something else than JSON", "check that rerank.base_url is that of an API"
            ) from None

    def _raise_for(self, status: int, text: str) -> None:
        said = f"{status}: {words_of(text)}".removesuffix(": ")
        if status in _REFUSED:
            raise _Refused(status, said)
        if status in (401, 403):
            if self._key_variable:
                cure = f"put the right key into the environment variable {self._key_variable}"
                raise self._failed(f"refuses the key ({said})", cure)
            cure = "put it into an environment variable and name that one in rerank.api_key_env"
            raise self._failed(f"wants a key ({said})", cure)
        if status in (404, 405):
            raise self._failed(
                f"was not found ({said})",
                "check rerank.base_url, which ends before /rerank (many end in /v1), and "
                "rerank.model",
            )
        if status in (402, 429):
            raise self._failed(
                f"takes no more requests now ({said})", "try later, or check the account's limits"
            )
        if 300 <= status < 400:
            raise self._failed(f"points elsewhere ({said})", "correct rerank.base_url")
        raise self._failed(f"failed ({said})", "look at the server's own messages")

    def _failed(self, what: str, cure: str) -> RerankFailed:
        return RerankFailed(f"The reranker {self.name} at {self._shown} {what}; {cure}.")

    def _clean(self, text: str) -> str:
        """A text in which a server, or an error, repeats the key."""
        return text.replace(self._key, "[key]") if len(self._key) >= 4 else text

    def _read(self, data: Any, count: int) -> list[Ranked]:
        """The scores of `count` texts; what cannot be used is left out with a warning."""
        items = data
        if isinstance(data, dict):
            items = next(
                (data[n] for n in ("results", "data") if isinstance(data.get(n), list)), None
            )
        if not isinstance(items, list):
            said = self._clean(words_of(json.dumps(data)))
            raise self._failed(
                f"gave no scores ({said})" if said else "gave no scores",
                "check rerank.model and that rerank.base_url is that of a reranker",
            )
        ranked: dict[int, Ranked] = {}
        for item in items:
            one = _scored(item)
            if one is not None and 0 <= one.index < count:
                ranked.setdefault(one.index, one)
        if len(ranked) < len(items):
            _logger.warning(
                "The reranker %s gave %d results that cannot be used (no such text, one given "
                "twice, or no score); they are left out.",
                self.name,
                len(items) - len(ranked),
            )
        if not ranked:
            raise self._failed("gave no scores that can be used", "check rerank.model")
        return list(ranked.values())


def _scored(item: Any) -> Ranked | None:
    """One result: "index", and "relevance_score" or "score" as a number or a text of one."""
    if not isinstance(item, dict):
        return None
    index = _number(item.get("index"))
    score = _number(item.get("relevance_score", item.get("score")))
    if index is None or score is None or index != int(index):
        return None
    return Ranked(int(index), score)


def _number(given: Any) -> float | None:
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
