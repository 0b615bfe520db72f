"""BM25-Extract: the sentences of a text that a question's words choose (arXiv 2410.10315).

Sentences are scored by BM25 against the question, the best are kept until the rate is reached, and
they stay in their order.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag.text.sentences import sentence_spans
from agentic_rag.text.tokens import count_tokens
from agentic_rag.text.words import words


def bm25_extract(text: str, question: str, rate: float) -> str:
    """The part of `text` that `question` asks for: whole sentences, together about `rate` (above 0,
    at most 1) of its o200k tokens, at least one. What separates kept sentences is a blank or a line
    break. Raises ValueError for another rate."""
    if not 0 < rate <= 1:
        raise ValueError(f"the rate is {rate}; it must be above 0 and at most 1")
    spans = sentence_spans(text)
    if rate >= 1 or len(spans) < 2:
        return text
    scores = _scores([words(text[start:end]) for start, end in spans], words(question))
    sizes = [count_tokens(text[start:end]) for start, end in spans]
    budget = rate * sum(sizes)
    kept: list[int] = []
    spent = 0
    # Ties are taken in reading order, so that a text without any of the words keeps its beginning.
    for index in np.argsort(-scores, kind="stable").tolist():
        if kept and spent + sizes[index] > budget:
            continue
        kept.append(index)
        spent += sizes[index]
    return "".join(text[start:end] for start, end in (spans[i] for i in sorted(kept)))


def _scores(sentences: Sequence[Sequence[str]], query: Sequence[str]) -> NDArray[np.float64]:
    import bm25s

    known = {word for sentence in sentences for word in sentence}
    asked = [word for word in dict.fromkeys(query) if word in known]
    if not asked:
        return np.zeros(len(sentences))
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index([list(sentence) for sentence in sentences], show_progress=False)
    return np.asarray(index.get_scores(asked), dtype=np.float64)
