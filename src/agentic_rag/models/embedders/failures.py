"""How a call to an embedding server fails, and which failure an HTTP status stands for.

Servers differ: too many or too long inputs are 400 at OpenAI, vLLM and DashScope, 413 or 422 at
Text Embeddings Inference and SiliconFlow, and 500 at llama.cpp.
"""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

_SHOWN = 200  # characters of what a server said
# OpenAI's 429 for an account without money, where waiting does not help.
_NO_CREDIT = re.compile(
    r"insufficient_quota|billing_hard_limit|credit_balance|spend_limit|arrearage", re.IGNORECASE
)


class CallFailed(Exception):
    """A call failed; `said` is why, in words, and `retry_after` seconds the server asked for."""

    def __init__(self, said: str, retry_after: float | None = None) -> None:
        super().__init__(said)
        self.said = said
        self.retry_after = retry_after


class Refused(CallFailed):
    """The server does not take these inputs: too many, too long, or not to its liking."""


class Busy(CallFailed):
    """The server wants fewer requests."""


class Unreachable(CallFailed):
    """No connection came about; the inputs cannot be the reason."""


class Failed(CallFailed):
    """The server failed; the inputs may be the reason, or the server may be down."""


class TimedOut(Failed):
    """The server did not answer in time; fewer inputs may be answered sooner."""


class Denied(CallFailed):
    """Nothing will be answered until a setting is changed; `said` is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server as messages name it: `title` ("openai:bge-m3 at http://host/v1"), the environment
    variable of the key that is sent ("" for none), and what cures an unknown model."""

    title: str
    key_variable: str = ""
    unknown_model: str = "check embedding.model and embedding.base_url (most end in /v1)"


def failure(server: Server, status: int, headers: Mapping[str, str], body: str) -> CallFailed:
    """What an HTTP `status` outside 200 to 299 stands for. `headers` by lower-case name."""
    said = f"{status}: {words_of(body)}".removesuffix(": ")
    wait = retry_after(headers)
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(body)):
        return Denied(
            f"The embedder {server.title} takes no more requests of this account ({said}); "
            "look at its credit and limits there."
        )
    if status in (401, 403):
        return Denied(_denied(server, said))
    if status == 404:
        return Denied(
            f"The embedder {server.title} was not found there ({said}); {server.unknown_model}."
        )
    if status in (400, 413, 422):
        return Refused(said, wait)
    if status == 429:
        return Busy(said, wait)
    # TEI says 424 for a failing backend.
    if status in (408, 409, 424, 425) or status >= 500:
        return Failed(said, wait)
    if 300 <= status < 400:
        place = headers.get("location", "another address")
        return Denied(
            f"The embedder {server.title} is elsewhere: the server points to {place}; set "
            "embedding.base_url to where it is."
        )
    return Denied(
        f"The embedder {server.title} does not take requests like these ({said}); check "
        "embedding.base_url and embedding.model."
    )


def _denied(server: Server, said: str) -> str:
    if server.key_variable:
        return (
            f"The embedder {server.title} refuses the key in {server.key_variable} ({said}); "
            "put the right key into that environment variable."
        )
    return (
        f"The embedder {server.title} wants a key ({said}); put it into an environment variable "
        "and name that one in embedding.api_key_env."
    )


def words_of(body: str) -> str:
    """What an error's body says, in one line of at most 200 characters."""
    try:
        found = _message(json.loads(body))
    except (ValueError, RecursionError):
        found = "" if body.lstrip().startswith("<") else body
    line = " ".join(found.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _message(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return _message(data[0]) if data else ""
    if isinstance(data, dict):
        for name in ("message", "error", "detail", "msg", "error_msg"):
            if data.get(name):
                return _message(data[name])
    return ""


def is_error(data: Any) -> bool:
    """Whether a body that came with status 200 tells of an error."""
    if not isinstance(data, dict):
        return True
    return bool(data.get("error")) or not isinstance(data.get("data"), list)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an
    HTTP date (RFC 9110, 10.2.3); None where it asks for nothing that can be read."""
    with_ms = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", with_ms):
        return float(with_ms) / 1000
    given = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", given):
        return float(given)
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
