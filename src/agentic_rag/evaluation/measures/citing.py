"""Do the sources shown with an answer support it: citation precision and recall.

As in ALCE (Gao et al. 2023, arXiv 2305.14627), with the dataset's supporting ids in the place of an
entailment model. All sources that a reader sees count, whoever put them there.
"""

from collections.abc import Sequence

from agentic_rag.evaluation.measures.gold import named
from agentic_rag.strategies.answer import Citation


def citation_precision(citations: Sequence[Citation], golds: Sequence[str]) -> float | None:
    """Share of the citations that are a gold one, 0 to 1; None where nothing is cited or no gold
    is known."""
    if not citations or not golds:
        return None
    return sum(1 for citation in citations if named(citation, golds)) / len(citations)


def citation_recall(citations: Sequence[Citation], golds: Sequence[str]) -> float | None:
    """Share of the gold ids that are cited, 0 to 1; None where none is known."""
    if not golds:
        return None
    return len({gold for citation in citations for gold in named(citation, golds)}) / len(golds)
