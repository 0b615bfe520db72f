"""One request to a provider's server: bounded in time and size, with a key that is never shown.

SerpAPI takes its key in the URL. It is put in below the HTTP client, as the request's target, so
that the URL which the client logs, traces and puts into its errors is one without it.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from agentic_rag.documents.cleaning import one_line
from agentic_rag.models.connect import loopback_client
from agentic_rag.web_search import failures
from agentic_rag.web_search.provider import WebSearchUnavailable

if TYPE_CHECKING:
    import httpx2

_MOST_BYTES = 2_000_000  # of an answer, decompressed; ten results are about 50,000
_USER_AGENT = "agentic-rag"


@dataclass(frozen=True, slots=True)
class Service:
    """A provider's server.

    `title` is how messages name it; `key_variable` is the environment variable that `key` is from
    ("" for none); `forbidden` says what to do about a 403 where it is not about the key, and
    `refused` what to check where a search is not taken (400).
    """

    title: str
    url: str
    timeout: float
    key: str = field(default="", repr=False)
    key_variable: str = ""
    forbidden: str = ""
    refused: str = "check web_search.url"

    def hiding_key(self, text: str) -> str:
        """`text` without the key and the URL's password, should a server have said one back."""
        password = urlsplit(self.url).password or ""
        for secret in filter(None, (self.key, password, unquote(password))):
            text = text.replace(secret, "…")
        return text


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: `params` of the URL, `key_param` the one for the key, a JSON body."""

    method: str
    params: Mapping[str, str] = field(default_factory=dict)
    key_param: str = ""
    bearer: bool = False
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON object that came with a status from 200 to 299."""

    status: int
    data: Mapping[str, Any]


async def asked(service: Service, request: Request) -> Answer:
    """The answer to one request. Raises WebSearchUnavailable, and closes the connection when it is
    cancelled."""
    import httpx2

    try:
        async with asyncio.timeout(service.timeout):
            status, headers, body = await _sent(service, request)
    except (TimeoutError, httpx2.TimeoutException):
        raise WebSearchUnavailable(
            f"{service.title} did not answer within {service.timeout:g} s; try again, or raise "
            "web_search.timeout."
        ) from None
    except httpx2.HTTPError as error:
        reason = service.hiding_key(one_line(str(error)).rstrip(".")) or type(error).__name__
        if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
            what = f"cannot be reached ({reason}); check web_search.url and the network"
        else:
            what = f"broke off its answer ({reason}); try again later"
        raise WebSearchUnavailable(f"{service.title} {what}.") from None
    if not 200 <= status < 300:
        raise failures.refusal(service, status, headers, _text(body))
    return Answer(status, _object(service, status, body))


async def _sent(service: Service, request: Request) -> tuple[int, Mapping[str, str], bytes]:
    async with _client(service) as client:
        built = client.build_request(
            request.method,
            service.url,
            params=dict(request.params),
            json=request.body,
            headers=_headers(service, request),
        )
        if request.key_param and service.key:
            url = built.url.copy_add_param(request.key_param, service.key)
            built.extensions = {**built.extensions, "target": url.raw_path}
        response = await client.send(built, stream=True)
        try:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise WebSearchUnavailable(
                        f"{service.title} answers with more than {_MOST_BYTES // 1_000_000} MB, "
                        "which no list of results is; check web_search.url."
                    )
            return response.status_code, response.headers, bytes(body)
        finally:
            await response.aclose()


def _client(service: Service) -> "httpx2.AsyncClient":
    import httpx2

    try:
        client: httpx2.AsyncClient | None = loopback_client(service.url)
        # Redirects are not followed: a key would go along to wherever they lead.
        return client or httpx2.AsyncClient(timeout=None, follow_redirects=False)
    except (ValueError, OSError, ImportError) as error:
        # A proxy that is no address, a certificate file that is not there.
        raise WebSearchUnavailable(
            f"No connection to {service.title} can be made ({error}); check HTTPS_PROXY, "
            "HTTP_PROXY and SSL_CERT_FILE."
        ) from None


def _headers(service: Service, request: Request) -> dict[str, str]:
    headers = {"User-Agent": _USER_AGENT, "Accept": "application/json"}
    if request.bearer and service.key:
        headers["Authorization"] = f"Bearer {service.key}"
    return headers


def _object(service: Service, status: int, body: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise failures.not_json(service, status, _text(body)) from None
    if not isinstance(data, dict):
        raise failures.other_shape(service)
    return data


def _text(body: bytes) -> str:
    return body.decode("utf-8", errors="replace")


def endpoint(url: str, path: str = "/search") -> str:
    """The address that searches are sent to, of a server's address: `path` is put behind it unless
    that is there already. Raises ValueError for what is no http address."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("no http address")
    if any(c.isspace() or not c.isprintable() for c in url.strip()):
        raise ValueError("white space in an address")
    own = parts.path.rstrip("/")
    if not own.endswith(("/search", "/search.json")):
        own += path
    return parts._replace(path=own, query="", fragment="").geturl()


def shown(url: str) -> str:
    """An address as messages show it: without a password, parameters and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
