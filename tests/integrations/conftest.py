"""A small real knowledge base, with the real embedder, made once."""

from collections.abc import Iterator

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase

BRIDGE = "# Oriole Bridge\n\nThe Oriole Bridge was opened in 1932 by Ada Brown.\n"
PUMPS = "蓝桥泵站于1999年在青岛建成，由王芳主持设计。\n"


@pytest.fixture(scope="session")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "bridge.md").write_text(BRIDGE, encoding="utf-8")
    (folder / "泵站.txt").write_text(PUMPS, encoding="utf-8")
    settings = Settings(kb=tmp_path_factory.mktemp("kb"), model="none")
    made = KnowledgeBase.open(settings.kb, settings=settings)
    made.add([folder])
    yield made
