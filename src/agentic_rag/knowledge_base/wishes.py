"""What the caller of an indexing run asks for, and the words in which it is told what happens."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentic_rag.knowledge_base.records import Progress
from agentic_rag.text.document import Scalar

Kind = Literal[
    "added", "updated", "unchanged", "removed", "empty", "failed", "unsupported", "warnings"
]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller of a run asked for."""

    sync: bool = False
    retry_failed: bool = False
    exclude: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    on_progress: Callable[[Progress], None] = lambda progress: None
    stop: threading.Event = field(default_factory=threading.Event)
