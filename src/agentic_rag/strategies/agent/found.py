"""Hits at the end of the events of a search of ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Hit


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found, best first."""

    hits: "Sequence[Hit]"
