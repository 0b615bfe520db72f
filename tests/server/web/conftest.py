"""A browser, and a server whose model plays an agent; skipped where there is no Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.cli.running import write_notes
from tests.server.listening import served

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api")

if CHROMIUM is None:
    collect_ignore_glob = ["test_*.py"]


@dataclass
class Pages:
    """Opens pages of a server; what the browser's console complains of is kept."""

    browser: Any
    address: str
    complaints: list[str] = field(default_factory=list)

    @contextmanager
    def opened(self, where: str = "", **context: Any) -> Iterator[Any]:
        made = self.browser.new_context(**{"locale": "en-US", **context})
        page = made.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        page.goto(f"{self.address}/{where}")
        try:
            yield page
        finally:
            made.close()


# Not for the session: as long as it is driven its event loop runs, and no test of another module
# may have one of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb", model="none")


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base, which each test gets a copy of."""
    folder = tmp_path_factory.mktemp("served")
    made = KnowledgeBase.open(folder / "kb", settings=Settings(kb=folder / "kb"))
    notes = write_notes(folder)
    hostile = "The hostile fee is <script>alert(2)</script> 7.\n"
    (notes / "<img src=x onerror=alert(1)>.txt").write_text(hostile)
    made.add([notes])
    return folder / "kb"


@pytest.fixture
def kb(settings: Settings, indexed_once: Path) -> KnowledgeBase:
    shutil.copytree(indexed_once, settings.kb)
    return KnowledgeBase.open(settings.kb, settings=settings)


@pytest.fixture
def pages(browser: Any, kb: KnowledgeBase, settings: Settings) -> Iterator[Pages]:
    with served(create_app(settings, kb=kb)) as address:
        yield Pages(browser, address)
