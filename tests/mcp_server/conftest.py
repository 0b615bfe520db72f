"""A small knowledge base with the small deterministic embedder, and clients of its server."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.mcp_server.server import mcp_server
from agentic_rag.mcp_server.serving import Serving, asking
from tests.cli.running import write_notes
from tests.knowledge_base.embedders import HashEmbedder

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb", model="none")


@pytest.fixture
def kb(settings: Settings, tmp_path: Path) -> KnowledgeBase:
    made = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    made.add([write_notes(tmp_path)])
    return made


@pytest.fixture
def connect(kb: KnowledgeBase) -> Connect:
    """A client of a server over `kb`; of both generations of the protocol."""

    def connected(
        settings: Settings | None = None,
        *,
        mode: str = "legacy",
        local: bool = True,
        model: Any = None,
    ) -> Client:
        used = settings or kb.settings
        serving = Serving(
            used, lambda create: kb, asking(used, lambda create: kb, model), local=local
        )
        return Client(mcp_server(serving), mode=mode)

    return connected


def said(result: Any) -> str:
    """The text of a tool's result."""
    return "".join(part.text for part in result.content)
