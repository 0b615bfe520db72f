"""The embedded embedder: unit vectors, any text, the same vector however it is asked."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from agentic_rag.models.embedder import LocalEmbedder, UnknownEmbedder, resolve_embedder

TEXTS = ["The fee is twelve.", "敏感个人信息", "a\0b", "\ud800 lone", "", "word " * 2000]


def test_any_text_gets_a_finite_unit_vector() -> None:
    vectors = LocalEmbedder().embed_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-4)


def test_a_vector_does_not_depend_on_the_batch_or_the_thread() -> None:
    embedder = resolve_embedder("local")
    together = embedder.embed_passages(TEXTS[:3])
    with ThreadPoolExecutor(3) as pool:
        alone = list(pool.map(lambda text: embedder.embed_passages([text])[0], TEXTS[:3]))
    assert np.array(alone) == pytest.approx(together, abs=1e-6)


def test_a_translation_is_nearer_than_another_topic() -> None:
    embedder = resolve_embedder("local")
    query = embedder.embed_query("泄露个人信息会被罚款吗")
    near, far = embedder.embed_passages(
        ["Leaking personal data is punished with a fine.", "Boil the potatoes for twenty minutes."]
    )
    assert query @ near > query @ far + 0.03


def test_the_text_after_a_nul_counts() -> None:
    one, other = LocalEmbedder().embed_passages(["a\0 cat", "a\0 tax law"])
    assert one @ other < 0.999


def test_an_unknown_embedder_is_named() -> None:
    with pytest.raises(UnknownEmbedder, match="'word2vec'"):
        resolve_embedder("word2vec")


def test_a_file_in_the_working_folder_is_never_taken_for_a_part_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("-", "sae.bin", "none"):
        (tmp_path / name).write_bytes(b"Words.")
    monkeypatch.chdir(tmp_path)

    LocalEmbedder().embed_query("word")

    assert capfd.readouterr() == ("", "")


def test_of_a_long_query_the_beginning_counts_and_no_more_is_worked_through() -> None:
    embedder = resolve_embedder("local")
    start = "泵站有几台水泵？" * 90

    whole = embedder.embed_query(start + "别的" * 5000)

    np.testing.assert_array_equal(whole, embedder.embed_query(start + "其他" * 9))
