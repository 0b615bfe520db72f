"""Building Pydantic AI models: every import of a provider's SDK is in here.

A model is built anew for each question, since its connections belong to one event loop.
"""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentic_rag.errors import AragError
from agentic_rag.models import embedded

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile

Connect = Callable[[], AbstractAsyncContextManager["Model"]]
# A model, and the HTTP client that has to be closed after it (None: the model's own).
Build = Callable[[], "tuple[Model, Any]"]

# Pydantic AI's modules import one another: of threads that are the first to import some of them at
# the same time, each beginning at another one, some would find a half of it.
_importing = threading.Lock()


class ModelUnavailable(AragError):
    """The model asked for is unknown, or lacks a key, a package or a file."""


def connector(name: str, build: Build) -> Connect:
    """What connects the model `name`.

    It is built once here, so that a missing package, key or name is told before any work.
    Raises `ModelUnavailable`.
    """
    with _importing:
        from pydantic_ai.exceptions import UserError

    def checked() -> "tuple[Model, Any]":
        try:
            return build()
        except ImportError as error:
            raise ModelUnavailable(_missing_package(name, str(error))) from None
        except (UserError, ValueError) as error:
            raise ModelUnavailable(_unknown(name, str(error))) from error

    with _importing:
        checked()

    @asynccontextmanager
    async def connect() -> AsyncIterator["Model"]:
        model, client = checked()
        try:
            async with model:
                yield model
        finally:
            if client is not None:
                await client.aclose()

    return connect


def _missing_package(name: str, said: str) -> str:
    extra = re.search(r'pip install "?([\w\[\],.-]+)', said)
    package = extra.group(1) if extra else "pydantic-ai-slim"
    return f'The model {name} needs a package that is not installed; run `pip install "{package}"`.'


def _unknown(name: str, said: str) -> str:
    said = " ".join(said.split())
    if said.startswith("Unknown model") or said.startswith("Unknown provider"):
        close = re.search(r"Did you mean '([^']+)'", said)
        prefix, colon, rest = name.partition(":")
        if close and (not colon or close.group(1).endswith(f":{rest}")):
            hint = f"did you mean {close.group(1)}?"
        elif colon and prefix and rest:
            hint = (
                f"there is no provider {prefix!r}. A model of Ollama is written ollama:{name}; "
                "one of a server of your own needs the setting `base_url`."
            )
        else:
            hint = "write provider:name, such as openai:gpt-6-luna."
        return f"The model {name!r} is not known; {hint}"
    variable = re.search(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", said)
    if variable:
        return f"The model {name} needs the environment variable {variable.group(1)}; set it."
    return f"The model {name} cannot be used as it is named; docs/configuration.md says how."


# Names that stand before the tag of a model (`llama:7b`) and are one slip from a provider's.
_FAMILIES = frozenset(["llama"])


def mistyped(name: str, providers: Iterable[str]) -> str:
    """`name` ("opnai:test") with the provider's name that was meant; "" where none was.

    A slip is another case, a separator too many or too few, or one letter left out, put in, taken
    for another or swapped with the next. A prefix with a digit in it is a model's (`qwen2:7b`).
    """
    providers = frozenset(providers)
    prefix, colon, rest = name.partition(":")
    if not colon or not rest or prefix in providers or re.search(r"\d", prefix):
        return ""
    typed = _letters(prefix)
    if typed in _FAMILIES:
        return ""
    known = sorted(providers, key=lambda provider: (_letters(provider) != typed, provider))
    meant = next((provider for provider in known if _one_slip(typed, _letters(provider))), "")
    return f"{meant}:{rest}" if meant else ""


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _one_slip(one: str, other: str) -> bool:
    """Whether the two differ in one letter, or in two neighbours swapped, or not at all."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    swapped = len(one) > 1 and one[:2] == other[1::-1] and one[2:] == other[2:]
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]


def inferred(name: str, key: str) -> "tuple[Model, Any]":
    """What Pydantic AI makes of `name` ("provider:model"); without `key` it finds its own."""
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if not key:
        return infer_model(name), None
    # A provider class of its own signature may not take the key; TypeError would hide the reason.
    infer_provider_class(name.partition(":")[0])

    def provider(kind: str) -> Any:
        if kind.startswith("gateway/"):
            return infer_provider(kind)
        made: Callable[..., Any] = infer_provider_class(kind)
        return made(api_key=key)

    return infer_model(name, provider), None


def openai_compatible(system: str, model: str, base_url: str, key: str) -> "tuple[Model, Any]":
    """A model behind OpenAI's chat protocol; `system` names the provider in the price list."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = loopback_client(base_url)
    provider = OpenAICompatibleProvider(system, base_url=base_url, api_key=key, http_client=client)
    return OpenAIChatModel(model, provider=provider, profile=_profile()), client


def anthropic(model: str, key: str, base_url: str) -> "tuple[Model, Any]":
    """A model behind Anthropic's protocol at another address."""
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=base_url)), None


def loopback_client(base_url: str) -> Any:
    """A client that ignores HTTP_PROXY where the server is this machine; None elsewhere."""
    host = urlsplit(base_url).hostname or ""
    if host != "localhost" and host != "::1" and not host.startswith("127."):
        return None
    import httpx2

    # Silence is timed by the caller; a slow model may think for longer than httpx's 5 s.
    return httpx2.AsyncClient(trust_env=False, timeout=None)


def ollama(model: str, base: str) -> "tuple[Model, Any]":
    """A model of the Ollama at `base`, such as http://127.0.0.1:11434."""
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    client = loopback_client(base)
    provider = OllamaProvider(base_url=f"{base}/v1", http_client=client)
    return OllamaModel(model, provider=provider, profile=_profile()), client


def in_process(path: Path, context_tokens: int) -> Connect:
    """What connects the GGUF file `path`, loaded at the first question that needs it."""

    @asynccontextmanager
    async def connect() -> AsyncIterator["Model"]:
        # Imports and loading take seconds at first, and the loop may have others to serve.
        model, client = await asyncio.to_thread(_local, path, context_tokens)
        try:
            yield model
        finally:
            await client.aclose()

    return connect


def _local(path: Path, context_tokens: int) -> "tuple[Model, Any]":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles import ModelProfile, merge_profile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    endpoint = embedded.load(path, context_tokens)
    client = loopback_client(endpoint.base_url)
    provider = OpenAICompatibleProvider(
        "llama.cpp", base_url=endpoint.base_url, api_key=endpoint.api_key, http_client=client
    )
    # llama.cpp reads "<|im_start|>" in a passage as a turn of its own, so it is broken up.
    profile = merge_profile(_profile(), ModelProfile(may_tokenize_special_tokens_in_content=True))
    return OpenAIChatModel(path.stem, provider=provider, profile=profile), client


def _profile() -> "ModelProfile":
    """What is asked of every OpenAI-compatible endpoint.

    `<think>` is told apart by `strategies.thoughts`: Pydantic AI does so only where a piece is
    exactly a tag, and then takes an answer that quotes one, or follows a closing tag in the same
    piece, for thought.
    """
    from pydantic_ai.profiles import ModelProfile

    return ModelProfile(thinking_tags=("\0", "\0"))
