"""A draft is never lost to the request that was to refine it; over a real wire."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from agentic_rag.cli.asking import SoFar
from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import AnswerDelta, AnswerReset, Event, RunFinished
from agentic_rag.strategies.run import stream
from tests.strategies.conftest import chunk_of
from tests.strategies.scripted_server import Script, Turn, serving

QUESTION = "When was the Oriole Bridge opened?"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)
    monkeypatch.setenv("SCRIPTED_KEY", "key")


def settings_of(script: Script) -> Settings:
    return Settings(
        base_url=script.address,
        api_key_env="SCRIPTED_KEY",
        model="openai:any",
        strategy="pipeline",
    )


async def events_of(kb: KnowledgeBase, *turns: Turn) -> list[Event]:
    with serving(*turns) as script:
        return [event async for event in stream(kb, QUESTION, settings=settings_of(script))]


def answer_of(events: Sequence[Event]) -> Answer:
    assert isinstance(events[-1], RunFinished)
    return events[-1].answer


def shown(events: Sequence[Event]) -> str:
    """What a reader sees in the end."""
    so_far = SoFar()
    for event in events:
        so_far.take(event)
    return so_far.text


BROKEN = {
    "a server's error": (Turn(status=500, error={"message": "no"}), "HTTP 500"),
    "an empty reply": (Turn([""]), "empty"),
    "thoughts without an end": (Turn(["<think>The bridge"]), "still thinking"),
    "a reply cut off": (
        Turn(["The Oriole Bridge was opened in 1932 [ID], and"], finish="length"),
        "cut off",
    ),
    "a connection broken off": (
        Turn(["The Oriole Bridge was opened in 1932 [ID], and"], break_off=True),
        "end mark",
    ),
    "nothing found": (Turn(["Not in the ", "documents: who opened it."]), "holds no answer"),
    "nothing found, in bold": (Turn(["**Not in the documents:** the year."]), "holds no answer"),
    "sources that are none": (
        Turn(["It was opened in 1932 [77-1] by the mayor [Smith 2020][88-2]."]),
        "none of the sources",
    ),
    "no source at all": (Turn(["Some bridges are old and fine things."]), "none of the sources"),
}


@pytest.mark.parametrize("fault", BROKEN)
async def test_a_draft_stands_where_refining_it_fails(kb: KnowledgeBase, fault: str) -> None:
    bridge = chunk_of(kb, "bridge.md")
    turn, said = BROKEN[fault]
    pieces = [str(piece).replace("ID", bridge) for piece in turn.pieces]
    second = Turn(
        pieces,
        status=turn.status,
        error=turn.error,
        finish=turn.finish,
        break_off=turn.break_off,
    )
    events = await events_of(kb, Turn([f"It was opened in 1932 [{bridge}]."]), second)

    answer = answer_of(events)
    assert answer.text == shown(events) == "It was opened in 1932 [1]."
    assert answer.status == "answered"
    assert answer.raw_text == f"It was opened in 1932 [{bridge}]."
    assert [citation.made_by for citation in answer.citations] == ["model"]
    notice = next(notice for notice in answer.notices if notice.code == "not_refined")
    assert notice.level == "warning"
    assert said in notice.message
    assert answer.usage.model_requests >= 2


async def test_a_refined_answer_is_shown_as_it_comes_and_once(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    refined = ["The bridge was opened in 1932", f" [{bridge}].", f" By Ada Brown [{bridge}]."]
    events = await events_of(kb, Turn([f"In 1932 [{bridge}]."]), Turn(refined))
    answer = answer_of(events)
    assert answer.text == shown(events)
    assert answer.text == "The bridge was opened in 1932 [1]. By Ada Brown [1]."
    assert not any(isinstance(event, AnswerReset) for event in events)
    assert sum(isinstance(event, AnswerDelta) for event in events) > 1
    assert answer.notices == ()


async def test_a_short_refined_answer_comes_whole(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    events = await events_of(kb, Turn([f"1932 [{bridge}]."]), Turn([f"In 1932 [{bridge}]."]))
    assert answer_of(events).text == shown(events) == "In 1932 [1]."


async def test_what_was_shown_of_a_refined_answer_that_fails_is_taken_back(
    kb: KnowledgeBase,
) -> None:
    bridge = chunk_of(kb, "bridge.md")
    half = Turn([f"The Oriole Bridge was opened in 1932 [{bridge}], and"], finish="length")
    events = await events_of(kb, Turn([f"In 1932 [{bridge}]."]), half)
    assert sum(isinstance(event, AnswerReset) for event in events) == 1


async def test_a_draft_and_a_refined_answer_without_sources_list_the_passages(
    kb: KnowledgeBase,
) -> None:
    vague = Turn(["Some bridges are old and fine things."])
    answer = answer_of(await events_of(kb, vague, vague))
    assert answer.citations and answer.citations[0].made_by == "passage"
    assert answer.text.startswith("Some bridges are old and fine things.\n\nNo sentence above")


@pytest.mark.parametrize("turn", [Turn(hang=True), Turn(["The bridge, a fine "] * 99, delay=0.1)])
async def test_a_question_stopped_while_it_is_refined_leaves_the_draft(
    kb: KnowledgeBase, turn: Turn
) -> None:
    bridge = chunk_of(kb, "bridge.md")
    so_far = SoFar()
    refining = asyncio.Event()

    async def follow(script: Script) -> None:
        async with aclosing(stream(kb, QUESTION, settings=settings_of(script))) as events:
            async for event in events:
                so_far.take(event)
                if event.type == "step_started" and event.name == "answer":
                    refining.set()

    with serving(Turn([f"In 1932 [{bridge}]."]), turn) as script:
        task = asyncio.create_task(follow(script))
        await asyncio.wait_for(refining.wait(), 20)
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert so_far.text == "In 1932 [1]."
    stopped = so_far.answer()
    assert stopped is not None
    assert (stopped.status, stopped.citations[0].chunk_id) == ("stopped", bridge)
    assert stopped.usage.model_requests == 2
