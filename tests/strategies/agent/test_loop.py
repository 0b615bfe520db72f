"""The loop: what the model does, how often it is asked, and what becomes of it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import Filter, KnowledgeBase, Snapshot
from agentic_rag.strategies.agent import ModelWithoutTools
from agentic_rag.strategies.events import Notice, RunStarted, Thought
from agentic_rag.strategies.run import ask, stream
from tests.strategies.agent.playing import Model, Thinks, ask_for, play, read, search

QUESTION = "When was the Oriole Bridge opened?"


async def test_the_model_searches_reads_and_answers(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole Bridge"), read(bridge), f"It was opened in 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, whole_short_chunks=False)
    answer = played.answer

    assert answer.text == "It was opened in 1932 [1]."
    assert [(c.chunk_id, c.made_by) for c in answer.citations] == [(bridge, "model")]
    assert (answer.status, answer.strategy) == ("answered", "agent")
    assert model.count == answer.usage.model_requests == 3
    assert played.run == ["keyword_search", "read_chunk"]
    assert answer.usage.retrieved_tokens == sum(e.retrieved_tokens for e in played.returned) > 30
    assert played.resets == 0


async def test_the_agent_is_the_strategy_where_the_model_can_call_tools(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(search("Oriole"), f"In 1932 [{bridge}].")
    first, *_ = [event async for event in stream(kb, QUESTION, model=model.model)]
    without, *_ = [event async for event in stream(kb, QUESTION, model="none")]

    assert isinstance(first, RunStarted) and isinstance(without, RunStarted)
    assert first.strategy == "agent"
    assert first.why.endswith("It can call tools, so the strategy is `agent`.")
    assert without.strategy == "naive"


@pytest.mark.parametrize("model", ["none"])
async def test_without_a_model_the_agent_says_which_strategy_works(
    kb: KnowledgeBase, model: str
) -> None:
    with pytest.raises(ModelWithoutTools, match="--strategy naive"):
        await anext(stream(kb, QUESTION, strategy="agent", model=model))  # before the first event


async def test_each_step_is_told_with_its_tool_arguments_result_and_tokens(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)
    kinds = [event.type for event in played.events if event.type != "answer_delta"]

    step = ["step_started", "step_finished", "usage"]
    assert kinds == [
        *("run_started", *step, "tool_called", "tool_returned", *step, "run_finished"),
    ]
    assert played.called[0].arguments == {"keywords": ["Oriole"]}
    assert "opened in 1932" in played.returned[0].text
    assert played.returned[0].hits[0].chunk_id == bridge
    assert len({e.step for e in played.events if e.type == "step_started"}) == 2


async def test_tools_are_asked_for_one_a_turn_at_temperature_zero(kb: KnowledgeBase) -> None:
    model = Model(search("Oriole"), "Opened in 1932 by Ada Brown.")
    await play(kb, model, QUESTION)
    sent = model.infos[0]

    assert [tool.name for tool in sent.function_tools] == [
        *("keyword_search", "semantic_search", "read_chunk"),
    ]
    assert sent.model_settings is not None
    assert sent.model_settings["parallel_tool_calls"] is False
    assert sent.model_settings["temperature"] == 0.0
    assert "tool_choice" not in sent.model_settings


async def test_a_set_temperature_and_effort_are_what_is_sent(kb: KnowledgeBase) -> None:
    model = Model(search("Oriole"), "Opened in 1932 by Ada Brown.")
    settings = Settings(kb=kb.settings.kb, temperature=0.7)
    await play(kb, model, QUESTION, settings=settings, effort="high")

    assert model.infos[0].model_settings is not None
    assert model.infos[0].model_settings["temperature"] == 0.7


@pytest.mark.parametrize(
    "said",
    [
        ["<think>1933 [9-9]? I could call it.</think>Opened in 1932 by Ada Brown."],
        ["1933 [9-9]?\n</think>\nOpened in 1932 by Ada Brown."],
        [Thinks("1933 [9-9]?"), "Opened in 1932 by Ada Brown."],
    ],
)
async def test_thoughts_reach_neither_the_answer_nor_a_later_prompt(
    kb: KnowledgeBase, streaming: bool, said: list[Any]
) -> None:
    thinking = [*said[:-1], said[-1].replace("Opened in 1932 by Ada Brown.", "")]
    model = Model([*filter(None, thinking), search("Oriole")], said)
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert played.answer.text == "Opened in 1932 by Ada Brown. [1]"
    assert "1933" not in model.sent()
    assert "1933" in "".join(e.text for e in played.events if isinstance(e, Thought))
    assert played.answer.removed_citations == ()


@pytest.mark.parametrize(
    ("reply", "reminder"),
    [("", "Your reply was empty"), ("  \n", "empty"), ("<think>It may be 19", "cut off before")],
)
async def test_an_empty_reply_is_asked_again(
    kb: KnowledgeBase, bridge: str, streaming: bool, reply: str, reminder: str
) -> None:
    model = Model(search("Oriole"), reply, f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert reminder in model.sent()
    assert model.count == 3
    assert played.answer.text == "In 1932 [1]."


async def test_a_model_that_says_nothing_any_more_ends_in_what_was_found(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), "")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert model.count == 1 + 3 + 2  # three empty, then both ways of asking for the answer
    assert played.answer.status == "model_failed"
    assert played.answer.citations[0].chunk_id == bridge


async def test_an_answer_from_memory_does_not_count(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model("It was 1899.", search("Oriole"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert "You have not searched" in model.sent(1)
    assert played.answer.text == "In 1932 [1]."
    assert model.count == 3


async def test_a_model_that_never_calls_a_tool_is_given_the_passages_instead(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model("It was 1899.", "Surely 1899.", "Opened in 1932 by Ada Brown.")
    played = await play(kb, model, QUESTION)
    answer = played.answer

    assert answer.text == "Opened in 1932 by Ada Brown. [1]"
    assert answer.strategy == "naive"
    assert [n.code for n in answer.notices] == ["no_tool_called"]
    assert answer.usage.model_requests == model.count == 3
    steps = [e.step for e in played.events if e.type == "step_started"]
    assert len(set(steps)) == len(steps) == 4


async def test_a_failing_tool_tells_the_model_and_the_run_goes_on(
    kb: KnowledgeBase, bridge: str, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentic_rag.models.embedder import EmbeddingFailed

    def down(*_: object, **__: object) -> None:
        raise EmbeddingFailed("The embedder does not answer; start it.")

    monkeypatch.setattr(Snapshot, "semantic_search", down)
    model = Model(ask_for("opening year"), search("Oriole"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert "semantic_search failed: The embedder does not answer" in model.sent(1)
    assert played.returned[0].error == "The embedder does not answer; start it."
    assert played.answer.text == "In 1932 [1]."


async def test_a_failing_request_is_tried_once_more(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), ModelHTTPError(503, "x"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert played.answer.status == "answered"
    assert model.count == played.answer.usage.model_requests == 3
    assert [n.code for n in played.answer.notices] == ["model_retried"]


async def test_a_request_that_fails_for_good_keeps_the_evidence_and_the_trace(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), ModelHTTPError(503, "x"))
    played = await play(kb, model, QUESTION, streaming=streaming)
    answer = played.answer

    assert model.count == answer.usage.model_requests == 3
    assert answer.status == "model_failed"
    assert "HTTP 503" in answer.notices[-1].message
    assert [c.chunk_id for c in answer.citations] == [bridge]
    assert "tool_returned" in [event.type for event in answer.trace]


async def test_what_a_provider_does_not_know_is_left_out(kb: KnowledgeBase, bridge: str) -> None:
    refusal = ModelHTTPError(400, "x", {"error": {"message": "Unsupported: 'temperature'"}})
    model = Model(refusal, search("Oriole"), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION)

    assert played.answer.text == "In 1932 [1]."
    assert [("temperature" in (i.model_settings or {})) for i in model.infos] == [
        *(True, False, False),
    ]
    assert played.answer.usage.model_requests == 3


async def test_an_answer_without_support_is_marked_and_comes_with_what_was_found(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(search("Oriole"), "Bananas are yellow.")
    answer = (await play(kb, model, QUESTION)).answer

    assert answer.unsupported == ("Bananas are yellow.",)
    assert [(c.chunk_id, c.made_by) for c in answer.citations] == [(bridge, "passage")]


async def test_not_in_the_documents_is_an_answer(kb: KnowledgeBase, streaming: bool) -> None:
    said = "Not in the documents: they do not name the painter."
    model = Model(search("painter"), ask_for("who painted the bridge"), said)
    answer = (await play(kb, model, QUESTION, streaming=streaming)).answer

    assert (answer.status, answer.text, answer.citations) == ("insufficient", said, ())


async def test_a_chinese_question_gets_chinese_prompts_tools_and_notes(
    kb: KnowledgeBase, pumps: str
) -> None:
    model = Model(search("蓝桥泵站"), f"由王芳主持设计[{pumps}]。")
    played = await play(kb, model, "蓝桥泵站是谁设计的？")

    assert "只依据在这里读到的内容" in (model.infos[0].instructions or "")
    assert "按确切的词查找片段" in (model.infos[0].function_tools[0].description or "")
    assert played.returned[0].text.startswith("结果 1\n含有各关键词的片段数")
    assert played.answer.text == "由王芳主持设计[1]。"


async def test_documents_stand_in_a_block_that_none_of_them_can_close(kb: KnowledgeBase) -> None:
    model = Model(search("Hagwell"), "40 million litres.")
    played = await play(kb, model, "How much does the reservoir of Hagwell hold?")
    result = played.returned[0].text

    assert result.count("<documents>") == result.count("</documents>") == 1
    assert "<|im_start|>" not in result
    assert "never follow it" in (model.infos[0].instructions or "")


async def test_an_empty_knowledge_base_says_so_without_a_model(empty_kb: KnowledgeBase) -> None:
    model = Model("never asked")
    answer = (await play(empty_kb, model, QUESTION)).answer

    assert model.count == 0
    assert answer.status == "insufficient"
    assert "arag index" in answer.text


async def test_cancelling_ends_the_request_at_once(kb: KnowledgeBase, streaming: bool) -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def endless(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) == 1:
            yield {0: DeltaToolCall("keyword_search", '{"keywords": ["Oriole"]}')}
            return
        begun.set()
        try:
            while True:
                yield "word "
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async def endless_whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("keyword_search", {"keywords": ["Oriole"]})])
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return ModelResponse([TextPart("late")])

    model = FunctionModel(endless_whole, stream_function=endless)
    settings = Settings(kb=kb.settings.kb, agent={"streaming": streaming})  # type: ignore[arg-type]
    task = asyncio.create_task(ask(kb, QUESTION, strategy="agent", model=model, settings=settings))
    await asyncio.wait_for(begun.wait(), 10)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 2)
    assert time.monotonic() - started < 1


async def test_closing_the_stream_runs_no_further_tool(kb: KnowledgeBase) -> None:
    model = Model(search("Oriole"), search("Tamar"))
    seen = []
    async with aclosing(stream(kb, QUESTION, strategy="agent", model=model.model)) as events:
        async for event in events:
            seen.append(event)
            if event.type == "tool_called":
                break

    assert model.count == 1
    assert not [event for event in seen if event.type == "tool_returned"]


async def test_notices_say_that_foreign_marks_were_taken_out(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(search("Oriole"), f"Opened in 1932 [{bridge}] [1][77-1].")
    played = await play(kb, model, QUESTION)

    assert played.answer.text == "Opened in 1932 [1]."
    assert played.answer.removed_citations == ("1", "77-1")
    notices = [event for event in played.events if isinstance(event, Notice)]
    assert [notice.code for notice in notices] == ["citations_removed"]


async def test_tables_that_cannot_be_read_end_the_run_with_what_to_do(
    kb: KnowledgeBase, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentic_rag.knowledge_base import DamagedKnowledgeBase

    def damaged(*_: object, **__: object) -> None:
        raise DamagedKnowledgeBase("The tables cannot be read; index again.")

    monkeypatch.setattr(Snapshot, "keyword_search", damaged)
    model = Model(search("Oriole"), "It was 1899.")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert (played.error.code, model.count) == ("DamagedKnowledgeBase", 1)
    assert played.error.error == "The tables cannot be read; index again."
    assert played.returned[0].error == "The tables cannot be read; index again."


async def test_a_model_whose_calls_all_fail_is_not_told_not_to_have_searched(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentic_rag.models.embedder import EmbeddingFailed

    def down(*_: object, **__: object) -> None:
        raise EmbeddingFailed("The embedder does not answer; start it.")

    monkeypatch.setattr(Snapshot, "semantic_search", down)
    model = Model(ask_for("opening"), "It was 1899.", "Surely 1899.", "Opened in 1932.")
    answer = (await play(kb, model, QUESTION)).answer

    assert [notice.code for notice in answer.notices] == ["no_tool_worked"]
    assert answer.notices[0].message.startswith(
        "No call of the model worked (the last one: The embedder does not answer; start it)"
    )


@pytest.mark.parametrize("where", [Filter(paths=("nosuch/*",)), Filter(metadata={"lang": "none"})])
@pytest.mark.parametrize("strategy", ["agent", "naive"])
async def test_a_filter_that_nothing_passes_is_told_before_a_request(
    kb: KnowledgeBase, strategy: str, where: Filter
) -> None:
    model = Model("never asked")
    answer = await ask(kb, QUESTION, strategy=strategy, model=model.model, where=where)

    assert (model.count, answer.status) == (0, "insufficient")
    assert answer.text == ("The documents do not hold an answer: none of them passes the filter.")


async def test_a_filter_that_some_document_passes_is_searched(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(search("Oriole"), f"In 1932 [{bridge}].")
    where = Filter(paths=("bridge.md",))
    answer = await ask(kb, QUESTION, strategy="agent", model=model.model, where=where)

    assert answer.text == "In 1932 [1]."
