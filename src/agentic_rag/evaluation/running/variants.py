"""The systems under test: strategies, the ablations of A-RAG's paper, and sweeps of limits."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, JsonValue, ValidationError

from agentic_rag.config import BadOverride, Effort
from agentic_rag.errors import AragError
from agentic_rag.evaluation.records import Variant
from agentic_rag.strategies.run import STRATEGIES

if TYPE_CHECKING:
    from agentic_rag.config import Settings

# arXiv 2602.03442, table of ablations; without `read_chunk` the searches show whole chunks.
ABLATIONS: Mapping[str, tuple[str, ...]] = {
    "agent-without-keyword": ("semantic_search", "read_chunk"),
    "agent-without-semantic": ("keyword_search", "read_chunk"),
    "agent-without-read": ("keyword_search", "semantic_search"),
    "agent-naive": ("semantic_search",),
}


class BadVariant(AragError):
    """There is no strategy or ablation of that name, or one is named twice."""


def variants_of(names: str) -> tuple[Variant, ...]:
    """`"agent,naive"` as variants; "all" is every strategy, "ablations" the agent with all of
    its ablations. Raises `BadVariant`."""
    wanted: list[str] = []
    for name in (part.strip() for part in names.split(",")):
        if name == "all":
            wanted += sorted(STRATEGIES)
        elif name == "ablations":
            wanted += ["agent", *ABLATIONS]
        elif name:
            wanted.append(name)
    if not wanted:
        raise BadVariant(f"No strategy is named; use {_known()}.")
    return tuple(_variant(name) for name in dict.fromkeys(wanted))


def _variant(name: str) -> Variant:
    if name in STRATEGIES:
        return Variant(name=name, strategy=name)
    if name in ABLATIONS:
        tools: JsonValue = list(ABLATIONS[name])
        return Variant(name=name, strategy="agent", overrides={"agent.tools": tools})
    raise BadVariant(f"There is no strategy {name!r}; use {_known()}.")


def _known() -> str:
    names = ", ".join([*sorted(STRATEGIES), *ABLATIONS])
    return f"one or more of: {names}; or all, or ablations"


def swept(max_steps: Sequence[int], efforts: Sequence[str]) -> tuple[Variant, ...]:
    """The agent with every pair of a step limit and a reasoning effort; an empty list leaves its
    setting alone. Raises `BadVariant`."""
    for effort in efforts:
        if effort not in get_args(Effort):
            known = ", ".join(get_args(Effort))
            raise BadVariant(f"There is no effort {effort!r}; use one of: {known}.")
    found = []
    for steps, effort in product(max_steps or [0], efforts or [""]):
        overrides: dict[str, JsonValue] = {}
        name = "agent"
        if steps:
            name, overrides["agent.max_steps"] = f"{name}-{steps}-steps", steps
        if effort:
            name, overrides["agent.effort"] = f"{name}-{effort}", effort
        found.append(Variant(name=name, strategy="agent", overrides=overrides))
    return tuple({variant.name: variant for variant in found}.values())


def settings_of(settings: "Settings", variant: Variant) -> "Settings":
    """`settings` with a variant's own. Raises `BadOverride` for one that cannot be used."""
    for name, value in variant.overrides.items():
        section, _, field = name.partition(".")
        held = getattr(settings, section, None)
        if not field or not isinstance(held, BaseModel) or field not in type(held).model_fields:
            raise BadOverride(name, "is no setting")
        try:
            changed = type(held).model_validate({**held.model_dump(), field: value})
        except ValidationError as error:
            raise BadOverride(name, f"cannot be {value!r}: {error.errors()[0]['msg']}") from None
        settings = settings.model_copy(update={section: changed})
    return settings
