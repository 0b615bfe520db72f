"""Does an answer hold the gold answer: contain-match, exact match, F1.

Normalisation is SQuAD's (Rajpurkar et al. 2016, arXiv 1606.05250, `evaluate-v1.1.py`): lower case,
no punctuation, no articles, white space folded. Contain-match is A-RAG's (arXiv 2602.03442): the
normalised gold inside the normalised prediction. What those leave open for other scripts: NFKC
first, all Unicode punctuation counts as such, and Han text is taken by character, without spaces.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentic_rag.strategies.marks import LONGEST, OPENING, read_bracket
from agentic_rag.text.language import HAN

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_HAN_SPACE = re.compile(rf"(?<=[{HAN}])\s+|\s+(?=[{HAN}])")
_TOKEN = re.compile(rf"[{HAN}]|[^\s{HAN}]+")
_ASCII_PUNCTUATION = frozenset(string.punctuation)


def answer_words(answer: "Answer") -> str:
    """What is measured of an answer: what the model wrote, without the marks of citations. Where no
    model wrote anything, the text shown."""
    return without_marks(answer.raw_text or answer.text)


def without_marks(text: str) -> str:
    """`text` without its citation marks: `[1]`, `[12-3]`, `【1】`."""
    kept: list[str] = []
    at = 0
    while at < len(text):
        if text[at] not in OPENING:
            kept.append(text[at])
            at += 1
            continue
        ahead = text[at : at + LONGEST + 2] + "\n"  # with a line's end it can be told
        bracket = read_bracket(ahead)
        length = bracket.length if bracket else 1
        if not (bracket and bracket.names):
            kept.append(text[at : at + length])
        at += length
    return "".join(kept)


def normalised(text: str) -> str:
    """`text` as it is compared."""
    folded = unicodedata.normalize("NFKC", text).lower()
    plain = "".join(char for char in folded if not _is_punctuation(char))
    return _HAN_SPACE.sub("", " ".join(_ARTICLES.sub(" ", plain).split()))


def contains(prediction: str, golds: Sequence[str]) -> bool:
    """Whether a normalised gold is a substring of the normalised prediction. One of which nothing
    is left, such as "The", is in none."""
    said = normalised(prediction)
    return any(gold and gold in said for gold in map(normalised, golds))


def exact_match(prediction: str, golds: Sequence[str]) -> bool:
    """Whether the normalised prediction is one of the normalised golds; an empty one never is."""
    said = normalised(prediction)
    return bool(prediction.strip()) and any(said == gold for gold in map(normalised, golds))


def f1(prediction: str, golds: Sequence[str]) -> float:
    """SQuAD's F1 of the two bags of tokens, 0 to 1, the best over the golds.

    Where nothing is left of one of them after normalisation it is 1 if both are empty, else 0 (as
    SQuAD 2.0 has it); an empty prediction has 0.
    """
    if not prediction.strip():
        return 0.0
    said = _TOKEN.findall(normalised(prediction))
    return max((_f1(said, _TOKEN.findall(normalised(gold))) for gold in golds), default=0.0)


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    shared = sum((Counter(said) & Counter(gold)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(said), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")
