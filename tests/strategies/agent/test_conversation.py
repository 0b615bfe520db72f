"""Follow-up questions: made self-contained, with earlier evidence by id and title only."""

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.agent import show_prompt
from agentic_rag.strategies.question import Turn
from tests.strategies.agent.playing import Model, play, read, search

FIRST = "When was the Oriole Bridge opened?"
FOLLOW_UP = "And who opened it?"
ALONE = "Who opened the Oriole Bridge?"


@pytest.fixture
def history(bridge: str) -> tuple[Turn, ...]:
    return (Turn(FIRST, "It was opened in 1932 [1].", (bridge,)),)


async def test_a_follow_up_is_made_self_contained_by_one_small_request(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...], streaming: bool
) -> None:
    model = Model(ALONE, search("Oriole"), f"Ada Brown did [{bridge}].")
    played = await play(kb, model, FOLLOW_UP, streaming=streaming, history=history)
    answer = played.answer

    assert answer.question == FOLLOW_UP
    assert answer.text == "Ada Brown did [1]."
    assert model.count == answer.usage.model_requests == 3
    assert model.infos[0].function_tools == []
    assert FIRST in model.sent(0) and FOLLOW_UP in model.sent(0)
    assert f"Question: {ALONE}" in model.sent(1)
    steps = [event for event in played.events if event.type == "step_finished"]
    assert (steps[0].name, steps[0].output) == ("rewrite", {"question": ALONE})


async def test_earlier_evidence_is_sent_as_ids_with_titles_and_never_in_full(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...]
) -> None:
    model = Model(ALONE, read(bridge), f"Ada Brown did [{bridge}].")
    played = await play(kb, model, FOLLOW_UP, history=history)

    assert f"[{bridge}] Oriole Bridge" in model.sent(1)
    assert "does not carry trains" not in model.sent(1)
    assert "It was opened in 1932" in model.sent(1)  # the earlier answer, in brief
    assert "[1]" not in model.sent(1)  # its marks mean nothing here
    assert played.run == ["read_chunk"]  # read again on request
    assert "does not carry trains" in model.sent(2)


async def test_without_a_tool_to_read_nothing_is_said_of_reading_again(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...]
) -> None:
    model = Model(ALONE, search("Oriole"), f"Ada Brown did [{bridge}].")
    await play(kb, model, FOLLOW_UP, history=history, tools=("keyword_search",))

    assert f"Chunks that those answers rest on: [{bridge}] Oriole Bridge" in model.sent(1)
    assert "read_chunk" not in model.sent(1)


async def test_an_answer_from_what_was_found_earlier_needs_no_search(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...]
) -> None:
    model = Model("What year again?", f"In 1932 [{bridge}].")
    answer = (await play(kb, model, "What year again?", history=history)).answer

    assert answer.text == "In 1932 [1]."
    assert model.count == 2


@pytest.mark.parametrize("reply", ["", "x " * 2000, ModelHTTPError(400, "x")])
async def test_where_the_rewriting_fails_the_question_is_asked_as_it_stands(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...], reply: str | Exception
) -> None:
    model = Model(reply, search("Oriole"), f"Ada Brown did [{bridge}].")
    answer = (await play(kb, model, FOLLOW_UP, history=history)).answer

    assert answer.text == "Ada Brown did [1]."
    assert f"Question: {FOLLOW_UP}" in model.sent(1)
    assert answer.notices[0].code == "not_rewritten"


async def test_thoughts_of_the_rewriting_are_left_out(
    kb: KnowledgeBase, bridge: str, history: tuple[Turn, ...]
) -> None:
    model = Model(f"<think>it = bridge</think>{ALONE}", search("Oriole"), f"Ada [{bridge}].")
    await play(kb, model, FOLLOW_UP, history=history)

    assert f"Question: {ALONE}" in model.sent(1)
    assert "it = bridge" not in model.sent(1)


async def test_evidence_that_was_removed_since_is_left_out(kb: KnowledgeBase, bridge: str) -> None:
    history = (Turn(FIRST, "In 1932.", ("99-1", bridge)),)
    model = Model(ALONE, search("Oriole"), f"Ada [{bridge}] [99-1].")
    answer = (await play(kb, model, FOLLOW_UP, history=history)).answer

    assert "99-1" not in model.sent(1)
    assert answer.removed_citations == ("99-1",)


async def test_long_earlier_answers_are_cut(kb: KnowledgeBase, bridge: str) -> None:
    turns = tuple(Turn(f"Question {n}?", f"Answer {n}. " * 2000) for n in range(20))
    model = Model(ALONE, search("Oriole"), f"Ada [{bridge}].")
    await play(kb, model, FOLLOW_UP, history=turns)

    assert "Question 13?" not in model.sent(1)
    assert "Question 14?" in model.sent(1)
    assert len(model.sent(1)) < 12_000


async def test_chinese_follow_ups_have_chinese_prompts(kb: KnowledgeBase, pumps: str) -> None:
    history = (Turn("蓝桥泵站是谁设计的？", "王芳[1]。", (pumps,)),)
    alone = "蓝桥泵站何时建成？"
    model = Model(alone, search("蓝桥泵站"), f"1999年建成[{pumps}]。")
    answer = (await play(kb, model, "它何时建成？", history=history)).answer

    assert "请改写对话中的最后一个问题" in (model.infos[0].instructions or "")
    assert f"问题：{alone}" in model.sent(1)
    assert answer.text == "1999年建成[1]。"


async def test_the_shown_prompt_is_what_is_sent(kb: KnowledgeBase, bridge: str) -> None:
    model = Model(search("Oriole"), f"In 1932 [{bridge}].")
    await play(kb, model, FIRST)
    shown = show_prompt(kb, FIRST)

    sent = model.infos[0]
    assert (sent.instructions or "") in shown
    assert shown.endswith(f"--- user message ---\n\n{model.sent(0)}")
    for tool in sent.function_tools:
        assert f'"name": "{tool.name}"' in shown
        assert str(tool.parameters_json_schema["properties"].popitem()[1]["description"]) in shown
