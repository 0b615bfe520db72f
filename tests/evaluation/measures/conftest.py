"""A small corpus of given chunks: long ones, a short one, and two of equal text."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from tests.knowledge_base.embedders import HashEmbedder

_FILLER = " ".join(
    f"Report {n} lists what was counted in month {n} of that year." for n in range(20)
)
CHUNKS = [
    {"id": "bridge", "text": f"The Oriole Bridge was opened by Ada Brown. {_FILLER}"},
    {"id": "ada", "text": f"Ada Brown was born in Hagwell. {_FILLER.replace('Report', 'Letter')}"},
    {"id": "clock", "text": "The Meyer clock strikes at noon."},
    {"id": "dam", "text": "The Hagwell dam holds back the Tamar."},
    {"id": "dam copy", "text": "The Hagwell dam holds  back the Tamar."},
    {"id": "泵站", "text": "蓝桥泵站由王芳主持设计。"},
]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "DEEPSEEK"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")  # where nothing listens


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    path: Path = tmp_path_factory.mktemp("corpus") / "chunks.json"
    path.write_text(json.dumps(CHUNKS, ensure_ascii=False), encoding="utf-8")
    settings = Settings(kb=tmp_path_factory.mktemp("kb"), model="none")
    kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    kb.add([path])
    yield kb


@pytest.fixture(scope="session")
def ids(corpus: KnowledgeBase) -> dict[str, str]:
    """Chunk ids by the ids that the chunks were given."""
    number = corpus.documents()[0].number
    return {str(chunk.source_id): chunk.chunk_id for chunk in corpus.chunks(number)}
