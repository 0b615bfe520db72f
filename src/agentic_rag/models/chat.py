"""Which chat model answers: what the `model` setting says, else the best one at hand.

In order: the setting; a key in the environment (OpenAI, Anthropic, Gemini, DeepSeek); Ollama on
this machine; the embedded SmolLM2 if it has been fetched; none, where the best passages are the
answer. The choice comes with a sentence that says why. Keys are read when a model is built and
are kept nowhere else.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentic_rag.models import connect, cures, embedded, fetch, ollama
from agentic_rag.models.connect import Build, Connect, ModelUnavailable
from agentic_rag.models.cures import Cures

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings

__all__ = ["ChatModel", "ModelUnavailable", "given_model", "resolve_chat_model", "with_context"]


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A chat model that has been chosen, not yet connected.

    `name` as the `model` setting would have it ("none" for no model). `connect()` gives the
    Pydantic AI model for the length of a question and closes its connections after. `cost` is
    0.0 where the model runs on this machine and None where the price list decides.
    `passage_tokens` (o200k) and `most_passages` cap what a prompt may hold, `max_output_tokens`
    (the model's own) the reply, and `context_tokens` (about) all of a request, where that is
    known to be little; `more_context` says how it could be more. `tools`: it is taken to be able
    to call tools. `hint`: what would give a better model. `cures`: what to do when it fails.
    """

    name: str
    why: str
    connect: Connect | None = None
    demonstration: bool = False
    passage_tokens: int | None = None
    most_passages: int | None = None
    max_output_tokens: int | None = None
    cost: float | None = None
    hint: str = ""
    cures: Cures = Cures()  # noqa: RUF009  frozen
    tools: bool = False
    context_tokens: int | None = None
    more_context: str = ""

    @property
    def unreachable(self) -> str:
        """What to do when nothing answers, as a clause."""
        return self.cures.unreachable


@dataclass(frozen=True, slots=True)
class _Hosted:
    prefix: str
    keys: tuple[str, ...]
    model: str  # when only a key decides: the provider's cheap and quick one
    title: str
    base_url: str = ""  # an OpenAI-compatible endpoint, where that spares another SDK


_HOSTED = (
    _Hosted("openai", ("OPENAI_API_KEY",), "gpt-6-luna", "OpenAI"),
    _Hosted("anthropic", ("ANTHROPIC_API_KEY",), "claude-haiku-5-5", "Anthropic"),
    _Hosted(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-3.8-flash",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai/",
    ),
    _Hosted(
        "deepseek", ("DEEPSEEK_API_KEY",), "deepseek-flash", "DeepSeek", "https://api.deepseek.com"
    ),
)
_KEY_OF = {hosted.prefix: hosted for hosted in _HOSTED} | {
    "openai-chat": _HOSTED[0],
    "openai-responses": _HOSTED[0],
}

_PROVIDERS = (*_KEY_OF, "local", "ollama")
# Providers that are not asked at `base_url`.
_ELSEWHERE = frozenset(["ollama", "gemini", "deepseek"])

_EXAMPLE = {f"{prefix}:": hosted.model for prefix, hosted in _KEY_OF.items()}

# Of a context, what passages may fill: the rest is for instructions, the question and the answer.
_PASSAGE_SHARE = 0.6

_DEMONSTRATION_PASSAGES = 3  # with more it mixes them up
_DEMONSTRATION_TOKENS = 400  # o200k; it reads about 150 a second on one core
_DEMONSTRATION_CONTEXT = 4096  # its own tokens, which Chinese text needs three times as many of
_DEMONSTRATION_OUTPUT = 80
_NO_KEY = "none"  # the SDKs want one, a server without keys does not
_FILE_OVERHEAD = 1024  # tokens for instructions and question


def resolve_chat_model(settings: "Settings", env: Mapping[str, str] = os.environ) -> ChatModel:
    """The chat model that `settings` and `env` come to.

    Loads no model and, but for asking Ollama on this machine, uses no network. Raises
    `ModelUnavailable` or `ModelFileUnusable` with one sentence.
    """
    return with_context(_resolved(settings, env), settings)


def with_context(chat: ChatModel, settings: "Settings") -> ChatModel:
    """`chat` within `context_tokens`, where that is set."""
    if settings.context_tokens is None or chat.connect is None or chat.demonstration:
        return chat
    return replace(
        chat,
        context_tokens=settings.context_tokens,
        passage_tokens=int(settings.context_tokens * _PASSAGE_SHARE),
        more_context="The setting `context_tokens` says so; raise it if the model takes more.",
    )


