"""Rerankers: a model that reads query and text together and puts texts in order.

`rerank.model` names one: a cross-encoder of sentence-transformers or a layer-wise reranker in this
process, any `/rerank` endpoint, or the chat model itself.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from agentic_rag.errors import AragError
from agentic_rag.models.connect import mistyped

if TYPE_CHECKING:
    from agentic_rag.config import Rerank, Settings
    from agentic_rag.models.chat import ChatModel

_FORMS = "'sentence-transformers:NAME_OR_PATH', 'layerwise:NAME_OR_PATH', 'http:MODEL' or 'chat'"


class UnknownReranker(AragError):
    """The settings of `[rerank]` name nothing that can be used."""


class RerankFailed(AragError):
    """A reranker could not do its work; the message says why."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The text at `index` of those given, and its score: greater is better, on no common scale."""

    index: int
    score: float


class Reranker(Protocol):
    """What retrieval asks of a reranker."""

    @property
    def name(self) -> str:
        """Names the model, as `rerank.model` would."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        """The texts, best first, each at most once; some may be left out. No texts are [] without
        any call. Raises RerankFailed."""


# Makes the reranker that asks the chat model; it is given from above, where prompts are.
Listwise = Callable[["ChatModel", "Settings"], Reranker]


def resolve_reranker(
    settings: "Settings",
    chat: "ChatModel | None",
    env: Mapping[str, str] = os.environ,
    listwise: Listwise | None = None,
) -> Reranker | None:
    """The reranker that `settings.rerank` names; None where it names none, or the chat model
    while there is none to ask.

    Loads and asks nothing before it is used. Raises UnknownReranker.
    """
    section = settings.rerank
    name = section.model.strip()
    prefix, colon, model = name.partition(":")
    if not name:
        return None
    if name == "chat":
        return listwise(chat, settings) if listwise and chat else None
    if prefix == "http" and colon:
        from agentic_rag.models.rerankers.http import http_reranker

        return http_reranker(model.strip(), section, env)
    if prefix == "sentence-transformers" and model.strip():
        return _in_process(model.strip(), section)
    if prefix == "layerwise" and model.strip():
        from agentic_rag.models.rerankers.layerwise import layerwise_reranker

        return layerwise_reranker(model.strip(), section)
    meant = mistyped(name, ("sentence-transformers", "layerwise", "http", "chat"))
    hint = f"did you mean '{meant}'?" if meant else f"set rerank.model to {_FORMS}."
    raise UnknownReranker(f"There is no reranker '{name}'; {hint}")


@cache
def _in_process(model: str, section: "Rerank") -> Reranker:
    """One a process, so that the model is loaded once."""
    from agentic_rag.models.rerankers.sentence_transformers import SentenceTransformersReranker

    return SentenceTransformersReranker(model, section)
