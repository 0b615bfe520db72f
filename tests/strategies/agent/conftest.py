"""What the tests of the agent share: short pauses, and the ids of the documents' chunks."""

import pytest

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from tests.strategies.conftest import chunk_of


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streaming(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def bridge(kb: KnowledgeBase) -> str:
    return chunk_of(kb, "bridge.md")


@pytest.fixture
def clocks(kb: KnowledgeBase) -> str:
    return chunk_of(kb, "clocks.md")


@pytest.fixture
def pumps(kb: KnowledgeBase) -> str:
    return chunk_of(kb, "pumps.txt")
