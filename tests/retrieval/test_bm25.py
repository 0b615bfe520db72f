"""Rescoring gives the same as BM25 written out plainly over all texts."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.bm25 import K1, B
from agentic_rag.knowledge_base.fragments import key
from agentic_rag.retrieval.bm25 import rescored
from agentic_rag.text.words import words
from tests.knowledge_base.embedders import HashEmbedder

TEXTS = {
    "a.txt": "The pump is blue. The pump was replaced in 2019, and the old pump was sold.",
    "b.txt": "A blue boat lies in the harbour.",
    "c.txt": "泵站每天供水三万吨。水泵于1999年更换。",
    "d.txt": "The harbour has a pump. " + "Nothing is said of anything here. " * 30,
}


def plain_bm25(texts: dict[str, str], query: str, k1: float, b: float) -> dict[str, float]:
    """Scores by name, of texts by name."""
    mean = sum(len(words(text)) for text in texts.values()) / len(texts)
    found = {}
    for name, text in texts.items():
        length = len(words(text))
        score = 0.0
        for word in set(words(query)):
            holding = sum(word in words(other) for other in texts.values())
            count = words(text).count(word)
            if not count:
                continue
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            score += idf * count * (k1 + 1) / (count + k1 * (1 - b + b * length / mean))
        found[name] = score
    return found


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    for name, text in TEXTS.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    made = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    made.add(tmp_path / "docs")
    return made


def chunks_of(kb: KnowledgeBase) -> tuple[dict[str, str], dict[str, int]]:
    """Texts and chunk keys, by name."""
    texts, keys = {}, {}
    for document in kb.documents():
        (chunk,) = kb.snapshot().chunks(document.number)
        name = Path(document.uri).name
        texts[name] = chunk.text
        keys[name] = key(document.number, int(chunk.chunk_id.split("-")[1]))
    return texts, keys


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.0), (0.0, 0.75), (2.0, 1.0)])
@pytest.mark.parametrize("query", ["the blue pump", "pump pump", "水泵 更换", "2019", "unseen"])
def test_scores_are_those_of_the_formula(
    kb: KnowledgeBase, query: str, k1: float, b: float
) -> None:
    texts, keys = chunks_of(kb)
    wanted = plain_bm25(texts, query, k1, b)
    names = sorted(keys)
    found = rescored(
        [keys[name] for name in names], words(query), kb.snapshot().word_statistics, k1, b
    )
    assert found.tolist() == pytest.approx([wanted[name] for name in names])


def test_frequencies_follow_what_is_added_and_removed(
    kb: KnowledgeBase, write: Callable[[str, str], Path]
) -> None:
    before = kb.snapshot()
    assert before.word_statistics.frequency("pump") == 2
    kb.add(write("e.txt", "Another pump."))
    assert kb.snapshot().word_statistics.frequency("pump") == 3
    assert before.word_statistics.frequency("pump") == 2  # a pinned version stays as it is
    kb.remove(["a.txt", "d.txt"])
    assert kb.snapshot().word_statistics.frequency("pump") == 1
    assert kb.snapshot().word_statistics.chunks == 3


def test_the_indexs_own_parameters_give_the_indexs_own_ranking(kb: KnowledgeBase) -> None:
    snapshot = kb.snapshot()
    for query in ("the blue pump", "harbour of nothing", "泵站 水泵 三万"):
        keys, scores = snapshot.word_pool(words(query), 10)
        again = rescored(keys.tolist(), words(query), snapshot.word_statistics, K1, B)
        assert again.tolist() == pytest.approx(scores.tolist(), rel=0.05)  # lengths are rounded


def test_b_decides_whether_a_long_text_loses(kb: KnowledgeBase) -> None:
    _, keys = chunks_of(kb)
    pair = [keys["b.txt"], keys["d.txt"]]
    statistics = kb.snapshot().word_statistics
    blind = rescored(pair, ["harbour"], statistics, 1.5, 0.0)
    strict = rescored(pair, ["harbour"], statistics, 1.5, 0.75)
    assert blind[0] == pytest.approx(blind[1])
    assert strict[0] > 2 * strict[1]
