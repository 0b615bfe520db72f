"""The semantic, BM25 and hybrid searches, filters and reading, on real text with real vectors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import BadQuery, Filter, KnowledgeBase
from agentic_rag.knowledge_base.hybrid import fuse, reciprocal_ranks, scaled
from agentic_rag.models.embedder import EmbeddingFailed, LocalEmbedder, Vectors

TEXTS = {
    "office/leave.md": (
        "# Leave\n\n## Holidays\n\nEvery employee has thirty days of paid holiday a year. "
        "Days that are not taken by March are lost.\n\n## Illness\n\n"
        "Whoever is ill calls the office before nine. After three days a doctor's note is needed.\n"
    ),
    "office/travel.md": (
        "# Travel\n\nTrains are booked in second class. Flights need the approval of a director. "
        "Hotel bills are paid back within two weeks.\n"
    ),
    "法律/隐私.md": (
        "# 隐私规定\n\n## 第一章 总则\n\n第一条 为了保护个人信息权益，制定本规定。"
        "第二条 处理敏感个人信息应当取得个人的单独同意。\n\n## 第二章 责任\n\n"
        "第三条 泄露个人信息的，处五万元以下罚款。\n"
    ),
    "kitchen.txt": "Boil the potatoes for twenty minutes. Drain them well. Add butter and salt.",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("searches")
    for name, text in TEXTS.items():
        path = root / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    base = KnowledgeBase.open(root / "kb", settings=Settings())
    base.add(root / "docs", metadata={"set": "test"})
    base.add(root / "docs/kitchen.txt", metadata={"kind": "recipe"})
    yield base


def names(result: object) -> list[str]:
    return [Path(hit.uri).name for hit in result.hits]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("question", "name", "words"),
    [
        ("How many days off do I get?", "leave.md", "thirty days"),
        ("Who must agree before I take a plane?", "travel.md", "director"),
        ("把别人的隐私信息传出去会被罚多少钱", "隐私.md", "五万元"),
        ("What do I do when I am sick?", "leave.md", "ill calls"),
    ],
)
def test_a_question_finds_the_sentence_that_answers_it(
    kb: KnowledgeBase, question: str, name: str, words: str
) -> None:
    for result in (kb.semantic_search(question, 2), kb.hybrid_search(question, 2)):
        assert names(result)[0] == name
        assert words in result.hits[0].snippet
        assert result.related


def test_a_hit_names_title_section_and_score(kb: KnowledgeBase) -> None:
    hit = kb.semantic_search("泄露个人信息罚款多少", 1).hits[0]
    assert (hit.title, hit.section, hit.page) == ("隐私规定", "法律 › 第二章 责任", None)
    assert 0.5 < hit.score <= 1.0


def test_off_topic_questions_are_said_to_be_unrelated(kb: KnowledgeBase) -> None:
    assert kb.snapshot().head.off_topic_score is not None
    for question in ("how to repair a violin bow", "猫咪怎么洗澡"):
        result = kb.semantic_search(question, 3)
        assert not result.related
        assert result.hits  # they are shown all the same


def test_semantic_scores_are_the_best_cosine_of_a_chunks_sentences(kb: KnowledgeBase) -> None:
    embedder = LocalEmbedder()
    query = "How many days off do I get?"
    hit = kb.semantic_search(query, 1).hits[0]
    sentence = "Leave. office. Holidays. Every employee has thirty days of paid holiday a year."
    cosine = float(embedder.embed_query(query) @ embedder.embed_passages([sentence])[0])
    assert hit.score == pytest.approx(cosine, abs=1e-5)


def test_chinese_words_are_found_by_bm25(kb: KnowledgeBase) -> None:
    assert names(kb.bm25_search("敏感个人信息", 3)) == ["隐私.md"]
    assert "单独同意" in kb.bm25_search("敏感 单独同意", 1).hits[0].snippet


@pytest.mark.parametrize("query", ["区块链", "ブロックチェーン", "zeppelin", "！？", "の"])
def test_bm25_gives_nothing_for_what_no_document_has(kb: KnowledgeBase, query: str) -> None:
    result = kb.bm25_search(query, 3)
    assert result.hits == ()
    assert not result.related


@pytest.mark.parametrize("mode", ["keyword", "semantic", "bm25", "hybrid"])
def test_asking_for_more_never_reorders_the_first_hits(kb: KnowledgeBase, mode: str) -> None:
    query = "paid days"
    few = [hit.chunk_id for hit in kb.search(query, mode, 2).hits]  # type: ignore[arg-type]
    many = [hit.chunk_id for hit in kb.search(query, mode, 50).hits]  # type: ignore[arg-type]
    assert many[: len(few)] == few
    assert len(set(many)) == len(many)


@pytest.mark.parametrize("fusion", ["scaled", "rrf"])
def test_hybrid_asked_for_more_than_its_pools_goes_on_by_meaning(
    kb: KnowledgeBase, fusion: str
) -> None:
    settings = Settings(search={"fusion": fusion, "pool": 10})
    other = KnowledgeBase.open(kb.directory, settings=settings)
    assert len(other.hybrid_search("paid days", 50).hits) == other.status().chunks


class Broken(LocalEmbedder):
    def embed_query(self, text: str) -> Vectors:
        raise EmbeddingFailed("the server is down; start it")


def test_when_the_embedder_fails_bm25_answers_and_says_so(kb: KnowledgeBase) -> None:
    broken = KnowledgeBase.open(kb.directory, settings=Settings(), embedder=Broken())
    result = broken.hybrid_search("paid holiday", 3)
    assert names(result)[0] == "leave.md"
    assert "the server is down" in result.notices[0]
    with pytest.raises(EmbeddingFailed):
        broken.semantic_search("paid holiday")


@pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_an_empty_query_is_an_error(kb: KnowledgeBase, mode: str, query: str) -> None:
    with pytest.raises(BadQuery, match="empty"):
        kb.search(query, mode)  # type: ignore[arg-type]
    with pytest.raises(BadQuery):
        kb.search("x", "fuzzy")  # type: ignore[arg-type]
    with pytest.raises(BadQuery):
        kb.search("x", mode, 0)  # type: ignore[arg-type]


MODES: list[Callable[[KnowledgeBase, Filter], object]] = [
    lambda kb, where: kb.keyword_search(["a", "个"], 50, where=where),
    lambda kb, where: kb.semantic_search("what is there", 50, where=where),
    lambda kb, where: kb.bm25_search("days the 个人 director potatoes", 50, where=where),
    lambda kb, where: kb.hybrid_search("days the 个人 director potatoes", 50, where=where),
]


@pytest.mark.parametrize("search", MODES, ids=["keyword", "semantic", "bm25", "hybrid"])
def test_filters_narrow_every_search(
    kb: KnowledgeBase, search: Callable[[KnowledgeBase, Filter], object]
) -> None:
    def found(*paths: str, **metadata: str) -> set[str]:
        return set(names(search(kb, Filter(paths, metadata))))

    everything = {Path(name).name for name in TEXTS}
    assert found() == everything
    assert found("office/") == {"leave.md", "travel.md"}
    assert found("office/*.md", "*.txt") == {"leave.md", "travel.md", "kitchen.txt"}
    assert found("法律/**") == {"隐私.md"}
    assert found("off_ce/") == found("offic%") == found("ffice/") == set()
    assert found(f"{kb.directory.parent}/docs/office/**") == {"leave.md", "travel.md"}
    assert found(set="test", kind="recipe") == {"kitchen.txt"}
    assert found("office/", kind="recipe") == set()
    assert found(kind="other") == set()


def test_chunks_of_a_corpus_are_filtered_by_their_own_metadata(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(
        '[{"id":"1","text":"alpha one","year":1999,"open":true},{"id":"2","text":"alpha two"}]'
    )
    base = KnowledgeBase.open(tmp_path / "kb", settings=Settings())
    base.add(path)
    for where, ids in [
        ({"year": "1999"}, ["1"]),
        ({"open": "true"}, ["1"]),
        ({"year": "2000"}, []),
    ]:
        hits = base.bm25_search("alpha", where=Filter(metadata=where)).hits
        assert [hit.source_id for hit in hits] == ids


def test_chunks_are_read_with_their_neighbours(kb: KnowledgeBase, tmp_path: Path) -> None:
    text = "".join(f"Sentence number {i} says little. " for i in range(200))
    (tmp_path / "long.txt").write_text(text)
    base = KnowledgeBase.open(tmp_path / "kb", settings=Settings(chunking={"size": 200}))
    base.add(tmp_path / "long.txt")
    base.add(kb.directory.parent / "docs/kitchen.txt")
    last = len(base.chunks(1))
    read = base.read_chunk(["1-3", " 1-2 ", "1-3"], before=1, after=1)
    assert [chunk.chunk_id for chunk in read.chunks] == ["1-2", "1-3", "1-4", "1-1"]
    read = base.read_chunk([f"1-{last}", "2-1"], before=0, after=3)
    assert [chunk.chunk_id for chunk in read.chunks] == [f"1-{last}", "2-1"]


def test_unknown_ids_are_named_with_the_nearest_that_exists(kb: KnowledgeBase) -> None:
    read = kb.read_chunk(["1-1", "1-99", "99-1", "x", "", "1–1", "1-1-1", "99999999999-1"])
    assert [chunk.chunk_id for chunk in read.chunks] == ["1-1"]
    assert read.unknown["1-99"] == "1-1"
    assert read.unknown["99-1"] == f"{kb.documents()[-1].number}-1"
    assert [read.unknown[i] for i in ("x", "", "1–1", "1-1-1", "99999999999-1")] == [None] * 5


def test_an_empty_knowledge_base_answers_every_search_with_nothing(tmp_path: Path) -> None:
    base = KnowledgeBase.open(tmp_path / "kb", settings=Settings())
    for mode in ("keyword", "semantic", "bm25", "hybrid"):
        result = base.search("anything", mode)  # type: ignore[arg-type]
        assert (result.hits, result.related) == ((), False)
    assert base.read_chunk(["1-1"]).unknown == {"1-1": None}
    assert base.chunks(1) == []
    assert base.status().documents == 0


def test_scaled_scores_run_from_nought_to_one() -> None:
    scores = np.array([0.9, 0.7, -np.inf, 0.8])
    assert scaled(scores) == pytest.approx([1.0, 0.0, 0.0, 0.5])
    assert scaled(np.array([0.4, -np.inf])) == pytest.approx([1.0, 0.0])
    assert scaled(np.array([-np.inf])) == pytest.approx([0.0])


def test_reciprocal_ranks_are_those_of_the_paper() -> None:
    assert reciprocal_ranks(np.array([0.5, 0.9, -np.inf]), 60) == pytest.approx([1 / 62, 1 / 61, 0])


def test_fusion_weighs_both_routes() -> None:
    semantic = (np.array([1, 2, 3]), np.array([0.9, 0.8, 0.7]))
    bm25 = (np.array([3, 4]), np.array([8.0, 4.0]))
    keys, scores = fuse(semantic, bm25, Settings().search)
    assert dict(zip(keys.tolist(), scores.tolist(), strict=True)) == pytest.approx(
        {1: 0.8, 2: 0.4, 3: 0.2, 4: 0.0}
    )
    keys, _ = fuse(semantic, bm25, Settings(search={"fusion": "rrf"}).search)
    assert keys.tolist() == [3, 1, 2, 4]
