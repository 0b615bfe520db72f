"""What traces tell of real runs: found in which order, read or not, and at what cost."""

import asyncio
from collections.abc import Sequence

from agentic_rag.config import AnswerSettings, Settings
from agentic_rag.evaluation.measures.surfaced import retrieved_by, steps, surfaced
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.run import ask
from agentic_rag.strategies.trace import HitRecord
from tests.strategies.agent.playing import Call, Model, play, read, search

QUESTION = "Where was the woman born who opened the Oriole Bridge?"


def given(hits: Sequence[HitRecord]) -> list[str | None]:
    return [hit.source_id for hit in hits]


async def test_the_agent_finds_in_order_of_appearance_and_reads_what_it_reads(
    corpus: KnowledgeBase, ids: dict[str, str]
) -> None:
    model = Model(search("Oriole"), search("Hagwell", "Ada Brown"), read(ids["ada"]), "In Hagwell.")
    answer = (await play(corpus, model, QUESTION, fold_equal=False)).answer
    seen = surfaced(answer)
    assert given(seen.hits) == ["bridge", "ada", "dam", "dam copy"]
    # The dam's chunks are short, so the search gave them whole.
    assert set(given(seen.read)) == {"ada", "dam", "dam copy"}
    assert steps(answer) == 4
    by = retrieved_by(answer.trace)
    assert set(by) == {"keyword_search", "read_chunk"}
    assert sum(by.values()) == answer.usage.retrieved_tokens


async def test_a_snippet_is_found_but_not_read(corpus: KnowledgeBase, ids: dict[str, str]) -> None:
    answer = (await play(corpus, Model(search("Oriole"), "Somewhere."), QUESTION)).answer
    assert given(surfaced(answer).hits) == ["bridge"]
    assert surfaced(answer).read == ()


async def test_short_chunks_are_read_only_where_searches_give_them_whole(
    corpus: KnowledgeBase,
) -> None:
    model = Model(search("strikes"), "At noon.")
    whole = (await play(corpus, model, "When does it strike?")).answer
    assert given(surfaced(whole).read) == ["clock"]
    model = Model(search("strikes"), "At noon.")
    played = await play(corpus, model, "When does it strike?", whole_short_chunks=False)
    assert given(surfaced(played.answer).hits) == ["clock"]
    assert surfaced(played.answer).read == ()


async def test_a_chunk_of_equal_text_is_read_with_the_one_it_is_folded_into(
    corpus: KnowledgeBase,
) -> None:
    answer = (await play(corpus, Model(search("dam"), "The Tamar."), "Which river?")).answer
    assert set(given(surfaced(answer).read)) == {"dam", "dam copy"}


async def test_a_chunk_with_the_text_of_one_read_before_is_read(
    corpus: KnowledgeBase, ids: dict[str, str]
) -> None:
    model = Model(read(ids["dam"]), search("Tamar"), "The Tamar.")
    answer = (await play(corpus, model, "Which river?")).answer
    assert set(given(surfaced(answer).read)) == {"dam", "dam copy"}


async def test_without_a_tool_to_read_what_a_search_shows_is_read(corpus: KnowledgeBase) -> None:
    tools = ("keyword_search", "semantic_search")
    answer = (await play(corpus, Model(search("Oriole"), "No."), QUESTION, tools=tools)).answer
    assert given(surfaced(answer).hits) == given(surfaced(answer).read) == ["bridge"]


async def test_results_in_chinese_are_understood_too(corpus: KnowledgeBase) -> None:
    answer = (await play(corpus, Model(search("泵站"), "王芳。"), "泵站由谁设计？")).answer
    assert given(surfaced(answer).read) == ["泵站"]
    answer = (await play(corpus, Model(search("dam"), "塔马河。"), "哪条河上有大坝？")).answer
    assert set(given(surfaced(answer).read)) == {"dam", "dam copy"}


async def test_a_call_that_was_not_understood_finds_and_reads_nothing(
    corpus: KnowledgeBase,
) -> None:
    model = Model(Call("read_chunk", {"chunk_ids": ["99-99"]}), "I do not know.")
    seen = surfaced((await play(corpus, model, QUESTION)).answer)
    assert (seen.hits, seen.read) == ((), ())


async def test_naive_reads_the_passages_of_its_prompt(
    corpus: KnowledgeBase, ids: dict[str, str]
) -> None:
    settings = Settings(model="none", answer=AnswerSettings(passages=3))
    model = Model(f"In Hagwell [{ids['ada']}].").model
    answer = await ask(corpus, QUESTION, strategy="naive", model=model, settings=settings)
    seen = surfaced(answer)
    assert len(seen.hits) == 3
    assert given(seen.read) == given(seen.hits)
    assert steps(answer) == 2  # search, answer
    assert retrieved_by(answer.trace) == {"answer": answer.usage.retrieved_tokens}
    assert answer.usage.retrieved_tokens > 0


async def test_without_a_model_what_stands_in_the_answer_was_read(corpus: KnowledgeBase) -> None:
    settings = Settings(model="none", answer=AnswerSettings(passages=2))
    answer = await ask(corpus, QUESTION, strategy="naive", settings=settings)
    seen = surfaced(answer)
    assert len(seen.hits) == 2 and set(given(seen.read)) <= set(given(seen.hits))
    assert [hit.chunk_id for hit in seen.read] == [c.chunk_id for c in answer.citations]


async def test_the_last_ranking_of_the_fixed_strategies_counts(corpus: KnowledgeBase) -> None:
    for strategy in ("workflow", "pipeline"):
        settings = Settings(model="none", answer=AnswerSettings(passages=3))
        model = Model("The clock strikes.").model
        answer = await ask(corpus, QUESTION, strategy=strategy, model=model, settings=settings)
        seen = surfaced(answer)
        last = [
            event
            for event in answer.trace
            if event.type == "step_finished" and event.name in ("retrieve", "rank", "rerank")
        ][-1]
        assert given(seen.hits)[: len(last.hits)] == given(last.hits)
        assert seen.read and set(given(seen.read)) <= set(given(seen.hits))
        assert retrieved_by(answer.trace)
        assert steps(answer) >= 3


def test_an_answer_without_a_trace_found_nothing(corpus: KnowledgeBase) -> None:
    settings = Settings(model="none")
    answer = asyncio.run(ask(corpus, QUESTION, strategy="naive", settings=settings))
    bare = answer.model_copy(update={"trace": (), "citations": ()})
    assert surfaced(bare).hits == () and steps(bare) == 0 and retrieved_by(()) == {}
