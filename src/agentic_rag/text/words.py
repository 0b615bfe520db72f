"""Words for BM25, the same for documents and queries.

NFKC and lower case first; then runs of Han by jieba's search mode (a long word and the words
in it), kana and Hangul as overlapping pairs, everything else by letters and digits. No stemmer
and no stop words: both lowered recall where they were measured.
"""

import re
import unicodedata
from collections.abc import Iterator

from agentic_rag.text.language import HAN, HANGUL, KANA

_RUN = re.compile(
    f"(?P<han>[{HAN}]+)|(?P<pairs>[{KANA}{HANGUL}]+)|(?P<word>[^\\W_{HAN}{KANA}{HANGUL}]+)"
)


def words(text: str) -> list[str]:
    """The words of `text` in order, none of them empty or holding white space."""
    return list(_words(text))


def _words(text: str) -> Iterator[str]:
    for run in _RUN.finditer(unicodedata.normalize("NFKC", text).lower()):
        piece = run.group()
        if run.lastgroup == "han":
            import rjieba  # reads its dictionary, 0.1 s, which text without Han need not wait for

            yield from rjieba.cut_for_search(piece)
        elif run.lastgroup == "pairs" and len(piece) > 1:
            yield from (piece[i : i + 2] for i in range(len(piece) - 1))
        else:
            yield piece
