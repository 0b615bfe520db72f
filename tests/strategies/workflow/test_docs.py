"""docs/workflow.md: its lines of Python run; no field of an event and no key of a stage is missing
or left over."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import events as every
from agentic_rag.strategies.events import StepFinished, StepStarted
from tests.strategies.workflow.stages import POOR, Stages, events_of

PAGE = (Path(__file__).parents[3] / "docs" / "workflow.md").read_text(encoding="utf-8")


def table_under(heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading line: names of the first cell to the others."""
    lines = PAGE.partition(f"{heading}\n")[2].lstrip().splitlines()
    rows = [line.strip("|").split("|") for line in lines[: lines.index("")][2:]]
    return {
        name: [cell.strip() for cell in row[1:]]
        for row in rows
        for name in re.findall(r"`(\w+)`", row[0])
    }


async def test_the_lines_of_python_print_the_stages(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARAG_MODEL", "none")
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert '"notes.arag"' in lines
    lines = lines.replace('"notes.arag"', repr(str(kb.directory)))
    await asyncio.to_thread(exec, lines, {})
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == ["rewrite", "retrieve", "evaluate"]


async def test_the_table_of_stages_has_every_key(kb: KnowledgeBase) -> None:
    stages = table_under("it. Each stage is one `step_started` and one `step_finished`:")
    seen = set()
    for model in (
        Stages(),
        Stages(rewrite=["no object"], evaluate=[json.dumps(POOR)]),
        Stages(evaluate=["no object"]),
    ):
        for event in await events_of(kb, "When did the bridge open?", model):
            if isinstance(event, StepStarted):
                assert all(f"`{key}`" in stages[event.name][0] for key in event.input), event
            elif isinstance(event, StepFinished):
                assert all(f"`{key}`" in stages[event.name][1] for key in event.output), event
                seen.add(event.name)
    assert seen == {"rewrite", "retrieve", "evaluate", "answer"}
    assert set(stages) == {*seen, "rerank", "web_search"}


def test_the_table_of_events_has_every_field() -> None:
    fields = table_under("All fields of the events:")
    for name in (
        "RunStarted",
        "StepStarted",
        "StepFinished",
        "Notice",
        "UsageReported",
        "Thought",
        "ThoughtDelta",
        "AnswerDelta",
        "AnswerReset",
        "RunFinished",
        "RunFailed",
    ):
        event = getattr(every, name)
        (told,) = fields[event.model_fields["type"].default]
        assert all(f"`{one}`" in told for one in set(event.model_fields) - {"type", "seconds"}), (
            name
        )
