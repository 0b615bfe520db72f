"""The two routes of coarse ranking, and fusion of rankings."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.config import Pipeline, Settings
from agentic_rag.knowledge_base import Filter, KnowledgeBase
from agentic_rag.retrieval.coarse import Candidate, coarse, fused, merged
from tests.knowledge_base.embedders import HashEmbedder

PAGES = {
    "网络/防火墙.md": "# 防火墙配置\n\n## 策略\n\n先建立区域，再建立规则。\n",
    "网络/路由.md": "# 路由\n\n## 静态路由\n\n下一跳写成地址。防火墙要放行。\n",
    "power/ups.md": "# UPS\n\n## Batteries\n\nReplace every five years.\n",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    folder = tmp_path_factory.mktemp("manual")
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kb = KnowledgeBase.open(folder / "kb", settings=Settings(), embedder=HashEmbedder())
    kb.add(folder)
    return kb


def names(kb: KnowledgeBase, candidates: tuple[Candidate, ...]) -> list[str]:
    read = kb.read_chunk([one.chunk_id for one in candidates])
    return [Path(chunk.uri).name for chunk in read.chunks]


def test_a_chunk_is_found_by_the_words_of_its_path(kb: KnowledgeBase) -> None:
    index = kb.snapshot().path_index
    keys, scores = index.best(["batteries"], 5)
    assert len(keys) == 1 and scores[0] > 0
    found = coarse(
        kb.snapshot(), ["Batteries"], ["Batteries"], where=None, settings=Pipeline(sparse=1)
    )
    sparse, dense = found.routes
    assert names(kb, sparse.candidates) == ["ups.md"]
    assert len(dense.candidates) == 3


def test_paths_add_chunks_that_the_text_did_not_find(kb: KnowledgeBase) -> None:
    few = Pipeline(sparse=1, paths=5)
    found = coarse(kb.snapshot(), ["网络 防火墙"], ["防火墙"], where=None, settings=few)
    sparse = found.routes[0]
    assert sparse.by_path >= 1
    assert len({one.key for one in sparse.candidates}) == len(sparse.candidates)


def test_words_that_stand_nowhere_find_nothing(kb: KnowledgeBase) -> None:
    found = coarse(kb.snapshot(), ["zzz qqq"], ["zzz"], where=None, settings=Pipeline())
    assert found.routes[0].candidates == ()


def test_a_filter_holds_for_words_paths_and_vectors(kb: KnowledgeBase) -> None:
    where = Filter(paths=("*/power/*",))
    found = coarse(kb.snapshot(), ["防火墙 UPS"], ["防火墙"], where=where, settings=Pipeline())
    for route in found.routes:
        assert names(kb, route.candidates) == ["ups.md"]


def test_an_empty_base_has_no_candidates(tmp_path: Path) -> None:
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    found = coarse(kb.snapshot(), ["a"], ["a"], where=None, settings=Pipeline())
    assert [route.candidates for route in found.routes] == [(), ()]


def ranking(*keys: int) -> list[Candidate]:
    return [Candidate(key, f"{key}", 0.0) for key in keys]


def test_reciprocal_ranks_add_up_and_ties_keep_reading_order() -> None:
    got = fused([ranking(3, 1), ranking(1, 2)], 60)
    assert [(one.key, round(score, 6)) for one, score in got] == [
        (1, round(1 / 61 + 1 / 62, 6)),
        (3, round(1 / 61, 6)),
        (2, round(1 / 62, 6)),
    ]
    assert [one.key for one, _ in fused([ranking(5), ranking(2)], 60)] == [2, 5]


@given(st.lists(st.lists(st.integers(0, 9), unique=True), max_size=3))
def test_fusing_and_merging_keep_every_chunk_once(lists: list[list[int]]) -> None:
    routes = [ranking(*keys) for keys in lists]
    every = {key for keys in lists for key in keys}
    assert sorted(one.key for one, _ in fused(routes, 60)) == sorted(every)
    assert sorted(one.key for one in merged(routes)) == sorted(every)


def test_a_fusion_with_a_k_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="k is 0; it must be at least 1"):
        fused([ranking(3, 1)], 0)
