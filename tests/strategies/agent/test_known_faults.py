"""Faults that users of such systems met in the agent loop and in streaming, one test each.

The other tests of this folder go into the same matters more widely; here stands the situation in
which each fault showed.
"""

import asyncio
import json
from pathlib import Path

import pytest

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.question import Turn as Earlier
from agentic_rag.strategies.run import AnswerFailed, ask
from agentic_rag.text.tokens import count_tokens
from tests.knowledge_base.embedders import HashEmbedder
from tests.strategies.agent.playing import Call, Model, play, read, search
from tests.strategies.scripted_server import Turn, serving

QUESTION = "When was the Oriole Bridge opened?"


async def test_a_model_that_always_searches_is_stopped_at_the_limit_with_one_answer(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), search("Tamar"), search("Ulm"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=3)

    assert (model.count, len(played.run)) == (4, 3)
    assert sum(event.type == "run_finished" for event in played.events) == 1
    assert played.answer.text == "In 1932 [1]."


async def test_what_was_found_before_the_limit_is_the_answer_and_no_stock_sentence(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Tamar"), read(bridge), search("Ulm"), search("Ada"))
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=3)

    assert played.answer.status == "forced_by_steps"
    assert "It was opened in 1932 by Ada Brown." in played.answer.text
    assert played.answer.citations[0].chunk_id == bridge


