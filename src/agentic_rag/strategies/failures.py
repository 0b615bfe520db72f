"""What a failed request to a chat model comes to: one sentence that ends in what to do.

Every provider's errors come in here; what a server says of itself is quoted in short, and never
as a page of HTML.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rag.errors import AragError
from agentic_rag.models.cures import Cures

_TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LONG_TOKEN = re.compile(r"[A-Za-z0-9_\-*.]{20,}")  # keys are echoed by some providers
_LONGEST = 200  # characters that are quoted
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_PAGE = re.compile(r"\s*(?:<!|<html|<head|<body|<\?xml)", re.IGNORECASE)
_SAYS = ("message", "error", "detail", "msg", "title")  # where servers put what is wrong


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong (`what`, without a stop) and what to do about it (`cure`, a clause; "" where
    `what` is a sentence that says so itself). `transient`: it may pass by itself, after `pause`
    seconds. `too_long`: the prompt did not fit."""

    what: str
    cure: str = ""
    transient: bool = False
    pause: float | None = None
    too_long: bool = False

    @property
    def message(self) -> str:
        """Both as a sentence."""
        return f"{self.what}; {self.cure}." if self.cure else self.what


def describe_failure(error: Exception, silence: float, cures: Cures) -> Failure:
    """What a request's error comes to; `silence` is how many seconds were waited."""
    from pydantic_ai import exceptions as e

    if isinstance(error, TimeoutError | e.ModelTimeoutError | e.ModelRequestTimeout):
        what = f"The model said nothing for {silence:g} seconds"
        return Failure(what, "try again, or raise `model_timeout`", transient=True)
    if isinstance(error, AragError):
        return Failure(str(error))
    status = getattr(error, "status_code", None)
    told = f" (HTTP {status})" if status else ""
    match error:
        case e.ModelContextWindowExceededError():
            what = "The passages do not fit the model's context"
            return Failure(what, "lower `answer.passage_tokens`", too_long=True)
        case e.ModelAuthenticationError() if cures.keyless:
            what = f"The server asks for a key{told}, and no key was sent"
            return Failure(what, "name the environment variable that holds it in `api_key_env`")
        case e.ModelAuthenticationError():
            what = f"The provider refused the key{told}"
            return Failure(what, "check it and what it may use")
        case e.ModelQuotaExceededError():
            return Failure(f"The provider says the quota is used up{told}", "check the account")
        case e.ModelNotFoundError():
            what = f"The provider does not know this model or address{told}"
            return Failure(what, _unknown(error, cures))
        case e.ModelRateLimitError():
            what, pause = f"The provider's rate limit is reached{told}", error.retry_after
            return Failure(what, "try again later", transient=True, pause=pause)
        case e.ModelConnectionError():
            what = "The connection to the model failed or broke"
            return Failure(what, cures.unreachable, transient=True)
    transient = status in _TRANSIENT_STATUS or isinstance(
        error, e.ModelUnavailableError | e.ModelServerError
    )
    if status is None and (not isinstance(error, e.ModelAPIError) or "JSON" in str(error)):
        return Failure(_no_reply(error), cures.answer)
    quoted = _quoted(provider_message(error))
    what = f"The model failed{told}" + (f": {quoted}" if quoted else "")
    return Failure(what, _other_side(status, cures), transient, getattr(error, "retry_after", None))


def provider_message(error: BaseException) -> str:
    """What the provider said of what is wrong, on one line; "" for nothing."""
    said = _said(getattr(error, "body", None)) or str(getattr(error, "message", "") or "")
    if "status_code" in said and "body:" in said:  # what Pydantic AI writes around it
        said = ""
    if _PAGE.match(said):
        title = _TITLE.search(said)
        said = title.group(1) if title else ""
    return " ".join(said.split())


def refusal(error: BaseException) -> str:
    """`(HTTP 400): what the provider said`."""
    said = _quoted(provider_message(error))
    told = f"(HTTP {getattr(error, 'status_code', 'unknown')})"
    return f"{told}: {said}" if said else told


def _quoted(said: str) -> str:
    """A server's words as a reader is shown them: short, without keys and without a stop."""
    return _LONG_TOKEN.sub("…", " ".join(said.split()))[:_LONGEST].rstrip(" .")


def _said(body: object) -> str:
    if isinstance(body, str):
        return body
    if isinstance(body, Mapping):
        return next((text for name in _SAYS if (text := _said(body.get(name)))), "")
    return ""


def _no_reply(error: Exception) -> str:
    """What came with HTTP 200 and is no reply."""
    from pydantic_ai.exceptions import UnexpectedModelBehavior

    said = str(error)
    if not isinstance(error, UnexpectedModelBehavior) or said.startswith("Invalid response"):
        return "What came back is not a chat model's reply"
    if "without content" in said:
        return "What came back holds neither text nor a tool call"
    return f"The model's reply cannot be used: {_quoted(said)}"


def _unknown(error: Exception, cures: Cures) -> str:
    if not cures.address:
        return "check `model`"
    name = getattr(error, "model_name", "")
    model = f"`model` ({name})" if name else "`model`"
    return f"check {model} and `base_url` ({cures.address}): most end in /v1"


def _other_side(status: int | None, cures: Cures) -> str:
    if status is None:
        return cures.answer
    if status >= 500:
        return f"the fault is on the other side: look at {cures.log}, and try again"
    return f"it refused the request: mend what it complains of, or look at {cures.log}"
