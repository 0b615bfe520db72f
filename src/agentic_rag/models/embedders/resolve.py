"""Which embedder `[embedding]` names. Nothing is loaded or asked before it is used."""

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentic_rag.models import ollama
from agentic_rag.models.connect import mistyped
from agentic_rag.models.embedder import Embedder, UnknownEmbedder
from agentic_rag.models.embedders import providers
from agentic_rag.models.embedders.failures import Denied, Server
from agentic_rag.models.embedders.openai import OpenAIEndpoint
from agentic_rag.models.embedders.prompts import Prompts, chosen, prompts_of
from agentic_rag.models.embedders.remote import RemoteEmbedder

if TYPE_CHECKING:
    from agentic_rag.config import Embedding

_OPENAI = "https://api.openai.com/v1"
# Prefix, the environment variables of its key, what builds it, the extra with its SDK.
_PROVIDERS = {
    "cohere": (("CO_API_KEY", "COHERE_API_KEY"), providers.cohere, "cohere"),
    "voyage": (("VOYAGE_API_KEY",), providers.voyage, "voyage"),
    "google": (("GOOGLE_API_KEY", "GEMINI_API_KEY"), providers.google, "google"),
}
_PREFIXES = ("openai", "ollama", "sentence-transformers", *_PROVIDERS)
_FORMS = (
    "'local', 'openai:MODEL', 'ollama:MODEL', 'cohere:MODEL', 'voyage:MODEL', 'google:MODEL' or "
    "'sentence-transformers:NAME_OR_PATH'"
)


@cache
def resolve(settings: "Embedding") -> Embedder:
    """The embedder that `settings` name, but for "local"; one per process, so that what it learns
    of a server serves all. Raises UnknownEmbedder."""
    prefix, colon, model = settings.model.strip().partition(":")
    prefix = {"voyageai": "voyage"}.get(prefix, prefix)
    if not colon or not model or prefix not in _PREFIXES:
        meant = mistyped(settings.model, (*_PREFIXES, "local"))
        hint = f"did you mean '{meant}'?" if meant else f"set embedding.model to {_FORMS}."
        raise UnknownEmbedder(f"There is no embedder '{settings.model}'; {hint}")
    if prefix == "sentence-transformers":
        from agentic_rag.models.embedders.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, settings)
    if prefix in _PROVIDERS:
        return _of_provider(prefix, model, settings)
    return _compatible(prefix, model, settings)


def _compatible(prefix: str, model: str, settings: "Embedding") -> Embedder:
    """A model behind OpenAI's `/embeddings`."""
    variables: tuple[str, ...] = ()
    own = settings.base_url
    if own:
        base = own
    elif prefix == "ollama":
        base = f"{ollama.base_address(os.environ)}/v1"
    else:
        base = os.environ.get("OPENAI_BASE_URL") or _OPENAI
        variables = ("OPENAI_API_KEY",)
    if prefix == "ollama":
        unknown = f"run `ollama pull {model}`"
    elif own:
        unknown = "check embedding.model and embedding.base_url (most end in /v1)"
    else:
        unknown = "check embedding.model"
    title = f"{prefix}:{model} at {shown(base)}"
    variable, key = _key(title, settings, variables)
    server = Server(title, variable, unknown)
    endpoint = OpenAIEndpoint(model, base, server, key, settings.dimensions)
    return RemoteEmbedder(f"{prefix}:{model}", endpoint, prompts_of(model, settings), settings)


def _of_provider(prefix: str, model: str, settings: "Embedding") -> Embedder:
    variables, build, extra = _PROVIDERS[prefix]
    base = settings.base_url
    title = f"{prefix}:{model} at {shown(base)}" if base else f"{prefix}:{model}"
    variable, key = _key(title, settings, variables)
    server = Server(title, variable, "check embedding.model")
    endpoint = providers.ProviderEndpoint(
        server, build(model, base), key, extra, settings.dimensions
    )
    # They put what their models want before a text by themselves.
    prompts = chosen(Prompts(), settings)
    return RemoteEmbedder(f"{prefix}:{model}", endpoint, prompts, settings)


def _key(
    title: str, settings: "Embedding", variables: tuple[str, ...]
) -> tuple[str, Callable[[], str]]:
    """The name of the variable with the key, and what reads it when a request is made.

    Without `api_key_env` it is the first of `variables` that is set; a server that is named by
    its address gets no key that was not meant for it.
    """
    asked = settings.api_key_env
    names = (asked,) if asked else variables

    def read() -> str:
        key = next((os.environ[name] for name in names if os.environ.get(name)), "").strip()
        if not key.isascii() or not key.isprintable():
            raise Denied(
                f"The key for the embedder {title} holds characters that no key has; correct the "
                f"environment variable {' or '.join(names)}."
            )
        if key or not names:
            return key
        if asked:
            raise Denied(
                f"embedding.api_key_env names {asked}, which is not set; set that environment "
                "variable, or correct the name."
            )
        raise Denied(
            f"The embedder {title} needs a key; put it into the environment variable {names[0]}, "
            "or name another one in embedding.api_key_env."
        )

    return next((name for name in names if os.environ.get(name)), names[0] if names else ""), read


def shown(base_url: str) -> str:
    """An address without the password in it. Raises UnknownEmbedder if it is none."""
    try:
        url = urlsplit(base_url)
        if url.scheme in ("http", "https") and url.hostname:
            return url._replace(netloc=url.netloc.rpartition("@")[2], query="").geturl()
    except ValueError:
        pass
    raise UnknownEmbedder(
        "embedding.base_url is no http address; write it like http://host:8000/v1."
    )
