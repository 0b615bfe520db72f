"""A GGUF model inside this process, by llama.cpp's own chat endpoint (`xllamacpp`).

The endpoint listens on a free loopback port behind a random key; each file is loaded once a
process, at the first question that needs it, and let go at exit.
"""

import atexit
import os
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentic_rag.errors import AragError

# One thread that sleeps between its turns: two spinning ones were no quicker on two cores and
# fell to a token a second when the machine was busy.
_THREADS = 1
_POLL = 0
_HTTP_THREADS = 2
_SILENT = -1  # llama.cpp's log level; its lines would land on our standard error


class ModelFileUnusable(AragError):
    """A GGUF file is missing, is none, or cannot be run here."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a loaded model answers in OpenAI's protocol. The key never leaves the process."""

    base_url: str
    api_key: str = field(repr=False)


_lock = threading.Lock()
# A forked child has the numbers of its parent's endpoints but none of their threads.
_loaded: dict[tuple[int, Path, int], tuple[Endpoint, Any]] = {}


def load(path: Path, context_tokens: int) -> Endpoint:
    """The endpoint of the model in `path`, loading it (0.3 s for the embedded one) if need be.

    `context_tokens` is the room for prompt and answer, in the model's own tokens. Blocks; call
    it from a thread. Raises `ModelFileUnusable`.
    """
    path = check(path)
    key = (os.getpid(), path, context_tokens)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _start(path, context_tokens)
        return _loaded[key][0]


def check(path: Path) -> Path:
    """`path` made absolute, if it looks like a GGUF file; raises `ModelFileUnusable`."""
    path = path.expanduser().absolute()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        reason = (
            "does not exist"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror})"
        )
        raise ModelFileUnusable(
            f'The model file {path} {reason}; correct `model = "local:PATH"`.'
        ) from None
    if magic != b"GGUF":
        raise ModelFileUnusable(
            f'{path} is not a GGUF model; `model = "local:PATH"` takes GGUF files.'
        )
    return path


def unload_all() -> None:
    """Stop every endpoint of this process. Runs at exit."""
    with _lock:
        _loaded.clear()


atexit.register(unload_all)


def _start(path: Path, context_tokens: int) -> tuple[Endpoint, Any]:
    try:
        import xllamacpp
    except ImportError:
        raise ModelFileUnusable(
            "Running a model in this process needs the package xllamacpp, which is not installed; "
            "run `pip install xllamacpp`, or set `model` to a hosted one."
        ) from None
    key = secrets.token_urlsafe(24)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    for processor in (params.cpuparams, params.cpuparams_batch):
        processor.n_threads = _THREADS
        processor.poll = _POLL
    params.n_threads_http = _HTTP_THREADS
    params.verbosity = _SILENT
    params.warmup = False
    params.fit_params = False
    params.cache_ram_mib = 0  # prompts of other questions are of no use
    params.api_keys = [key]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = "http://127.0.0.1"  # no web page may call it
    params.ui = False
    params.endpoint_slots = False
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        raise ModelFileUnusable(
            f"llama.cpp cannot load {path}: the file is damaged or of a kind it does not know; "
            "fetch it again, or set `model` to another."
        ) from None
    return Endpoint(f"{server.listening_address}/v1", key), server
