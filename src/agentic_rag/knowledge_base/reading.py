"""How a run of indexing reads its sources: with which settings, below which path, and in what words
a failure is told."""

from collections.abc import Callable
from typing import Any

from agentic_rag.config import Settings
from agentic_rag.documents import Reading, Source
from agentic_rag.documents.figure_rules import read_rules
from agentic_rag.documents.image_description import describer
from agentic_rag.documents.reading import ImageCounts
from agentic_rag.errors import AragError


def reading_for(
    settings: Settings,
    on_page: Callable[[int, int], None],
    stopped: Callable[[], bool],
    on_images: Callable[[ImageCounts], None],
) -> Reading:
    """The reading that settings ask for. Raises BadRules, ModelUnavailable and DescriptionFailed,
    before anything is read."""
    images = settings.images
    describe = None
    if images.read:
        read_rules(images.rules)
        describe = describer(settings)
    return Reading(settings.ocr, on_page, stopped, images, on_images, describe=describe)


def knowledge_path(source: Source, known: dict[str, Any] | None) -> tuple[str, ...]:
    """The knowledge path of a source; a file named by itself keeps the one it was met with."""
    return tuple(known["folders"]) if source.explicit and known else source.folders


def failure_reason(error: Exception) -> str:
    """Why a document failed, as a clause."""
    if isinstance(error, AragError):
        return str(error)
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror or error})"
    return f"it cannot be parsed ({type(error).__name__}: {error})"