def _resolved(settings: "Settings", env: Mapping[str, str]) -> ChatModel:
    name = settings.model.strip()
    if name.endswith(":"):
        example = (
            "local:/path/to.gguf" if name == "local:" else f"{name}{_EXAMPLE.get(name, 'NAME')}"
        )
        raise ModelUnavailable(f"{name!r} names no model; write for example {example!r}.")
    if meant := connect.mistyped(name, _PROVIDERS):
        own = f"; a model of that name on your own server is openai:{name}"
        raise ModelUnavailable(
            f"There is no provider {name.partition(':')[0]!r}; did you mean {meant}"
            f"{own if settings.base_url else ''}?"
        )
    if name == "none":
        return _none('The setting `model` is "none": the best passages are the answer.')
    if name == "local":
        return _embedded_asked_for(env)
    if name.startswith("local:"):
        return _file(Path(name.removeprefix("local:")), settings)
    if settings.base_url:
        return _compatible(name, settings, env)
    if name:
        return _named(name, settings, env)
    return _at_hand(env)


def given_model(model: "Model") -> ChatModel:
    """A Pydantic AI model that the caller made."""

    @asynccontextmanager
    async def connect() -> AsyncIterator["Model"]:
        async with model:
            yield model

    name = f"{model.system}:{model.model_name}"
    tools = bool(model.profile.get("supports_tools", True))
    return ChatModel(name, "The caller gave this model.", connect, tools=tools)


def _at_hand(env: Mapping[str, str]) -> ChatModel:
    passed_over: list[
        str
    ] = []  # a key whose package is missing must not keep the rest from working
    for hosted in _HOSTED:
        key = next((key for key in hosted.keys if env.get(key)), None)
        if key is None:
            continue
        why = f"{key} is set, so {hosted.title}'s {hosted.model} answers; `model` takes another."
        try:
            return _built(
                f"{hosted.prefix}:{hosted.model}",
                why,
                _builder(hosted, hosted.model, env[key], env),
            )
        except ModelUnavailable as error:
            passed_over.append(f"{key} is set, but: {error}")
    local = _on_this_machine(env)
    return replace(local, hint=" ".join(filter(None, [*passed_over, local.hint])))


def _on_this_machine(env: Mapping[str, str]) -> ChatModel:
    base = ollama.base_address(env)
    found = ollama.chat_models(base)
    if found:
        why = f"Ollama runs on this machine, so its {found[0]} answers; `model` takes another."
        return _ollama(found[0], base, why)
    file = fetch.embedded_file(env)
    if file:
        why = (
            "No key and no Ollama were found, so the embedded SmolLM2 answers: "
            "a demonstration model; the setting `model` takes a real one."
        )
        return _embedded(file, why)
    return _none(
        "No key, no Ollama and no embedded model were found: the best passages are the answer.",
        hint="`arag models fetch` brings a small model that runs here; "
        "the setting `model` takes a hosted one.",
    )


def _none(why: str, hint: str = "") -> ChatModel:
    return ChatModel("none", why, cost=0.0, hint=hint)


def _named(name: str, settings: "Settings", env: Mapping[str, str]) -> ChatModel:
    prefix, _, model = name.partition(":")
    why = f'The setting `model` is "{name}".'
    if prefix == "ollama" and model:
        return _ollama(model, ollama.base_address(env), why)
    hosted = _KEY_OF.get(prefix)
    if hosted and model:
        key = _key(settings, env, hosted.keys)
        return _built(name, why, _builder(hosted, model, key, env, prefix))
    return _built(name, why, lambda: connect.inferred(name, _asked_key(settings, env)))


def _compatible(name: str, settings: "Settings", env: Mapping[str, str]) -> ChatModel:
    base = settings.base_url
    shown = _shown(base)
    prefix, _, rest = name.partition(":")
    plain = rest if prefix in ("openai", "openai-chat") and rest else name
    if not plain:
        raise ModelUnavailable(
            f"`base_url` is {shown} but `model` is empty; set `model` to a name that server knows."
        )
    if prefix in _ELSEWHERE and rest:
        raise ModelUnavailable(
            f"`model` is {name!r} and `base_url` is {shown}, which are two places; unset one of "
            f"them, or write openai:{name} if the server there knows a model of that name."
        )
    key = _asked_key(settings, env) or _NO_KEY
    why = f'The setting `model` is "{name}", at {shown}.'
    if prefix == "anthropic" and rest:
        made = _built(name, why, lambda: connect.anthropic(rest, key, base))
    else:
        made = _built(
            f"openai:{plain}", why, lambda: connect.openai_compatible("openai", plain, base, key)
        )
    return replace(made, cures=cures.at_base_url(shown, keyless=key == _NO_KEY))


