"""Who may use the server.

With a token (the variable that `server.token_env` names) every request must carry it as
`Authorization: Bearer …`. Without one the server listens on loopback only, and takes requests
that a page of another site makes a browser send for what they are: their `Host` is another name
(DNS rebinding) or their `Origin` another site (cross-site requests), and they are refused.
"""

import hmac
import ipaddress
import os
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentic_rag.config import Server
from agentic_rag.errors import AragError
from agentic_rag.server.errors import error_response

# What a browser or a probe must get before it has a token; none of it comes from the documents.
OPEN = ("/", "/api/health", "/api/ready", "/docs", "/openapi.json", "/favicon.ico")
_OPEN_FOLDER = "/static/"
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:]*)(?::\d*)?")
_LEAST = 16  # characters of a token; a shorter one can be guessed


class TokenNeeded(AragError):
    """The server would be reachable from elsewhere without a key, or with one that is no key."""


def token_of(server: Server) -> str | None:
    """The token that requests must carry; None where none is needed. Raises TokenNeeded."""
    token = os.environ.get(server.token_env, "").strip() if server.token_env else ""
    if token and (len(token) < _LEAST or not token.isascii() or not token.isprintable()):
        raise TokenNeeded(
            f"The token in {server.token_env} must have at least {_LEAST} plain characters; make "
            "one with `openssl rand -hex 32`."
        )
    if token or is_loopback(server.host):
        return token or None
    raise TokenNeeded(
        f"On {server.host} others can reach this server, so it needs a key: put a long random text "
        f"into the variable {server.token_env or 'that server.token_env names'}, for instance of "
        "`openssl rand -hex 32`, or listen on 127.0.0.1."
    )


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach that host."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Authorisation:
    """ASGI middleware that lets in what may come in. Tokens are compared in constant time."""

    def __init__(self, app: ASGIApp, *, token: str | None, origins: tuple[str, ...] = ()) -> None:
        self.app = app
        self._token = token.encode() if token else None
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refused(scope["path"], headers)
        if refused is None:
            await self.app(scope, receive, send)
            return
        status, code, message = refused
        challenge = {"WWW-Authenticate": 'Bearer realm="arag"'} if status == 401 else {}
        await error_response(status, code, message, challenge)(scope, receive, send)

    def _refused(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        """Status, code and message for a request that may not come in."""
        if self._token is not None:
            if path in OPEN or path.startswith(_OPEN_FOLDER) or self._carries_token(headers):
                return None
            message = "This server needs its token; send it as `Authorization: Bearer …`."
            return 401, "unauthorised", message
        host = headers.get("host", "")
        if not is_loopback(_name(host)):
            message = "Without a token only this machine may ask; open the server by 127.0.0.1."
            return 403, "foreign_host", message
        origin = headers.get("origin")
        if origin is None or origin.lower() in self._origins or _is_own(origin, host):
            return None
        message = "A page of another site may not use this server; add it to server.allow_origins."
        return 403, "foreign_origin", message

    def _carries_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token or b"")
        return scheme.lower() == "bearer" and same


def _is_own(origin: str, host: str) -> bool:
    """Whether a page of that origin came from the server that the request went to."""
    return urlsplit(origin).netloc.lower() == host.lower()


def _name(host: str) -> str:
    """A `Host` header without its port."""
    found = _HOST.fullmatch(host)
    return found[1] if found else ""
