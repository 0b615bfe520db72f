"""Whether there is anything to search: documents with text, and some that pass the filter."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from agentic_rag.strategies.phrases import Phrase
    from agentic_rag.strategies.question import Question


def nothing_to_search(question: "Question") -> "Phrase | None":
    """Why no search of `question` can find anything; None where one may. Blocks; raises BadQuery
    for a filter that is none."""
    snapshot = question.snapshot
    filled = [document for document in snapshot.documents.values() if document.chunks]
    if not filled:
        return "empty_knowledge_base"
    allowed = snapshot.allowed(question.where)
    if allowed is None:
        return None
    keys = [(one.number << 32) | np.arange(one.chunks + 1, dtype=np.int64) for one in filled]
    return None if allowed(np.concatenate(keys)).any() else "nothing_matches_filter"
