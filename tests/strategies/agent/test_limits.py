"""Limits at steps, tokens and cost: exact counts, the status, and a usable answer each time."""

import pytest
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.agent.history import History
from tests.strategies.agent.playing import Call, Model, play, read, search

QUESTION = "When was the Oriole Bridge opened?"
WORDS = ["Oriole", "Tamar", "trains", "Ada", "Meyer", "Ulm", "clocks", "Hagwell", "litres"]


def searches(count: int) -> list[Call]:
    return [search(WORDS[number]) for number in range(count)]


@pytest.mark.parametrize("steps", [1, 3])
async def test_at_the_step_limit_the_answer_is_asked_for_once_with_tools_forbidden(
    kb: KnowledgeBase, bridge: str, streaming: bool, steps: int
) -> None:
    model = Model(*searches(steps), f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=steps)
    answer = played.answer

    assert (answer.status, answer.text) == ("forced_by_steps", "In 1932 [1].")
    assert model.count == answer.usage.model_requests == steps + 1
    assert played.run == ["keyword_search"] * steps
    last = model.infos[-1]
    assert last.model_settings is not None
    assert last.model_settings["tool_choice"] == "none"
    assert len(last.function_tools) == 3  # kept, so that the prompt cache lives
    assert "No more tool calls are possible" in model.sent()


async def test_a_model_that_calls_on_gets_its_calls_answered_and_one_plain_request(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(*searches(3), [search("Ulm"), read(bridge)], f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=3)
    answer = played.answer

    assert (answer.status, answer.text) == ("forced_by_steps", "In 1932 [1].")
    assert model.count == 5
    assert played.run == ["keyword_search"] * 3
    assert [event.error for event in played.returned[3:]] == ["no more calls are possible"] * 2
    assert model.infos[-1].function_tools == []
    assert "opened in 1932 by Ada Brown" in model.sent()  # what was read is in it


async def test_a_model_that_never_stops_calling_ends_in_the_best_passages(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    written = '```json\n{"name": "keyword_search", "arguments": {"keywords": ["Ulm"]}}\n```'
    model = Model(*searches(3), search("Ulm"), written)
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=3)
    answer = played.answer

    assert answer.status == "forced_by_steps"
    assert answer.unanswered
    assert "The search was cut short" in answer.text
    assert "It was opened in 1932 by Ada Brown." in answer.text
    assert answer.citations[0].chunk_id == bridge
    assert model.count == 5
    assert "keyword_search" not in answer.text


async def test_always_searching_makes_exactly_the_stated_number_of_calls(
    kb: KnowledgeBase, streaming: bool
) -> None:
    model = Model(search("Oriole"))
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=3)

    assert len(played.called) == 3 + 1  # the last one is answered and not run
    assert model.count == 3 + 2
    assert played.answer.status == "forced_by_steps"


