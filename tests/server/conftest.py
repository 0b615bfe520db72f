"""A small knowledge base with the small deterministic embedder, and a client in this process."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.cli.running import write_notes
from tests.knowledge_base.embedders import HashEmbedder

Api = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb", model="none")


@pytest.fixture
def kb(settings: Settings, tmp_path: Path) -> KnowledgeBase:
    made = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    made.add([write_notes(tmp_path)])
    return made


@pytest.fixture
def fees(kb: KnowledgeBase) -> str:
    """The id of the chunk that tells the yearly fee."""
    return kb.chunks(kb.document("fees.txt").number)[0].chunk_id


@pytest.fixture
def api(kb: KnowledgeBase) -> Api:
    """Opens a client of a server over `kb`; what is given goes to the section `server`."""

    @asynccontextmanager
    async def opened(model: Any = None, **server: Any) -> AsyncIterator[httpx.AsyncClient]:
        section = kb.settings.server.model_copy(update=server)
        app = create_app(kb.settings.model_copy(update={"server": section}), kb=kb, model=model)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client,
        ):
            yield client

    return opened


def events_in(text: str) -> list[tuple[str, str]]:
    """The type and the data of each server-sent event."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], lines["data"]))
    return found
