"""Recall by several queries: what is found, in which order, with which scores, and what happens
where a route is missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from agentic_rag.config import Rerank, Search, Settings, Workflow
from agentic_rag.knowledge_base import BadQuery, Filter, KnowledgeBase, Snapshot
from agentic_rag.models.embedder import EmbeddingFailed, LocalEmbedder, Vectors
from agentic_rag.retrieval import Recalled, recall
from agentic_rag.retrieval.recall import route_weights

ARTICLES = {
    "地方规定/第一章.md": (
        "# 用工规定\n\n第七条 用人单位不得无故克扣劳动者工资。\n\n"
        "第八条 劳动者每年享受带薪休假五天。\n"
    ),
    "travel.md": (
        "# Travel\n\nFlights need the approval of a director. Hotel bills are paid back within two "
        "weeks.\n"
    ),
    "leave.md": "# Leave\n\nEvery employee has thirty days of paid holiday a year.\n",
    "faults.md": (
        "# Faults\n\nE-0423: the valve is stuck. E-0424: the pump runs dry. Restart the machine "
        "after the repair.\n"
    ),
    "kitchen.txt": "Boil the potatoes for twenty minutes. Drain them well. Add butter and salt.",
    "pumps.txt": "When a machine stops and shows an error, restart it and read the display.",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    root = tmp_path_factory.mktemp("recall")
    for name, text in ARTICLES.items():
        path = root / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    made = KnowledgeBase.open(root / "kb", settings=Settings())
    made.add(root / "docs")
    return made


@pytest.fixture(scope="module")
def snapshot(kb: KnowledgeBase) -> Snapshot:
    return kb.snapshot()


class Broken(LocalEmbedder):
    """The default embedder, which fails for queries that hold `word`."""

    def __init__(self, word: str = "") -> None:
        super().__init__()
        self._word = word

    def embed_query(self, text: str) -> Vectors:
        if self._word in text:
            raise EmbeddingFailed("The server is away; start it.")
        return super().embed_query(text)


def asked(
    snapshot: Snapshot,
    *queries: str,
    top_k: int = 5,
    where: Filter | None = None,
    settings: Settings | None = None,
) -> Recalled:
    return recall(snapshot, queries, top_k=top_k, where=where, settings=settings or Settings())


def names(found: Recalled) -> list[str]:
    return [Path(scored.hit.uri).name for scored in found.hits]


def with_embedder(kb: KnowledgeBase, embedder: LocalEmbedder) -> Snapshot:
    return KnowledgeBase.open(kb.directory, settings=Settings(), embedder=embedder).snapshot()


def test_several_queries_find_what_each_of_them_is_about(snapshot: Snapshot) -> None:
    found = asked(snapshot, "老板能不能扣我的钱", "paid holiday", top_k=3)
    assert {"第一章.md", "leave.md"} <= set(names(found))
    assert found.related
    assert found.notices == ()


def test_a_hit_shows_the_score_of_every_route_and_who_found_it(snapshot: Snapshot) -> None:
    hit = asked(snapshot, "Who approves flights?", "E-0423", top_k=6).hits[0]
    assert hit.hit.title in ("Travel", "Faults")
    by_name = {Path(h.hit.uri).name: h for h in asked(snapshot, "flights", "E-0423").hits}
    travel, faults, kitchen = by_name["travel.md"], by_name["faults.md"], by_name["kitchen.txt"]
    assert travel.search_type == "semantic"
    assert faults.search_type == "exact"
    assert "E-0423: the valve is stuck" in faults.hit.snippet
    assert travel.vector_score is not None
    assert 0.7 < travel.vector_score <= 1
    assert travel.keyword_score is not None
    assert travel.keyword_score > 0
    assert kitchen.keyword_score is None  # no word of either query stands there
    assert travel.rerank_score is None
    assert travel.fused_score == travel.hit.score
    assert set(travel.queries) <= {0, 1}


def test_an_identifier_finds_the_text_that_holds_it_and_not_the_one_that_is_alike(
    snapshot: Snapshot,
) -> None:
    assert names(asked(snapshot, "E-0423", top_k=1)) == ["faults.md"]


def test_the_main_query_weighs_more_than_a_variant(snapshot: Snapshot) -> None:
    assert names(asked(snapshot, "paid holiday", "boil the potatoes", top_k=1)) == ["leave.md"]
    assert names(asked(snapshot, "boil the potatoes", "paid holiday", top_k=1)) == ["kitchen.txt"]
    light = Settings(workflow=Workflow(main_query_weight=0.1))
    found = asked(snapshot, "paid holiday", "boil the potatoes", top_k=1, settings=light)
    assert names(found) == ["kitchen.txt"]


@pytest.mark.parametrize("fusion", ["scaled", "rrf"])
def test_scores_do_not_grow_with_the_number_of_queries(
    snapshot: Snapshot, fusion: Literal["scaled", "rrf"]
) -> None:
    settings = Settings(search=Search(fusion=fusion))
    one = asked(snapshot, "paid holiday", settings=settings).hits[0]
    many = asked(snapshot, *["paid holiday", "days of holiday", "holiday"], settings=settings)
    greatest = 1 if fusion == "scaled" else 1 / 61
    for best in (one, many.hits[0]):
        assert Path(best.hit.uri).name == "leave.md"
        assert best.fused_score == pytest.approx(greatest)


def test_a_chunk_stands_once_however_many_queries_find_it(snapshot: Snapshot) -> None:
    found = asked(snapshot, "paid holiday", "days of holiday", "带薪休假", "holiday a year")
    ids = [scored.hit.chunk_id for scored in found.hits]
    assert len(ids) == len(set(ids))
    best = next(scored for scored in found.hits if Path(scored.hit.uri).name == "leave.md")
    assert best.queries == (0, 1, 2, 3)


def test_order_is_by_score_and_the_same_every_time(snapshot: Snapshot) -> None:
    queries = ("restart the machine", "机器怎么重启", "E-0424")
    first = asked(snapshot, *queries, top_k=6)
    assert first == asked(snapshot, *queries, top_k=6)
    scores = [scored.fused_score for scored in first.hits]
    assert scores == sorted(scores, reverse=True)


def test_asking_for_more_does_not_reorder_the_first(snapshot: Snapshot) -> None:
    for queries in (("holiday",), ("restart the machine", "克扣工资")):
        most = asked(snapshot, *queries, top_k=6)
        for k in (1, 2, 3):
            assert asked(snapshot, *queries, top_k=k).hits[0].hit.chunk_id == (
                most.hits[0].hit.chunk_id
            )
            assert names(asked(snapshot, *queries, top_k=k)) == names(most)[:k]


def test_equal_and_blank_queries_count_once_and_not_at_all(snapshot: Snapshot) -> None:
    once = asked(snapshot, "paid holiday")
    assert asked(snapshot, "paid holiday", " paid holiday ", "", "  ") == once


@pytest.mark.parametrize("queries", [(), ("",), ("  ", "\n")])
def test_no_query_at_all_is_said(snapshot: Snapshot, queries: Sequence[str]) -> None:
    with pytest.raises(BadQuery, match="query is empty"):
        asked(snapshot, *queries)


def test_a_filter_holds_for_both_routes(snapshot: Snapshot) -> None:
    where = Filter(paths=("地方规定/",))
    found = asked(snapshot, "holiday", "potatoes", where=where)
    assert names(found) == ["第一章.md"]
    nothing = asked(snapshot, "holiday", where=Filter(paths=("nowhere/",)))
    assert (nothing.hits, nothing.related) == ((), False)


def test_off_topic_queries_are_not_related_and_one_that_is_makes_all_so(
    snapshot: Snapshot,
) -> None:
    assert not asked(snapshot, "猫咪怎么洗澡").related
    assert asked(snapshot, "猫咪怎么洗澡", "Who approves flights?").related


def test_with_the_embedder_down_bm25_answers_alone_and_says_so(kb: KnowledgeBase) -> None:
    found = asked(with_embedder(kb, Broken()), "paid holiday", "approval director")
    assert {"leave.md", "travel.md"} == set(names(found))
    assert found.related
    assert found.notices == (
        "Semantic search is not available, BM25 answered alone: The server is away; start it.",
    )
    assert all(scored.vector_score is None for scored in found.hits)
    assert "thirty days of paid holiday" in found.hits[names(found).index("leave.md")].hit.snippet
    nothing = asked(with_embedder(kb, Broken()), "zyzzyva")
    assert (nothing.hits, nothing.related) == ((), False)


def test_a_query_that_alone_cannot_be_embedded_is_searched_by_words(kb: KnowledgeBase) -> None:
    found = asked(with_embedder(kb, Broken("potatoes")), "paid holiday", "potatoes", top_k=6)
    assert names(found)[0] == "leave.md"
    kitchen = found.hits[names(found).index("kitchen.txt")]
    assert kitchen.keyword_score is not None
    assert kitchen.queries == (0, 1)  # by meaning and by words
    assert "1 of 2 queries" in found.notices[0]


def test_more_candidates_than_a_pool_are_found_for_reranking(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for n in range(40):
        (tmp_path / "docs" / f"{n}.txt").write_text(f"Pump number {n} is in hall {n}.")
    settings = Settings(search=Search(pool=10), rerank=Rerank(model="chat", candidates=30))
    kb = KnowledgeBase.open(tmp_path / "kb", settings=settings)
    kb.add(tmp_path / "docs")
    found = recall(kb.snapshot(), ["pump"], top_k=30, where=None, settings=settings)
    assert len(found.hits) == 30


def test_a_route_of_weight_0_finds_nothing(snapshot: Snapshot) -> None:
    only_words = Settings(search=Search(semantic_weight=0))
    assert names(asked(snapshot, "potatoes", settings=only_words)) == ["kitchen.txt"]
    only_vectors = Settings(search=Search(bm25_weight=0))
    assert all(
        scored.keyword_score is not None or scored.vector_score is not None
        for scored in asked(snapshot, "potatoes", settings=only_vectors).hits
    )
    assert len(asked(snapshot, "potatoes", settings=only_vectors, top_k=6).hits) == 6


def test_the_type_of_a_query_sets_the_weights_of_the_routes() -> None:
    search = Search(semantic_weight=0.8, bm25_weight=0.2)
    assert route_weights("semantic", search) == (0.8, 0.2)
    assert route_weights("exact", search) == (0.2, 0.8)
    assert route_weights("mixed", search) == (0.5, 0.5)
    words_first = Search(semantic_weight=0.3, bm25_weight=0.7)
    assert route_weights("exact", words_first) == (0.3, 0.7)
    off = Search(semantic_weight=0, bm25_weight=0.2)
    assert route_weights("exact", off) == route_weights("mixed", off) == (0, 0.2)


def test_an_empty_knowledge_base_is_an_empty_result(tmp_path: Path) -> None:
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings())
    found = asked(kb.snapshot(), "anything", "第三条")
    assert (found.hits, found.related) == ((), False)
