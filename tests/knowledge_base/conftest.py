"""Knowledge bases for tests; `kb` has the small deterministic embedder, `real_kb` the real one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from tests.knowledge_base.embedders import HashEmbedder


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def kb(tmp_path: Path, embedder: HashEmbedder) -> KnowledgeBase:
    return KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=embedder)


@pytest.fixture
def real_kb(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase.open(tmp_path / "kb", settings=Settings())


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file below `docs` and give its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
