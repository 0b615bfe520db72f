"""Twenty questions about three laws, ten of which these answer: the right path each time.

Retrieval is real; the model's part is scripted: it rewrites as the data file says, and finds the
passages good exactly if one of the right articles stands in them.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from tests.strategies.workflow.stages import GOOD, POOR, Stages, events_of, output_of, stages_of

ROOT = Path(__file__).parents[3]
LAWS = ROOT.parent / "shared/data/laws"
CASES = json.loads((ROOT / "benchmarks/data/workflow_questions.json").read_text(encoding="utf-8"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LAWS.is_dir(), reason="the laws are not here (../shared/data/laws)"),
]


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    settings = Settings(model="none", kb=tmp_path_factory.mktemp("kb"))
    kb = KnowledgeBase.open(settings.kb, settings=settings)
    kb.add(LAWS)
    return kb


def judge(case: dict[str, Any]) -> Any:
    """A judge that knows the right articles: their first line must stand in the passages."""

    def judged(prompt: str) -> str:
        right = any(re.search(rf"^{a}\s", prompt, re.MULTILINE) for a in case["articles"])
        return json.dumps(GOOD if right and case["law"] in prompt else POOR)

    return judged


def scripted(case: dict[str, Any]) -> Stages:
    rewriting = {"query": case["rewritten"], "variants": case["variants"]}
    return Stages(
        rewrite=[json.dumps(rewriting, ensure_ascii=False)],
        evaluate=[judge(case)],
        answer=["见所引条文。"],
    )


@pytest.mark.parametrize("case", CASES[:10], ids=lambda case: case["question"])
async def test_what_the_laws_answer_takes_the_direct_path(
    laws: KnowledgeBase, case: dict[str, Any]
) -> None:
    events = await events_of(laws, case["question"], scripted(case))
    assert stages_of(events) == ["rewrite", "retrieve", "evaluate", "answer"]
    assert output_of(events, "evaluate")["passed"] is True


@pytest.mark.parametrize("case", CASES[10:], ids=lambda case: case["question"])
async def test_what_the_laws_do_not_answer_takes_the_web_path(
    laws: KnowledgeBase, case: dict[str, Any]
) -> None:
    settings = Settings(
        model="none", web_search={"provider": "searxng", "url": "http://127.0.0.1:9"}
    )
    events = await events_of(laws, case["question"], scripted(case), settings=settings)
    assert stages_of(events) == ["rewrite", "retrieve", "evaluate", "web_search", "answer"]
    assert output_of(events, "evaluate")["passed"] is False