def _shown(base_url: str) -> str:
    """`base_url` without a password in it; raises `ModelUnavailable` if it is none."""
    try:
        url = urlsplit(base_url)
        if url.scheme in ("http", "https") and url.hostname:
            return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    except ValueError:
        pass
    raise ModelUnavailable(
        f"`base_url` is {base_url!r}, which is no http address; write it like http://host:8000/v1."
    )


def _key(settings: "Settings", env: Mapping[str, str], names: tuple[str, ...]) -> str:
    asked = _asked_key(settings, env)
    key = asked or next((env[name] for name in names if env.get(name)), "")
    if not key:
        raise ModelUnavailable(
            f"The model {settings.model} needs a key; put it in the environment variable "
            f"{names[0]}, or name another one in `api_key_env`."
        )
    return key


def _asked_key(settings: "Settings", env: Mapping[str, str]) -> str:
    if not settings.api_key_env:
        return ""
    key = env.get(settings.api_key_env, "")
    if not key:
        raise ModelUnavailable(
            f"`api_key_env` names {settings.api_key_env}, which is not set; "
            "set it, or correct the name."
        )
    return key


def _builder(
    hosted: _Hosted, model: str, key: str, env: Mapping[str, str], prefix: str = ""
) -> Build:
    if hosted.prefix == "gemini":
        return lambda: connect.openai_compatible("google", model, hosted.base_url, key)
    if hosted.prefix == "openai" and env.get("OPENAI_BASE_URL") and prefix != "openai-responses":
        return lambda: connect.openai_compatible("openai", model, env["OPENAI_BASE_URL"], key)
    return lambda: connect.inferred(f"{prefix or hosted.prefix}:{model}", key)


def _built(name: str, why: str, build: Build) -> ChatModel:
    return ChatModel(name, why, connect.connector(name, build), tools=True)


def _ollama(model: str, base: str, why: str) -> ChatModel:
    made = _built(f"ollama:{model}", why, lambda: connect.ollama(model, base))
    known = ollama.described(base, model)
    most = f"; this model takes up to {known.most_context:,}" if known.most_context else ""
    return replace(
        made,
        passage_tokens=int(known.context_tokens * _PASSAGE_SHARE),
        cost=0.0,
        cures=cures.of_ollama(base),
        tools=known.tools,
        context_tokens=known.context_tokens,
        more_context=(
            "For more, start Ollama with OLLAMA_CONTEXT_LENGTH=32768, say, and set "
            f"`context_tokens` to the same{most}."
        ),
    )


def _embedded_asked_for(env: Mapping[str, str]) -> ChatModel:
    file = fetch.embedded_file(env)
    if file is None:
        raise ModelUnavailable(
            "The embedded model is not on this machine yet; run `arag models fetch`."
        )
    return _embedded(
        file, 'The setting `model` is "local": the embedded SmolLM2, a demonstration model.'
    )


def _embedded(file: Path, why: str) -> ChatModel:
    return ChatModel(
        "local",
        why,
        connect.in_process(file, _DEMONSTRATION_CONTEXT),
        demonstration=True,
        passage_tokens=_DEMONSTRATION_TOKENS,
        most_passages=_DEMONSTRATION_PASSAGES,
        max_output_tokens=_DEMONSTRATION_OUTPUT,
        cost=0.0,
        cures=cures.IN_PROCESS,
    )


def _file(path: Path, settings: "Settings") -> ChatModel:
    path = embedded.check(path)
    if path.name == fetch.MODEL_FILE:
        return _embedded(path, f'The setting `model` is "local:{path}", a demonstration model.')
    # A token of another vocabulary holds less: half as many again leaves room.
    room = settings.context_tokens or (
        settings.answer.passage_tokens * 3 // 2 + settings.max_output_tokens + _FILE_OVERHEAD
    )
    why = f'The setting `model` is "local:{path}"; it runs in this process.'
    return ChatModel(
        f"local:{path.name}",
        why,
        connect.in_process(path, room),
        cost=0.0,
        cures=cures.IN_PROCESS,
    )
