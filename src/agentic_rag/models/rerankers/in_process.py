"""What rerankers that run a model in this process share: clean texts, order, words of failures."""

import math
from collections.abc import Iterable

from agentic_rag.models.reranker import Ranked


def clean(text: str) -> str:
    """`text` without what tokenizers refuse: NUL and halves of surrogate pairs."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def said(error: Exception) -> str:
    """The words of `error` on one line, at most 200 characters."""
    return (" ".join(str(error).split()) or type(error).__name__)[:200]


def best_first(scores: Iterable[tuple[int, float]]) -> list[Ranked]:
    """Index and score of each text in order, equal ones as they were given; a score that is no
    number leaves its text out."""
    ranked = [Ranked(index, score) for index, score in scores if math.isfinite(score)]
    return sorted(ranked, key=lambda one: (-one.score, one.index))
