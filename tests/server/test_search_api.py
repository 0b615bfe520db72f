"""Searching and reading by HTTP, and that a deleted document is gone from a running server."""

import pytest

from agentic_rag.knowledge_base import KnowledgeBase
from tests.server.conftest import Api


@pytest.mark.parametrize("mode", ["keyword", "semantic", "bm25", "hybrid"])
async def test_both_ways_to_search_find_what_the_knowledge_base_finds(
    kb: KnowledgeBase, api: Api, mode: str
) -> None:
    expected = kb.search("yearly fee", mode, 2).hits  # type: ignore[arg-type]
    async with api() as client:
        given = {"query": "yearly fee", "mode": mode, "top_k": 2}
        posted = await client.post("/api/search", json=given)
        got = await client.get("/api/search", params=given)

    assert posted.json() == got.json()
    ids = [hit["chunk_id"] for hit in posted.json()["hits"]]
    assert ids == [hit.chunk_id for hit in expected]
    assert posted.json()["mode"] == mode


async def test_filters_narrow_a_search(api: Api) -> None:
    async with api() as client:
        given = {"query": "a", "mode": "keyword", "path": ["*.md"]}
        posted = (await client.post("/api/search", json=given)).json()
        got = (await client.get("/api/search", params=given)).json()
        none = await client.get("/api/search", params={"query": "a", "where": "lang=en"})

    assert posted == got
    assert {hit["uri"].rpartition(".")[2] for hit in posted["hits"]} == {"md"}
    assert none.json()["hits"] == []


async def test_chinese_and_english_are_found_alike_and_counts_are_told(api: Api) -> None:
    async with api() as client:
        for query in ("水泵", "pump"):
            found = await client.post("/api/search", json={"query": query, "mode": "keyword"})
            assert found.json()["hits"] and found.json()["counts"] == {query: 1}
        none = await client.post("/api/search", json={"query": "Hagood", "mode": "keyword"})
    assert none.json()["counts"] == {"Hagood": 0} and none.json()["related"] is False


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ({"query": ""}, 422, "empty"),
        ({"query": "x", "mode": "magic"}, 422, "'keyword', 'semantic', 'bm25' or 'hybrid'"),
        ({"query": "x", "top_k": 0}, 422, "top_k"),
        ({"query": "x", "top_k": "many"}, 422, "top_k"),
        ({"query": "x", "whole_words": True}, 400, "mode keyword"),
    ],
)
async def test_a_bad_search_is_told_in_a_sentence(
    api: Api, given: dict[str, object], status: int, said: str
) -> None:
    async with api() as client:
        refused = await client.post("/api/search", json=given)

    assert refused.status_code == status
    assert said in refused.json()["error"]["message"]


async def test_a_chunk_is_read_with_its_neighbours(kb: KnowledgeBase, api: Api, fees: str) -> None:
    long = kb.directory.parent / "long.md"
    sections = [f"## Part {n}\n\n" + f"Sentence {n} about pumps. " * 150 for n in range(6)]
    long.write_text("\n\n".join(sections), encoding="utf-8")
    kb.add([long])
    ids = [chunk.chunk_id for chunk in kb.chunks(kb.document("long.md").number)]
    async with api() as client:
        alone = (await client.get(f"/api/chunks/{ids[1]}")).json()["chunks"]
        around = await client.get(f"/api/chunks/{ids[1]}", params={"before": 1, "after": 1})
        unknown = await client.get("/api/chunks/999-1")
        for hostile in ("..%2f..%2fetc%2fpasswd", "12-3%00", "x" * 39, "泵"):
            assert (await client.get(f"/api/chunks/{hostile}")).status_code == 404
        assert (await client.get(f"/api/chunks/{fees}?before=-1")).status_code == 422
        assert (await client.get(f"/api/chunks/{'9' * 200}")).status_code == 422

    assert [chunk["chunk_id"] for chunk in alone] == [ids[1]]
    assert [chunk["chunk_id"] for chunk in around.json()["chunks"]] == ids[:3]
    assert unknown.status_code == 404
    assert "nearest" in unknown.json()["error"]["message"]


async def test_a_deleted_document_is_gone_at_once_and_a_new_one_is_there(
    kb: KnowledgeBase, api: Api, fees: str
) -> None:
    async with api() as client:

        async def found(mode: str) -> list[str]:
            given = {"query": "The yearly fee is 12 euros", "mode": mode}
            hits = (await client.post("/api/search", json=given)).json()["hits"]
            return [hit["chunk_id"] for hit in hits]

        modes = ("keyword", "semantic", "bm25", "hybrid")
        for mode in modes:  # with every cache warm
            assert fees in await found(mode)
        asked = await client.post("/api/ask", json={"question": "The yearly fee is 12 euros"})
        assert fees in asked.text

        kb.remove(["fees.txt"])

        for mode in modes:
            assert fees not in await found(mode)
        read = await client.get(f"/api/chunks/{fees}")
        assert read.status_code == 404
        asked = await client.post("/api/ask", json={"question": "The yearly fee is 12 euros"})
        assert fees not in asked.text
        fresh = kb.directory.parent / "fresh.txt"
        fresh.write_text("The yearly fee is 15 euros now.", encoding="utf-8")
        kb.add([fresh])
        new = kb.chunks(kb.document("fresh.txt").number)[0].chunk_id
        for mode in modes:
            assert new in await found(mode)
