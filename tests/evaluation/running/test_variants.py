"""Names of systems under test, and the settings that make them differ."""

import pytest

from agentic_rag.config import BadOverride, Settings
from agentic_rag.evaluation.records import Variant
from agentic_rag.evaluation.running.variants import (
    ABLATIONS,
    BadVariant,
    settings_of,
    swept,
    variants_of,
)


def test_strategies_and_ablations_are_named_once_each() -> None:
    found = variants_of("naive, agent-naive ,naive")

    assert [one.name for one in found] == ["naive", "agent-naive"]
    assert settings_of(Settings(), found[0]) == Settings()
    assert settings_of(Settings(), found[1]).agent.tools == ("semantic_search",)


def test_all_and_ablations_stand_for_lists() -> None:
    strategies = ["agent", "naive", "pipeline", "workflow"]
    assert [one.name for one in variants_of("all")] == strategies
    assert [one.name for one in variants_of("ablations")] == ["agent", *ABLATIONS]


@pytest.mark.parametrize("names", ["", " , ", "agnet", "agent;naive"])
def test_a_name_that_is_none_is_told_with_those_there_are(names: str) -> None:
    with pytest.raises(BadVariant, match="agent-without-keyword"):
        variants_of(names)


def test_a_sweep_is_every_pair() -> None:
    found = swept([5, 10], ["low", "high"])

    assert [one.name for one in found] == [
        "agent-5-steps-low",
        "agent-5-steps-high",
        "agent-10-steps-low",
        "agent-10-steps-high",
    ]
    agent = settings_of(Settings(), found[2]).agent
    assert (agent.max_steps, agent.effort) == (10, "low")
    assert [one.name for one in swept([5, 5], [])] == ["agent-5-steps"]
    with pytest.raises(BadVariant, match="no effort 'hard'"):
        swept([], ["hard"])


@pytest.mark.parametrize(
    "overrides",
    [{"agent.max_steps": 0}, {"agent.nothing": 1}, {"nothing.x": 1}, {"model": "none"}],
)
def test_an_override_that_cannot_be_used_is_named(overrides: dict[str, int]) -> None:
    variant = Variant(name="x", strategy="agent", overrides=overrides)

    with pytest.raises(BadOverride, match=next(iter(overrides))):
        settings_of(Settings(), variant)
