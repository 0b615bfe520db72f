"""How `agent.effort` reaches a model, and what is said where it does not."""

import pytest

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.question import Turn as Before
from agentic_rag.strategies.run import ask
from tests.strategies.agent.playing import Model, play, search
from tests.strategies.agent.test_wire import QUESTION, SEARCH
from tests.strategies.scripted_server import Script, Turn, serving


async def asked(
    kb: KnowledgeBase, script: Script, *, history: tuple[Before, ...] = (), **more: object
) -> Answer:
    settings = Settings(
        base_url=script.address,
        model="qwen3",
        agent=AgentSettings(effort="high"),
        **more,  # type: ignore[arg-type]
    )
    return await ask(kb, QUESTION, settings=settings, history=history)


def codes(answer: Answer) -> list[str]:
    return [notice.code for notice in answer.notices]


async def test_a_server_of_ones_own_is_sent_the_effort_whatever_its_model(
    kb: KnowledgeBase, bridge: str
) -> None:
    with serving(SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script)

    assert [request["reasoning_effort"] for request in script.requests] == ["high", "high"]
    assert codes(answer) == []


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        '"llama3.2" does not support thinking',
        "body.reasoning_effort: Extra inputs are not permitted",
    ],
)
async def test_a_server_that_refuses_it_is_asked_without_and_the_reader_is_told_once(
    kb: KnowledgeBase, bridge: str, message: str
) -> None:
    refusal = Turn(status=400, error={"message": message})
    with serving(refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script)

    assert answer.text == "Opened in 1932 [1]."
    assert ["reasoning_effort" in request for request in script.requests] == [True, False, False]
    assert codes(answer) == ["setting_refused"]
    assert answer.notices[0].message.startswith("`agent.effort` is not sent any more")
    assert "(HTTP 400)" in answer.notices[0].message


async def test_a_refusal_in_the_first_request_of_a_follow_up_does_not_spoil_it(
    kb: KnowledgeBase, bridge: str
) -> None:
    refusal = Turn(status=400, error={"message": "reasoning_effort is unknown"})
    alone = Turn(["When was the Oriole Bridge opened?"])
    answers = (SEARCH, Turn([f"Opened in 1932 [{bridge}]."]))
    with serving(refusal, alone, *answers) as script:
        history = (Before("What crosses the Tamar?", "The Oriole Bridge [1].", (bridge,)),)
        answer = await asked(kb, script, history=history)

    assert codes(answer) == ["setting_refused"]  # and not that it was not rewritten
    assert ["reasoning_effort" in request for request in script.requests] == [
        *(True, False, False, False),
    ]
    assert answer.usage.model_requests == 4


async def test_a_temperature_that_is_refused_is_told_only_where_it_was_set(
    kb: KnowledgeBase, bridge: str
) -> None:
    refusal = Turn(status=400, error={"message": "temperature must be 1"})
    turns = (refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."]))
    with serving(*turns) as script:
        told = await asked(kb, script, temperature=0.3)
    with serving(*turns) as script:
        settings = Settings(base_url=script.address, model="qwen3")
        untold = await ask(kb, QUESTION, settings=settings)

    assert codes(told) == ["setting_refused"]
    assert "`temperature` is not sent" in told.notices[0].message
    assert codes(untold) == []


async def test_a_model_that_nothing_can_tell_it_is_named_once(
    kb: KnowledgeBase, bridge: str
) -> None:
    model = Model(search("Oriole"), f"Opened in 1932 [{bridge}].")
    answer = (await play(kb, model, QUESTION, effort="high")).answer

    assert codes(answer) == ["effort_not_sent"]
    assert "scripted is not known to reason" in answer.notices[0].message
    assert model.infos[0].model_settings is not None
    assert model.infos[0].model_settings["temperature"] == 0.0


async def test_a_strategy_that_has_no_use_for_it_says_so(kb: KnowledgeBase, bridge: str) -> None:
    with serving(Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, strategy="naive")

    assert codes(answer) == ["effort_not_sent"]
    assert (
        "Only the strategy `agent` keeps `agent.effort`; `naive` does not."
        in answer.notices[0].message
    )
