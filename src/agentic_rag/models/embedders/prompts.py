"""What a model wants before a query and before a passage (see prompts.toml)."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic_rag.config import Embedding


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before a query and before a passage; "" for nothing."""

    query: str = ""
    passage: str = ""


def prompts_of(model: str, settings: "Embedding") -> Prompts:
    """The prompts of the model named `model` ("BAAI/bge-m3"), or those of `settings`."""
    return chosen(known_prompts(model), settings)


def chosen(own: Prompts, settings: "Embedding") -> Prompts:
    """A model's `own` prompts, each replaced where `settings` has one, be it empty."""
    query, passage = settings.query_prompt, settings.passage_prompt
    return Prompts(
        own.query if query is None else query, own.passage if passage is None else passage
    )


def known_prompts(model: str) -> Prompts:
    """The prompts that are known for a model's name, with the tag of Ollama or without."""
    name = model.lower().partition(":")[0].rstrip("/").rpartition("/")[2]
    return next((found for pattern, found in _table() if pattern.search(name)), Prompts())


@cache
def _table() -> list[tuple[re.Pattern[str], Prompts]]:
    text = files(__package__).joinpath("prompts.toml").read_text(encoding="utf-8")
    return [
        (re.compile(row["name"]), Prompts(row.get("query", ""), row.get("passage", "")))
        for row in tomllib.loads(text)["model"]
    ]