async def test_the_token_limit_keeps_every_request_within_the_budget(
    kb: KnowledgeBase, bridge: str, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    plain = History.add_replies

    def watched(self: History, replies: object) -> None:
        plain(self, replies)  # type: ignore[arg-type]
        sizes.append(self.tokens)

    monkeypatch.setattr(History, "add_replies", watched)
    model = Model(*searches(9))
    settings = Settings(kb=kb.settings.kb, max_output_tokens=200)
    played = await play(
        kb, model, QUESTION, streaming=streaming, settings=settings, token_budget=2000
    )
    answer = played.answer

    assert answer.status == "forced_by_budget"
    assert 1 < len(played.run) < 9
    assert max(sizes) <= 2000 - 200
    assert model.count == len(played.run) + 2  # this model calls on when it is told to stop
    assert answer.citations


async def test_a_budget_too_small_for_any_step_still_gives_the_best_passages(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model("never asked")
    answer = (await play(kb, model, QUESTION, token_budget=1000)).answer

    assert model.count == 0
    assert answer.status == "forced_by_budget"
    assert answer.unanswered
    assert answer.citations[0].chunk_id == bridge
    assert answer.text.startswith("The passages nearest to the question:")
    assert [notice.code for notice in answer.notices] == ["never_asked"]
    steps = [event for event in answer.trace if event.type == "step_finished"]
    assert [(step.name, step.hits[0].chunk_id) for step in steps] == [("search", bridge)]


async def test_the_budget_named_as_the_least_is_enough_to_ask_once(kb: KnowledgeBase) -> None:
    told = (await play(kb, Model("never asked"), QUESTION, token_budget=1000)).answer
    least = int(told.notices[0].message.rstrip(".").rpartition(" ")[2].replace(",", ""))
    below, at = Model(search("Oriole")), Model(search("Oriole"))
    await play(kb, below, QUESTION, token_budget=least - 200)
    await play(kb, at, QUESTION, token_budget=least)

    assert "`agent.token_budget`" in told.notices[0].message
    assert (below.count, at.count > 0) == (0, True)


async def test_thoughts_that_never_end_are_told_in_one_way(
    kb: KnowledgeBase, streaming: bool
) -> None:
    model = Model(search("Oriole"), "<think>It may be 19")
    answer = (await play(kb, model, QUESTION, streaming=streaming)).answer

    assert [notice.code for notice in answer.notices] == [
        *("asked_again", "asked_again", "no_answer_cut_off"),
    ]
    assert "cut off while it was still thinking" in answer.text
    assert "empty" not in answer.text


async def test_a_history_past_the_model_s_own_context_ends_in_a_shorter_plain_request(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    too_long = ModelContextWindowExceededError("small", "too long")
    model = Model(search("Oriole"), too_long, f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming)

    assert played.answer.status == "forced_by_budget"
    assert played.answer.text == "In 1932 [1]."
    assert model.infos[-1].function_tools == []
    assert model.count == 3


async def test_the_cost_limit_leaves_room_for_the_answer(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), f"In 1932 [{bridge}].", name="gpt-4o-mini")
    played = await play(kb, model, QUESTION, streaming=streaming, max_cost=0.005)
    answer = played.answer

    assert (answer.status, answer.text) == ("forced_by_cost", "In 1932 [1].")
    assert model.count == 2
    assert answer.usage.cost is not None
    assert 0 < answer.usage.cost < 0.005


async def test_a_cost_limit_that_is_not_reached_changes_nothing(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(*searches(2), f"In 1932 [{bridge}].", name="gpt-4o-mini")
    played = await play(kb, model, QUESTION, max_cost=1.0)

    assert played.answer.status == "answered"
    assert played.answer.notices == ()


async def test_a_cost_limit_without_a_known_price_is_told_once(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(*searches(3), f"In 1932 [{bridge}].")
    answer = (await play(kb, model, QUESTION, max_cost=0.01)).answer

    assert answer.status == "answered"
    assert [notice.code for notice in answer.notices] == ["price_unknown"]
    assert answer.usage.cost is None


async def test_a_provider_that_cannot_forbid_tools_is_asked_without_them(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    refusal = ModelHTTPError(400, "x", {"error": {"message": "tool_choice is not supported"}})
    model = Model(search("Oriole"), refusal, f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=1)

    assert played.answer.text == "In 1932 [1]."
    assert played.answer.status == "forced_by_steps"
    assert model.infos[-1].function_tools == []


async def test_a_model_that_fails_at_the_limit_leaves_what_was_found(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), ModelHTTPError(503, "x"))
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=1)

    assert played.answer.status == "forced_by_steps"
    assert played.answer.citations[0].chunk_id == bridge
    assert "HTTP 503" in played.answer.notices[-1].message
    assert model.count == 3


async def test_an_empty_answer_at_the_limit_is_asked_for_in_the_plain_way(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    model = Model(search("Oriole"), "", f"In 1932 [{bridge}].")
    played = await play(kb, model, QUESTION, streaming=streaming, max_steps=1)

    assert (played.answer.status, played.answer.text) == ("forced_by_steps", "In 1932 [1].")
    assert model.count == 3


async def test_a_context_that_is_full_names_the_setting_that_says_its_size(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(*[search(word) for word in ("Oriole", "Meyer", "Hagwell", "泵站")] * 4)
    small = Settings(kb=kb.settings.kb, context_tokens=2600, max_output_tokens=200)
    answer = (await play(kb, model, QUESTION, settings=small)).answer
    by_budget = (await play(kb, Model(*model.turns), QUESTION, token_budget=2600)).answer

    assert answer.status == by_budget.status == "forced_by_budget"
    full = [notice.message for notice in answer.notices if notice.code == "context_full"]
    assert len(full) == 1
    assert full[0].startswith("The search ends because the model's context, 2,600 tokens, is full.")
    assert "`context_tokens`" in full[0]
    assert "context_full" not in [notice.code for notice in by_budget.notices]