async def test_odd_arguments_one_after_the_other_never_end_the_run(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(
        Call("semantic_search", {"input": {"query": "opening of the bridge"}}),
        Call("keyword_search", {"keywords": "Oriole", "top_k": "5"}),
        Call("keyword_search", {"keywords": ["Tamar"], "whole_words": None, "mood": "calm"}),
        Call("open_file", {"path": "/etc/passwd"}),
        Call("read_chunk", {"chunk_ids": bridge, "neighbours": "null"}),
        f"In 1932 [{bridge}].",
    )
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert [event.error is None for event in played.returned] == [True, True, True, False, True]
    assert played.answer.text == "In 1932 [1]."


async def test_three_calls_in_a_turn_are_each_answered_and_a_second_question_works(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    three = [search("Oriole"), search("Oriole"), Call("unknown", {})]
    model = Model(three, f"In 1932 [{bridge}].")  # it refuses a history that lacks a reply
    first = (await play(kb, model, QUESTION, streaming=streaming)).answer
    history = [Earlier(QUESTION, first.text, (bridge,))]
    again = Model("Who opened the Oriole Bridge?", three, f"Ada Brown [{bridge}].")
    second = (await play(kb, again, "By whom?", streaming=streaming, history=history)).answer

    assert (first.text, second.text) == ("In 1932 [1].", "Ada Brown [1].")


@pytest.mark.parametrize("early", [["Let me look that up."], [" "], ["", "Let me look."]])
async def test_early_text_is_not_the_answer_in_either_mode(
    kb: KnowledgeBase, bridge: str, early: list[str]
) -> None:
    texts = []
    for streaming in (True, False):
        model = Model([*early, search("Oriole")], f"In 1932 [{bridge}].")
        played = await play(kb, model, QUESTION, streaming=streaming)
        assert played.run == ["keyword_search"]
        texts.append(played.answer.text)

    assert texts == ["In 1932 [1]."] * 2


async def test_a_model_without_tools_is_a_clear_message(kb: KnowledgeBase) -> None:
    refusal = Turn(status=400, error={"message": "tiny does not support tools"})
    with serving(refusal) as script:
        settings = Settings(base_url=script.address, model="tiny")
        with pytest.raises(AnswerFailed, match=r"cannot call tools.*--strategy naive"):
            await ask(kb, QUESTION, settings=settings)


async def test_no_tool_result_floods_the_context(tmp_path: Path) -> None:
    items = [{"id": str(n), "text": f"第{n}号的记录。"} for n in range(2500)]
    items.append({"id": "line", "text": "heron " * 350_000})  # 2 MB in one line
    (tmp_path / "corpus.json").write_text(json.dumps(items), encoding="utf-8")
    settings = Settings(kb=tmp_path / "kb")
    kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    kb.add([tmp_path / "corpus.json"])
    everything = {"chunk_ids": [f"1-{n}" for n in range(1, 2501)]}
    model = Model(
        Call("keyword_search", {"keywords": ["的"], "top_k": 5000}),
        Call("read_chunk", everything),
        read("1-2501"),
        "Not in the documents: they are only records.",
    )
    played = await play(kb, model, "List all the records.", settings=settings)

    sizes = [count_tokens(event.text) for event in played.returned]
    assert max(sizes) <= 5100
    assert "more tokens of [1-2501]" in played.returned[2].text
    assert played.answer.status == "insufficient"


async def test_the_call_after_the_thoughts_wins_over_the_draft_in_them(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    def written(keyword: str) -> str:
        return json.dumps({"name": "keyword_search", "arguments": {"keywords": [keyword]}})

    said = f"<think>Maybe {written('Ulm')}?</think>\n```json\n{written('Oriole')}\n```"
    model = Model(said, f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert [event.arguments for event in played.called] == [{"keywords": ["Oriole"]}]
    assert "Ulm" not in model.sent(1)
    assert "Ulm" not in played.answer.raw_text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("It may be 1899.\n</think>\nOpened in 1932 by Ada Brown.", "Opened in 1932 by Ada Brown."),
        ("The file says `<think>` [ID].", "The file says `<think>` [1]."),
    ],
)
async def test_a_lone_closing_tag_and_a_quoted_one_are_told_apart(
    kb: KnowledgeBase, bridge: str, streaming: bool, said: str, text: str
) -> None:
    model = Model(search("Oriole"), said.replace("ID", bridge))
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert played.answer.text.removesuffix(" [1]") == text.removesuffix(" [1]")


async def test_an_unclosed_thought_is_no_answer(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), "<think>It may be 18")
    answer = (await play(kb, model, QUESTION, streaming=streaming)).answer

    assert answer.status == "model_failed"
    assert answer.notices[-1].code == "no_answer_cut_off"
    assert "It may be 18" not in answer.text
    assert answer.citations[0].chunk_id == bridge


async def test_numbers_that_name_no_source_are_taken_out(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    said = f"It opened in 1932 [1][5] [{bridge}]. In 2-4 weeks 【2】 [^4] [1, 3]."
    model = Model(search("Oriole"), said)
    answer = (await play(kb, model, QUESTION, streaming=streaming)).answer

    assert answer.text == "It opened in 1932 [1]. In 2-4 weeks."
    assert [c.number for c in answer.citations] == [1]
    assert answer.removed_citations == ("1", "5", "2", "4", "3")


async def test_chinese_sent_a_byte_at_a_time_is_as_when_sent_whole(
    kb: KnowledgeBase, pumps: str
) -> None:
    search_ = {
        "id": "a",
        "function": {"name": "keyword_search", "arguments": '{"keywords":"王芳"}'},
    }
    calls = {"tool_calls": [{"index": 0, "type": "function", **search_}]}
    texts = []
    for streaming in (True, False):
        turns = (
            Turn([calls], bytes_a_write=1, finish="tool_calls"),
            Turn([f"由王芳主持设计[{pumps}]，𠮷字也在。"], bytes_a_write=1),
        )
        with serving(*turns) as script:
            settings = Settings(
                base_url=script.address, model="any", agent=AgentSettings(streaming=streaming)
            )
            texts.append((await ask(kb, "蓝桥泵站是谁设计的？", settings=settings)).text)

    assert texts == ["由王芳主持设计[1]，𠮷字也在。"] * 2


@pytest.mark.parametrize("turn", [Turn(["word "] * 3000, delay=0.02), Turn(hang=True)])
async def test_a_stopped_question_ends_the_call_at_the_server(
    kb: KnowledgeBase, turn: Turn
) -> None:
    with serving(turn) as script:
        settings = Settings(base_url=script.address, model="any")
        task = asyncio.create_task(ask(kb, QUESTION, settings=settings))
        assert await asyncio.to_thread(script.asked.wait, 10)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        assert await asyncio.to_thread(script.hung_up.wait, 3)
    assert len(script.requests) == 1
