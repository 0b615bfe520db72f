"""A URL to its content: bounded in time and size, and kept away from private addresses.

The name is resolved here, every address it stands for is checked, and the connection is made to
the address that was checked; so neither a redirect nor a name that resolves another way a moment
later leads to a machine behind the firewall. Where a proxy is set (HTTPS_PROXY), it connects, and
names that resolve here are checked all the same.
"""

import ipaddress
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

from agentic_rag.documents.source import Content, Source, too_large
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    import httpx2

_REDIRECTS = 10  # browsers follow 20
_CONNECT_SECONDS = 10.0
_MOST_PATIENT = 10.0  # seconds to wait when a server asks to come again later
_USER_AGENT = "Mozilla/5.0 (compatible; agentic-rag)"
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.8"
_SCHEMES = ("http", "https")


class BadUrl(AragError):
    """A URL cannot be used: misspelt, of a scheme other than http and https, or with a secret."""


class NothingNamed(AragError):
    """An empty string stands where a file, a folder or a URL is to be named."""


class PrivateAddress(AragError):
    """A URL leads to a private address and `web.allow_private` is off."""


class NotFetched(AragError):
    """A server could not be reached, took too long, or refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How a URL may be fetched: whether from private addresses, and in how many seconds."""

    allow_private: bool = False
    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came back, and the URL it came from in the end."""

    url: str
    data: bytes
    media_type: str


def is_url(name: str) -> bool:
    """Whether what was named is a URL rather than a path ("https://…", also "ftp://…")."""
    scheme, colon, _ = name.strip().partition("://")
    return bool(colon) and scheme.isalnum()


def named_source(name: str, bounds: Bounds) -> Path | Source:
    """What a string names: a page of the web, or a file or folder. Raises NothingNamed, BadUrl."""
    if not name:  # Path("") would be the current folder
        raise NothingNamed("A path is empty; name a file, a folder or a URL.")
    return web_source(name, bounds) if is_url(name) else Path(name)


def web_source(url: str, bounds: Bounds) -> Source:
    """A source of what a URL holds; its URI is the URL without its fragment. Raises BadUrl."""
    parsed = _parsed(url)

    def read(most: int) -> Content:
        fetched = fetch(url, bounds, most)
        return Content(fetched.data, fetched.media_type)

    uri = url.strip().partition("#")[0]
    name = parsed.path.rstrip("/").rpartition("/")[2] or parsed.host
    return Source(uri, name, (), 0, 0, True, read)


def fetch(url: str, bounds: Bounds, most: int) -> Fetched:
    """Get a URL; at most `most` bytes after decompression.

    Raises BadUrl, PrivateAddress, NotFetched, TooLarge.
    """
    import httpx2

    deadline = time.monotonic() + bounds.seconds
    current = _parsed(url)
    with _told(current), httpx2.Client(timeout=_CONNECT_SECONDS, trust_env=True) as client:
        for _ in range(_REDIRECTS + 1):
            with _opened(client, current, bounds, deadline) as response:
                if target := response.headers.get("location") if response.is_redirect else None:
                    current = _parsed(str(current.join(target)))
                    continue
                if response.status_code >= 400:
                    raise NotFetched(_refusal(current, response))
                data = _body(response, most, deadline, bounds)
                media_type = response.headers.get("content-type", "")
                return Fetched(str(current), data, media_type)
    raise NotFetched(f"{_shown(current)} redirects more than {_REDIRECTS} times; check the address")


@contextmanager
def _opened(
    client: "httpx2.Client", url: "httpx2.URL", bounds: Bounds, deadline: float
) -> Iterator["httpx2.Response"]:
    """The response to one request, its body unread. A server that asks to come again in a moment
    is asked once more."""
    request = _request(client, url, bounds)
    response = client.send(request, stream=True)
    try:
        wait = response.headers.get("retry-after", "")
        if response.status_code in (429, 503) and wait.isdigit():
            pause = float(wait)
            if pause <= _MOST_PATIENT and time.monotonic() + pause < deadline:
                response.close()
                time.sleep(pause)
                response = client.send(_request(client, url, bounds), stream=True)
        yield response
    finally:
        response.close()


def _request(client: "httpx2.Client", url: "httpx2.URL", bounds: Bounds) -> "httpx2.Request":
    headers = {"User-Agent": _USER_AGENT, "Accept": _ACCEPT}
    proxied = url.scheme in getproxies() and not proxy_bypass(url.host)
    if not bounds.allow_private:
        _refuse_localhost(url)
    addresses = _addresses(url, required=not proxied)
    if not bounds.allow_private:
        _check(url, addresses)
    if proxied or not addresses:
        return client.build_request("GET", url, headers=headers)
    host = url.netloc.decode("ascii")
    return client.build_request(
        "GET",
        url.copy_with(host=addresses[0]),
        headers={**headers, "Host": host},
        extensions={"sni_hostname": url.host},
    )


def _addresses(url: "httpx2.URL", *, required: bool) -> list[str]:
    """The addresses a URL's host stands for, however they are written (2130706433 is 127.0.0.1)."""
    host = url.raw_host.decode("ascii")
    try:
        found = socket.getaddrinfo(host, url.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        if required:
            raise NotFetched(
                f"The host '{url.host}' is not known; check the address and the network"
            ) from None
        return []
    # IPv4 first: a machine without IPv6 often resolves it all the same.
    ordered = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return list(dict.fromkeys(str(entry[4][0]) for entry in ordered))


def _refuse_localhost(url: "httpx2.URL") -> None:
    # By name too: through a proxy it would be the proxy's own machine.
    if url.host.lower().rstrip(".").rpartition(".")[2] == "localhost":
        raise _private(url, url.host)


def _check(url: "httpx2.URL", addresses: list[str]) -> None:
    for address in addresses:
        if not _is_public(address):
            raise _private(url, address)


def _private(url: "httpx2.URL", address: str) -> PrivateAddress:
    return PrivateAddress(
        f"{_shown(url)} leads to the private address {address}, which is refused; set "
        "web.allow_private (ARAG_WEB__ALLOW_PRIVATE=true) if it is meant"
    )


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            ip = inner
    return ip.is_global and not ip.is_multicast


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052


def _body(response: "httpx2.Response", most: int, deadline: float, bounds: Bounds) -> bytes:
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_large(most)
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        size += len(part)
        if size > most:
            raise too_large(most)
        if time.monotonic() > deadline:
            raise NotFetched(
                f"{_shown(response.request.url)} took longer than {bounds.seconds:g} s; try again, "
                "or raise web.timeout"
            )
        parts.append(part)
    return b"".join(parts)


def _parsed(url: str) -> "httpx2.URL":
    import httpx2

    try:
        parsed = httpx2.URL(url.strip()).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
        raise BadUrl(f"'{url}' is not a URL ({error}); write it as https://…") from None
    if parsed.scheme not in _SCHEMES or not parsed.host:
        raise BadUrl(f"'{url}' cannot be fetched; only http:// and https:// addresses can")
    if parsed.userinfo:
        raise BadUrl(
            f"The URL of {parsed.host} holds a user name or password, which would be stored; "
            "download the page and index the file"
        )
    return parsed


@contextmanager
def _told(url: "httpx2.URL") -> Iterator[None]:
    """Turns what goes wrong on the way into NotFetched."""
    import httpx2

    try:
        yield
    except httpx2.TimeoutException:
        raise NotFetched(f"{_shown(url)} did not answer in time; try again later") from None
    except httpx2.HTTPError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise NotFetched(
            f"{_shown(url)} could not be fetched ({reason}); try again later"
        ) from None


def _refusal(url: "httpx2.URL", response: "httpx2.Response") -> str:
    said = f"{response.status_code} {response.reason_phrase}".strip()
    if response.status_code in (404, 410):
        return f"{_shown(url)} does not exist ({said}); check the address"
    if response.status_code in (401, 403, 407):
        return f"{_shown(url)} may not be read ({said}); save the page and index the file"
    return f"The server of {_shown(url)} answers {said}; try again later"


def _shown(url: "httpx2.URL") -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = "" if url.port is None else f":{url.port}"
    return f"{url.scheme}://{host}{port}{url.path}"
