"""Asking: what is refused, what a run looks like, and that it can be saved and read again."""

import asyncio
import json

import pytest
from pydantic_ai.models.test import TestModel

from agentic_rag import ask_sync
from agentic_rag.config import Settings
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import (
    EVENT,
    EVENTS,
    TRACE,
    HitRecord,
    RunFailed,
    RunFinished,
    RunStarted,
    StepStarted,
    ToolCalled,
    ToolReturned,
)
from agentic_rag.strategies.run import (
    STRATEGIES,
    AnswerFailed,
    BadQuestion,
    ask,
    stream,
)

QUESTION = "When was the Oriole Bridge opened?"


@pytest.mark.parametrize("question", ["", "  \n"])
async def test_an_empty_question_is_refused(kb: KnowledgeBase, question: str) -> None:
    with pytest.raises(BadQuestion, match="empty; ask something"):
        await ask(kb, question)


async def test_an_unknown_strategy_names_the_known_ones(kb: KnowledgeBase) -> None:
    with pytest.raises(BadQuestion, match=r"'magic'; use one of: .*naive"):
        await ask(kb, QUESTION, strategy="magic")


async def test_a_run_begins_and_ends_with_its_own_events(kb: KnowledgeBase) -> None:
    events = [event async for event in stream(kb, QUESTION, strategy="naive", model=TestModel())]

    first, last = events[0], events[-1]
    assert isinstance(first, RunStarted)
    assert (first.question, first.strategy, first.model) == (QUESTION, "naive", "test:test")
    assert first.why == "The caller gave this model."
    assert isinstance(last, RunFinished)
    times = [event.seconds for event in events]
    assert times == sorted(times)
    assert [event.type for event in last.answer.trace] == [
        *("run_started", "step_started", "step_finished", "step_started", "step_finished"),
        "usage",
    ]


async def test_the_step_of_the_search_holds_its_hits(kb: KnowledgeBase) -> None:
    answer = await ask(kb, QUESTION, model="none")
    search = next(event for event in answer.trace if event.type == "step_finished")

    assert search.hits[0].title == "bridge.md" or "Bridge" in search.hits[0].title
    assert search.hits[0].snippet


async def test_a_saved_run_reads_back_as_it_was(kb: KnowledgeBase) -> None:
    events = tuple(
        [event async for event in stream(kb, QUESTION, strategy="naive", model=TestModel())]
    )
    saved = EVENTS.dump_json(events)

    assert EVENTS.validate_json(saved) == events
    answer = json.loads(saved)[-1]["answer"]
    assert Answer.model_validate(answer).model_dump(mode="json") == answer
    assert TRACE.validate_python(answer["trace"])
    assert EVENT.validate_python({"type": "answer_delta", "text": "x"}).type == "answer_delta"


def test_events_of_later_strategies_fit() -> None:
    hit = HitRecord(chunk_id="1-2", score=0.5, snippet="…")
    events = (
        StepStarted(step="3", name="judge", parent="2", input={"scale": 5, "passed": [True, None]}),
        ToolCalled(call_id="a", name="keyword_search", arguments={"keywords": ["x"]}, step="3"),
        ToolCalled(call_id="b", name="read_chunk", arguments="not an object"),
        ToolReturned(call_id="a", name="keyword_search", text="[1-2] …", hits=(hit,)),
        RunFailed(error="No more.", code="AragError"),
    )

    assert EVENTS.validate_json(EVENTS.dump_json(events)) == events


async def test_a_failing_strategy_ends_in_an_error_that_holds_the_trace(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(question: object):  # type: ignore[no-untyped-def]
        yield StepStarted(step="1", name="search")
        raise AragError("The store is gone; bring it back.")

    monkeypatch.setitem(STRATEGIES, "failing", failing)

    with pytest.raises(AnswerFailed, match="bring it back") as caught:
        await ask(kb, QUESTION, strategy="failing", model="none")
    assert [event.type for event in caught.value.trace] == ["run_started", "step_started"]


async def test_a_question_sees_one_version_of_the_knowledge_base(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    take = KnowledgeBase.snapshot

    def counted(self: KnowledgeBase) -> object:
        taken.append(self)
        return take(self)

    monkeypatch.setattr(KnowledgeBase, "snapshot", counted)
    await ask(kb, QUESTION, strategy="naive", model=TestModel())

    assert len(taken) == 1


async def test_the_event_loop_stays_free_during_a_question(kb: KnowledgeBase) -> None:
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    other = asyncio.create_task(other_work())
    await ask(kb, QUESTION, model="none")
    other.cancel()

    assert turns > 3


def test_one_model_serves_several_event_loops(kb: KnowledgeBase) -> None:
    model = TestModel()

    assert ask_sync(kb, QUESTION, strategy="naive", model=model).status == "answered"
    assert ask_sync(kb, QUESTION, strategy="naive", model=model).status == "answered"


async def test_settings_given_win_over_those_of_the_knowledge_base(kb: KnowledgeBase) -> None:
    answer = await ask(kb, QUESTION, settings=Settings(model="none", answer={"passages": 1}))  # type: ignore[arg-type]

    assert len(answer.citations) == 1


async def test_ask_sync_in_a_running_loop_says_what_to_write(kb: KnowledgeBase) -> None:
    with pytest.raises(AragError, match=r"write `await ask\(\.\.\.\)`"):
        ask_sync(kb, QUESTION, model="none")


async def test_a_question_or_history_of_another_kind_is_one_sentence(kb: KnowledgeBase) -> None:
    with pytest.raises(BadQuestion, match="no text but NoneType"):
        await ask(kb, None, model="none")  # type: ignore[arg-type]
    with pytest.raises(BadQuestion, match="`history` holds a tuple; give a Turn"):
        await ask(kb, QUESTION, model="none", history=[("q", "a")])  # type: ignore[list-item]


async def test_limits_of_the_agent_are_told_where_another_strategy_answers(
    kb: KnowledgeBase,
) -> None:
    limits = {"max_steps": 3, "max_cost": 0.1}
    settings = Settings(model="none", agent=limits)  # type: ignore[arg-type]
    answer = await ask(kb, QUESTION, settings=settings)

    assert answer.notices[0].message == (
        "Only the strategy `agent` keeps `agent.max_steps`, `agent.max_cost`; `naive` does not."
    )
