"""A page's text cut to a number of tokens: the sentences that fit a query best, in reading order.

A sentence counts by the words it shares with the query, each the more the fewer sentences of the
page hold it, and a little by what its two neighbours count. What lies between chosen sentences is
marked by " … ".
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from agentic_rag.text.sentences import Span, limited_spans, sentence_spans
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens
from agentic_rag.text.words import words

GAP = " … "
_GAP_TOKENS = 2
_LONGEST = 1_000_000  # characters read of one page
_WINDOW = 20_000  # characters; looking for stops takes the square of a line's length
_PIECE_TOKENS = 200  # a longer sentence is cut, so that several fit
_NEIGHBOUR = 0.4  # of a neighbour's score


@dataclass(frozen=True, slots=True)
class Scored:
    """A text in pieces, best first by `order`; `fits`: it shares a word with the query."""

    text: str
    spans: Sequence[Span]
    tokens: Sequence[int]
    order: Sequence[int]
    fits: bool

    @property
    def size(self) -> int:
        """About how many o200k tokens the whole text has."""
        return sum(self.tokens)


def scored(text: str, query: str, otherwise: str = "") -> Scored:
    """`text` scored by the words of `query`; where it has none of these, by those of `otherwise`
    (a search engine's snippet in the page's own language, say)."""
    text = text[:_LONGEST].strip()
    pieces = limited_spans(text, _sentences(text), _PIECE_TOKENS)
    spans = [span for span, _ in pieces]
    held = [set(words(text[start:end])) for start, end in spans]
    scores = _scores(held, set(words(query)))
    fits = any(scores)
    if not fits:
        scores = _scores(held, set(words(otherwise)))
    return Scored(text, spans, [size for _, size in pieces], _order(scores), fits)


def within(scored: Scored, limit: int) -> str:
    """As much of the text as `limit` o200k tokens hold, the best of it; all of it if it fits."""
    if scored.size <= limit:
        return scored.text
    start, end = scored.spans[scored.order[0]]
    if scored.tokens[scored.order[0]] + _GAP_TOKENS > limit:
        return prefix_of_tokens(scored.text[start:end], limit).strip()
    chosen: set[int] = set()
    room = limit
    for index in scored.order:
        near = index - 1 in chosen or index + 1 in chosen
        cost = scored.tokens[index] + (0 if near else _GAP_TOKENS)
        if cost <= room:
            chosen.add(index)
            room -= cost
    worst_first = [index for index in reversed(scored.order) if index in chosen]
    while count_tokens(shown := _joined(scored, chosen)) > limit and worst_first:
        chosen.remove(worst_first.pop(0))  # tokens of a whole can be a few more than of its parts
    return shown


def fair_share(sizes: Sequence[int], most: int, total: int) -> int:
    """The highest limit, `most` at most, for which texts of these sizes take `total` together."""
    left, room = len(sizes), total
    for size in sorted(min(size, most) for size in sizes):
        if size * left > room:
            return room // left
        left, room = left - 1, room - size
    return most


def _sentences(text: str) -> Iterator[Span]:
    start = 0
    while start < len(text):
        end = min(start + _WINDOW, len(text))
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield from ((start + a, start + b) for a, b in sentence_spans(text[start:end]))
        start = end


def _scores(held: Sequence[set[str]], wanted: set[str]) -> list[float]:
    shared = [words & wanted for words in held]
    often = Counter(word for words in shared for word in words)
    worth = {word: log(1 + len(held) / count) for word, count in often.items()}
    return [sum(worth[word] for word in words) for words in shared]


def _order(scores: Sequence[float]) -> list[int]:
    """Indexes, best first; pieces that count nothing by how near they are to one that does."""
    around = [0.0, *scores, 0.0]
    smooth = [score + _NEIGHBOUR * (around[i] + around[i + 2]) for i, score in enumerate(scores)]
    away = [len(scores)] * len(scores)
    for indexes in (range(len(scores)), reversed(range(len(scores)))):
        steps = len(scores)
        for i in indexes:
            steps = 0 if smooth[i] else steps + 1
            away[i] = min(away[i], steps)
    return sorted(range(len(scores)), key=lambda i: (-smooth[i], away[i], i))


def _joined(scored: Scored, chosen: set[int]) -> str:
    parts: list[str] = []
    before: int | None = None
    for index in sorted(chosen):
        start, end = scored.spans[index]
        if before is not None and index == before + 1:
            parts[-1] += scored.text[start:end]
        else:
            parts.append(scored.text[start:end])
        before = index
    return GAP.join(part.strip() for part in parts)
