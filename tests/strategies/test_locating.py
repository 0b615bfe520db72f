"""A citation says where the sentence stands that it cites."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.run import ask
from tests.knowledge_base.embedders import HashEmbedder

HANDBOOK = """# Staff handbook

## Holidays

Every employee has thirty days of holiday a year, which are taken by the end of March.

## Notice period

The notice period is six weeks to the end of a quarter.

## 试用期

试用期为三个月，期满前一周通知结果。
"""


@pytest.mark.parametrize(
    ("said", "section"),
    [
        ("The notice period is six weeks to the end of a quarter [ID].", "Notice period"),
        ("Each employee has thirty days of holiday a year [ID].", "Holidays"),
        ("试用期为三个月 [ID]。", "试用期"),
        ("The notice period is six weeks to the end of a quarter.", "Notice period"),
    ],
)
async def test_a_citation_names_the_section_of_the_sentence_it_cites(
    tmp_path: Path, said: str, section: str
) -> None:
    path = tmp_path / "handbook.md"
    path.write_text(HANDBOOK, encoding="utf-8")
    settings = Settings(kb=tmp_path / "kb", model="none")
    kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    kb.add(path)
    (chunk,) = kb.chunks(kb.document("handbook.md").number)
    said = said.replace("ID", chunk.chunk_id)

    async def written(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield said

    model = FunctionModel(stream_function=written)
    question = "How many days of holiday does an employee have?"
    answer = await ask(kb, question, strategy="pipeline", model=model)
    assert answer.citations[0].section.endswith(section)
