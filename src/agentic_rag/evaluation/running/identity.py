"""What a run is of: results of two runs stand in one table only where all of this is the same."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, JsonValue

from agentic_rag.errors import AragError
from agentic_rag.evaluation.dataset import Dataset
from agentic_rag.evaluation.records import RunInfo, Variant

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import KnowledgeBase

# The settings that answers come of. Addresses, keys and time limits are not among them.
_STEERING = (
    "temperature",
    "max_output_tokens",
    "context_tokens",
    "search",
    "answer",
    "agent",
    "rerank",
    "workflow",
    "pipeline",
    "web_search",
)
_NOT_STEERING = frozenset(["base_url", "url", "api_key_env", "timeout", "streaming", "batch_size"])


class AnotherRun(AragError):
    """A run that was begun differently is in the folder."""


def run_info(
    dataset: Dataset,
    variants: Sequence[Variant],
    kb: "KnowledgeBase",
    model: str,
    settings: "Settings",
    *,
    limit: int | None,
    seed: int | None,
) -> RunInfo:
    """What a run that begins now is of; `model` is the chat model's name."""
    return RunInfo(
        dataset=str(dataset.directory.absolute()),
        dataset_hash=dataset.hash,
        chunks_hash=_hash(dataset.chunks) if dataset.chunks else "",
        knowledge_base=str(Path(kb.directory).absolute()),
        variants=tuple(variants),
        model=model,
        limit=limit,
        seed=seed,
        settings=_changed(settings),
        started=now(),
        program=_version(),
    )


def check_same(begun: RunInfo, wanted: RunInfo, run_dir: Path) -> None:
    """Raise `AnotherRun` where results of the two could not stand in one table."""
    difference = next(_differences(begun, wanted), None)
    if difference is not None:
        raise AnotherRun(
            f"The run in {run_dir} was begun with {difference}; go on with what it was begun with, "
            "or name another folder with -o."
        )


def now() -> str:
    """The time here, in ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _differences(begun: RunInfo, wanted: RunInfo) -> Iterator[str]:
    """What `begun` was begun with, a clause for each thing in which the two are not the same."""
    if begun.dataset_hash != wanted.dataset_hash:
        yield f"other questions than {wanted.dataset} now holds"
    if begun.chunks_hash != wanted.chunks_hash:
        yield f"other chunks than {wanted.dataset} now holds"
    for what, was, now in (
        ("knowledge base", begun.knowledge_base, wanted.knowledge_base),
        ("model", begun.model, wanted.model),
        ("limit", begun.limit, wanted.limit),
        ("seed", begun.seed, wanted.seed),
        ("variants", _names(begun), _names(wanted)),
    ):
        if was != now:
            yield f"the {what} {was}, not {now}"
    if begun.variants != wanted.variants:
        yield "other settings for the same variants"
    standing = dict(_steering(_defaults()))
    for name in sorted({*begun.settings, *wanted.settings}):
        first, second = (one.settings.get(name, standing.get(name)) for one in (begun, wanted))
        if first != second:
            yield f"the setting {name} {first}, not {second}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _names(info: RunInfo) -> str:
    return ", ".join(variant.name for variant in info.variants)


def _changed(settings: "Settings") -> dict[str, JsonValue]:
    """The steering settings, by their dotted names, that are not as they come."""
    standing = dict(_steering(_defaults()))
    return {name: value for name, value in _steering(settings) if value != standing[name]}


def _steering(settings: "Settings") -> Iterator[tuple[str, JsonValue]]:
    for name in _STEERING:
        value = getattr(settings, name)
        held: Mapping[str, JsonValue]
        if isinstance(value, BaseModel):
            held = value.model_dump(mode="json")
            yield from (
                (f"{name}.{field}", one)
                for field, one in held.items()
                if field not in _NOT_STEERING
            )
        else:
            yield name, value


def _defaults() -> "Settings":
    from agentic_rag.config import Settings

    return Settings.model_construct()


def _version() -> str:
    from agentic_rag import __version__

    return __version__
