"""docs/agent.md: the lines for an agent of one's own run; no point of the display is missing."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from tests.knowledge_base.embedders import HashEmbedder

PAGE = Path(__file__).parents[3] / "docs" / "agent.md"


def test_the_ten_lines_for_an_agent_of_ones_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pump.md").write_text("# Pump\n\nIt was replaced in 2019.\n", encoding="utf-8")
    settings = Settings(kb=tmp_path / "notes.arag")
    made = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    made.add([tmp_path / "pump.md"])

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("keyword_search", {"keywords": ["pump"]})])
        return ModelResponse([TextPart(str(messages[-1].parts[0].content))])  # type: ignore[union-attr]

    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (lines,) = [block for block in blocks if "retrieval_toolset(kb)" in block]
    assert '"openai:gpt-6-luna"' in lines
    scripted: dict[str, Any] = {"model": FunctionModel(play)}
    monkeypatch.chdir(tmp_path)
    exec(lines.replace('"openai:gpt-6-luna"', "model"), scripted)

    assert "replaced in 2019" in capsys.readouterr().out


def test_the_page_names_every_point_of_the_display() -> None:
    page = PAGE.read_text(encoding="utf-8")
    flags = [n for n, f in AgentSettings.model_fields.items() if f.annotation is bool]

    assert all(f"| `{name}` |" in page for name in flags if name != "streaming")
