"""Finding Ollama and its chat models."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_PORT = 11434
_PROBE = 0.5  # seconds; it is on this machine or it is not
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


def calls_tools(base: str, model: str) -> bool:
    """Whether Ollama says that `model` can call tools; False when it does not say."""
    try:
        return "tools" in _asked(f"{base}/api/show", {"model": model})["capabilities"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _asked(address: str, body: Mapping[str, str] | None = None) -> Any:
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with opener.open(request, timeout=_PROBE) as reply:
        return json.loads(reply.read(1 << 24))
