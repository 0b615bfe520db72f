"""Exact keyword search over all chunks: A-RAG's Score(c, K) = sum of count(k, c) x len(k), eq. 1.

The lowered texts are in memory. Which chunks contain a keyword is one scan by polars. Counting
every occurrence of a frequent keyword would take ten times as long, so chunks are counted in
the order of an upper bound, and counting ends when no bound left can reach the k-th score. The
bound: an occurrence of k needs each of k's byte trigrams (or pair, or byte), so no chunk holds k
more often than its rarest one. Their counts are kept in a count-min sketch a chunk (Cormode and
Muthukrishnan 2005): two rows of 256 buckets, where collisions only raise a count.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentic_rag.knowledge_base.filters import Allowed
from agentic_rag.knowledge_base.fragments import Keys, TextPiece
from agentic_rag.knowledge_base.records import BadQuery
from agentic_rag.text.language import HAN, HANGUL, KANA

if TYPE_CHECKING:
    import polars as pl

Mask = NDArray[np.bool_]

_BUCKET_BITS = 8
_BUCKETS = 1 << _BUCKET_BITS
_HASHES = (2654435761, 2246822519)  # odd multipliers, one a row of the sketch
_LONGEST_GRAM = 3  # bytes
_UNBOUNDED = 255  # a bucket holds one byte; full, it says nothing
_BLOCK = 256  # chunks counted between two looks at the bound
_ORDERED = 2048  # candidates put in order before all of them are
_FEW = 4096  # so few candidates are counted without building the bounds
_ROWS_AT_ONCE = 2000
# Scripts that part words by blanks: a letter, digit or underscore that is not CJK.
_WORD_CHARACTER = f"[^\\W{HAN}{KANA}{HANGUL}]"
# The same for polars, whose \w also takes combining marks.
_NO_WORD_CHARACTER = r"[[^\p{L}\p{N}_]\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """Keys and scores of the best chunks in order, and how many chunks contain each keyword."""

    keys: list[int]
    scores: list[float]
    counts: dict[str, int]


@dataclass(slots=True)
class KeywordIndex:
    """The lowered texts of one snapshot, and the bounds, made when first wanted."""

    pieces: Sequence[TextPiece]
    keys: Keys = field(init=False)
    texts: "pl.Series" = field(init=False)
    _bounds: dict[int, NDArray[np.uint8]] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.keys = np.concatenate([np.empty(0, np.int64), *(p.keys for p in self.pieces)])
        texts = [p.lowered for p in self.pieces]
        # Chunked, not copied: the pieces are shared with other snapshots.
        import polars as pl

        self.texts = pl.concat(texts, rechunk=False) if texts else pl.Series([], dtype=pl.String)

    def search(
        self,
        keywords: Sequence[str],
        top_k: int,
        *,
        whole_words: bool = False,
        require_all: bool = False,
        allowed: Allowed | None = None,
    ) -> KeywordMatches:
        """The `top_k` best chunks for `keywords`; ties in reading order.

        Raises BadQuery for no keyword or an empty one. `allowed` says which chunk keys may be
        returned; counts are over all chunks.
        """
        if not keywords:
            raise BadQuery("No keyword was given; give one or more words to look for.")
        if any(not keyword.strip() for keyword in keywords):
            raise BadQuery("A keyword is empty; leave it out or give a word to look for.")
        lowered = [keyword.lower() for keyword in keywords]
        contains = {k: self._contains(k, whole_words) for k in dict.fromkeys(lowered)}
        counts = {k: int(contains[k.lower()].sum()) for k in keywords}
        combine = np.logical_and if require_all else np.logical_or
        candidates = combine.reduce([contains[k] for k in lowered])
        if allowed is not None:
            candidates &= allowed(self.keys)
        weighted = Counter[str]()
        for keyword, low in zip(keywords, lowered, strict=True):
            weighted[low] += len(keyword)
        rows = np.flatnonzero(candidates)
        best = self._best(rows, weighted, top_k, _counter(whole_words))
        return KeywordMatches(
            [int(self.keys[row]) for row, _ in best], [score for _, score in best], counts
        )

    def _contains(self, keyword: str, whole_words: bool) -> Mask:
        found = self.texts.str.contains(keyword, literal=True)
        mask = np.array(found.to_numpy(), dtype=np.bool_)
        if whole_words and mask.any():
            rows = np.flatnonzero(mask)
            pattern = _word_pattern_for_polars(keyword)
            mask[rows] = self.texts.gather(rows).str.contains(pattern).to_numpy()
        return mask

    def _best(
        self,
        rows: NDArray[np.int64],
        weighted: Counter[str],
        top_k: int,
        count: Callable[[str, str], int],
    ) -> list[tuple[int, float]]:
        bounds = self._bound(rows, weighted)
        best: list[tuple[float, int, int]] = []  # (-score, key, row), ascending
        for block in _by_bound(bounds):
            if len(best) == top_k:
                # A row that can only draw level counts if it comes first in reading order.
                least, last = -best[-1][0], best[-1][1]
                if bounds[block[0]] < least:
                    break
                level = bounds[block] == least
                block = block[(bounds[block] > least) | (level & (self.keys[rows[block]] < last))]
            block_rows = rows[block]
            for row, text in zip(block_rows, self.texts.gather(block_rows), strict=True):
                score = sum(weight * count(text, k) for k, weight in weighted.items())
                if score:
                    best.append((-float(score), int(self.keys[row]), int(row)))
            best = sorted(best)[:top_k]
        return [(row, -score) for score, _, row in best]

    def _bound(self, rows: NDArray[np.int64], weighted: Counter[str]) -> NDArray[np.int64]:
        """An upper bound of each row's score."""
        total = np.zeros(len(rows), dtype=np.int64)
        if len(rows) <= _FEW:
            return total + np.iinfo(np.int64).max // 2
        for keyword, weight in weighted.items():
            data = np.frombuffer(keyword.encode(), dtype=np.uint8)
            width = min(_LONGEST_GRAM, len(data))
            table = self._ngram_counts(width)
            most = np.full(len(rows), np.iinfo(np.int32).max, dtype=np.int64)
            for sketch_row in range(len(_HASHES)):
                for bucket, times in Counter(_buckets(data, width, sketch_row).tolist()).items():
                    held = table[bucket][rows].astype(np.int64)
                    held[held == _UNBOUNDED] = np.iinfo(np.int32).max
                    most = np.minimum(most, held // times)
            total += most * weight
        return total

    def _ngram_counts(self, width: int) -> NDArray[np.uint8]:
        with self._lock:
            if width not in self._bounds:
                empty = np.empty((len(_HASHES) * _BUCKETS, 0), np.uint8)
                parts = [_ngram_counts(piece, width) for piece in self.pieces]
                self._bounds[width] = np.concatenate([empty, *parts], axis=1)
            return self._bounds[width]


def _by_bound(bounds: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Positions by falling bound, a block at a time; a full sort only if the first blocks fall
    short, which they hardly ever do."""
    ordered = min(_ORDERED, len(bounds))
    split = np.argpartition(-bounds, ordered - 1) if ordered else np.empty(0, np.int64)
    for part in (split[:ordered], split[ordered:]):
        order = part[np.argsort(-bounds[part], kind="stable")] if len(part) else part
        for start in range(0, len(order), _BLOCK):
            yield order[start : start + _BLOCK]


def _buckets(data: NDArray[np.uint8], width: int, sketch_row: int) -> NDArray[np.int64]:
    """The bucket of each n-gram of bytes in a row of the sketch (multiplicative hash)."""
    values = np.zeros(max(0, len(data) - width + 1), dtype=np.uint32)
    for offset in range(width):
        values = (values << np.uint32(8)) | data[offset : offset + len(values)]
    hashed = (values * np.uint32(_HASHES[sketch_row])) >> np.uint32(32 - _BUCKET_BITS)
    return hashed.astype(np.int64) + sketch_row * _BUCKETS


def _ngram_counts(piece: TextPiece, width: int) -> NDArray[np.uint8]:
    """How often each bucket's byte n-grams stand in each text, (buckets, texts), at most 255.

    Kept with the piece, so that a new version counts its new texts only.
    """
    if width in piece.ngram_counts:
        return piece.ngram_counts[width]
    texts = piece.lowered
    size = len(_HASHES) * _BUCKETS
    table = np.zeros((size, len(texts)), dtype=np.uint8)
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        encoded = [text.encode() for text in texts[start : start + _ROWS_AT_ONCE]]
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        rows = np.repeat(np.arange(len(encoded), dtype=np.int64), [len(e) for e in encoded])
        counts = np.zeros(len(encoded) * size, dtype=np.int64)
        for sketch_row in range(len(_HASHES)):
            # One that lies over two texts counts for the first, which can only raise its bound.
            buckets = _buckets(data, width, sketch_row)
            counts += np.bincount(rows[: len(buckets)] * size + buckets, minlength=len(counts))
        table[:, start : start + len(encoded)] = np.minimum(
            counts.reshape(len(encoded), size), _UNBOUNDED
        ).T
    piece.ngram_counts[width] = table
    return table


def _counter(whole_words: bool) -> Callable[[str, str], int]:
    if not whole_words:
        return str.count
    return lambda text, keyword: len(word_pattern(keyword).findall(text))


def word_pattern(keyword: str) -> re.Pattern[str]:
    """Matches a lowered keyword where no letter or digit of its script goes on beside it."""
    before = f"(?<!{_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, keyword) else ""
    after = f"(?!{_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, keyword[-1]) else ""
    return re.compile(before + re.escape(keyword) + after)


def _word_pattern_for_polars(keyword: str) -> str:
    # The same by a regular expression without look-around, which is enough to say whether.
    before = f"(?:^|{_NO_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, keyword) else ""
    after = f"(?:$|{_NO_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, keyword[-1]) else ""
    return before + re.escape(keyword) + after


def split_keywords(query: str) -> list[str]:
    """The keywords of a query line: words, and phrases kept whole by quotes of any kind."""
    found = re.findall(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|(\S+)', query)
    return [next(part for part in parts if part) for parts in found]
