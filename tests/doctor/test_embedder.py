"""The check-up of an embedder behind a server: what is wrong, and what to do, in seconds."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.doctor.parts import parts
from agentic_rag.doctor.records import Part
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models.embedders.resolve import resolve
from tests.models.embedders.embedding_server import EmbeddingServer, running

KEY = "sk-very-secret-0123"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    resolve.cache_clear()
    with running() as server:
        yield server


def checked(tmp_path: Path, server: EmbeddingServer, **embedding: Any) -> Part:
    embedding = {"model": "openai:m", "base_url": server.base_url, **embedding}
    settings = Settings(kb=tmp_path / "kb", model="none", embedding=embedding)
    return next(part for part in parts(settings) if part.name == "embedder")


def test_a_server_that_works_is_tried_with_one_text(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    part = checked(tmp_path, server)
    assert part.works
    assert (part.value, part.detail) == ("openai:m", "16 dimensions")
    assert len(server.requests) == 1


def test_a_wrong_key_or_address_or_model_is_told_with_its_cure(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    began = time.monotonic()
    server.script = [(401, {}, {"error": {"message": f"bad key {KEY}"}})]
    part = checked(tmp_path, server, api_key_env="MY_KEY")
    assert "refuses the key in MY_KEY" in part.detail
    assert KEY not in part.detail
    assert part.cure.startswith("Put the right key")

    server.script = [(404, {}, {"detail": "Not Found"})]
    assert "embedding.model and embedding.base_url" in checked(tmp_path, server).cure

    assert "OTHER_KEY" in checked(tmp_path, server, api_key_env="OTHER_KEY").detail

    server.die()
    part = checked(tmp_path, server)
    assert part.works is False
    assert "cannot be reached" in part.detail
    assert part.cure.startswith("Start it, or correct")
    assert time.monotonic() - began < 30  # patience is 180


def test_another_width_than_the_knowledge_bases_is_told(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    embedding = {"model": "openai:m", "base_url": server.base_url}
    KnowledgeBase.open(tmp_path / "kb", settings=Settings(embedding=embedding))
    server.vector = lambda text: [1.0, 2.0]  # type: ignore[method-assign]
    resolve.cache_clear()
    part = checked(tmp_path, server)
    assert part.works is False
    assert "2 numbers came, not of 16" in part.detail
