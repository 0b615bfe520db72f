"""Finding Ollama, its chat models, and what they can."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_PORT = 11434
_PROBE = 0.5  # seconds; it is on this machine or it is not
DEFAULT_CONTEXT = 4096  # tokens; past it Ollama cuts a prompt without a word
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_NOT_CHAT = re.compile(r"embed|bge|minilm|e5-|rerank", re.IGNORECASE)


def base_address(env: Mapping[str, str]) -> str:
    """The address of Ollama, from OLLAMA_HOST in the forms Ollama itself takes."""
    given = env.get("OLLAMA_HOST", "").strip() or "127.0.0.1"
    try:
        url = urlsplit(given if "//" in given else f"http://{given}")
        port = url.port or (443 if url.scheme == "https" else _PORT)
    except ValueError:  # no address at all
        return f"http://127.0.0.1:{_PORT}"
    host = url.hostname or "127.0.0.1"
    if host in ("0.0.0.0", "::"):  # where it listens; this machine reaches it at loopback
        host = "127.0.0.1"
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def chat_models(base: str) -> list[str]:
    """Names of the chat models of Ollama at `base`; none when it does not answer at once."""
    try:
        names = [str(entry["name"]) for entry in _asked(f"{base}/api/tags")["models"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if not _NOT_CHAT.search(name)]


@dataclass(frozen=True, slots=True)
class Model:
    """What Ollama says of a model: whether it can call tools, the context it is run with, in its
    own tokens, and the longest one it can be run with (None where that is not said)."""

    tools: bool = False
    context_tokens: int = DEFAULT_CONTEXT
    most_context: int | None = None


def described(base: str, model: str) -> Model:
    """What Ollama at `base` says of `model`; where it does not answer, what can be relied on.

    The context is that of the model's own file (`PARAMETER num_ctx`), else Ollama's default: the
    OpenAI protocol has no place for another, and OLLAMA_CONTEXT_LENGTH, which raises the default,
    is known to the server alone. What `/api/ps` shows may be the wish of another program.
    """
    try:
        said = _asked(f"{base}/api/show", {"model": model})
        tools = "tools" in said.get("capabilities", ())
        set_in_file = _NUM_CTX.search(str(said.get("parameters", "")))
        facts = said.get("model_info") or {}
        lengths = [int(v) for k, v in facts.items() if k.endswith(".context_length")]
    except (OSError, ValueError, AttributeError, TypeError):
        return Model()
    context = int(set_in_file[1]) if set_in_file else DEFAULT_CONTEXT
    most = lengths[0] if lengths else None
    return Model(tools, context if most is None else min(context, most), most)


def _asked(address: str, body: Mapping[str, str] | None = None) -> Any:
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with opener.open(request, timeout=_PROBE) as reply:
        return json.loads(reply.read(1 << 24))
