"""Texts to the token numbers of XLM-RoBERTa: SentencePiece's unigram model (arXiv 1808.06226).

A text is cut into the pieces of the vocabulary whose probabilities multiply to the most. No piece
goes over a space, so that each word has its own best cut, and frequent words are cut once.
"""

import re
from functools import lru_cache

from agentic_rag.models.local_embedding.weights import Vocabulary

_SPACE = "\u2581"  # stands before a word in a piece
_SPACES = re.compile(" {2,}")
_WORD = re.compile(f"{_SPACE}[^{_SPACE}]*")
_WORDS_KEPT = 50_000
_LONGEST_KEPT = 32  # characters; what is longer, a clause of Chinese for instance, seldom returns
_UNKNOWN_BELOW = 10.0  # SentencePiece's penalty: so far below the least probable piece


class Tokenizer:
    """Cuts texts; may be called from any thread."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._numbers = {piece: number for number, piece in enumerate(vocabulary.pieces)}
        del self._numbers[vocabulary.pieces[vocabulary.unknown]]
        self._longest = max(map(len, vocabulary.pieces))
        self._unknown_score = min(vocabulary.scores) - _UNKNOWN_BELOW
        self._kept = lru_cache(_WORDS_KEPT)(self._cut)

    def __call__(self, text: str) -> list[int]:
        """The token numbers of a text, without those that mark its begin and end."""
        plain = _SPACES.sub(" ", text.translate(self._vocabulary.replacements))
        plain = plain if plain.startswith(" ") else " " + plain
        tokens: list[int] = []
        for word in _WORD.findall(plain.replace(" ", _SPACE)):
            tokens += self._kept(word) if len(word) <= _LONGEST_KEPT else self._cut(word)
        return tokens

    def _cut(self, word: str) -> list[int]:
        """The best pieces of a word by Viterbi's algorithm: best[i] is the score of the first i
        characters, last[i] the piece that ends there."""
        numbers, scores = self._numbers, self._vocabulary.scores
        best = [0.0, *[-1e30] * len(word)]
        last = [(0, 0)] * (len(word) + 1)  # number of the piece, where it starts
        for start in range(len(word)):
            before = best[start]
            for stop in range(start + 1, min(start + self._longest, len(word)) + 1):
                number = numbers.get(word[start:stop])
                if number is not None and before + scores[number] > best[stop]:
                    best[stop] = before + scores[number]
                    last[stop] = number, start
            if before + self._unknown_score > best[start + 1]:
                best[start + 1] = before + self._unknown_score
                last[start + 1] = self._vocabulary.unknown, start
        tokens = []
        stop = len(word)
        while stop:
            number, stop = last[stop]
            tokens.append(number)
        return tokens[::-1]
