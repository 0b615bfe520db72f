"""The agent's whole path over published data, by a policy whose every number is known before."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.evaluation.dataset import Dataset, load_dataset
from agentic_rag.evaluation.measures.run_scores import score_run
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.evaluation.running.runner import run_evaluation
from agentic_rag.evaluation.running.variants import variants_of
from agentic_rag.knowledge_base import KnowledgeBase
from tests.knowledge_base.embedders import HashEmbedder

DATA = Path(__file__).parents[4] / "shared" / "data"
SETS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (DATA / name).is_dir(), reason=f"{name} is not here (../shared/data/{name})"
        ),
    )
    for name in ("hotpotqa", "musique")
]
COUNT = 20
FATES = ("right", "lost", "unread", "unsurfaced", "failed")  # of every fifth question
KINDS = {
    "right": None,
    "lost": "read_but_lost",
    "unread": "not_read",
    "unsurfaced": "never_surfaced",
    "failed": "failed",
}
_PLAIN = re.compile(r"[A-Za-z0-9 ,]+")  # a keyword's blanks are plain ones, not so all texts'
Said = str | tuple[str, dict[str, list[str]]]


def policy(dataset: Dataset, kb: KnowledgeBase) -> FunctionModel:
    """Searches for the first words of what bears the answer, reads it, answers from gold: so far
    as the question's fate lets it."""
    [document] = kb.documents()
    chunks = {str(chunk.source_id): chunk for chunk in kb.chunks(document.number)}
    fates = {q.question: (q, FATES[n % 5]) for n, q in enumerate(dataset.questions)}

    def says(gold: GoldQuestion, fate: str, seen: int) -> Said:
        bearing = [chunks[one] for one in gold.supporting]
        chunk_ids = [chunk.chunk_id for chunk in bearing]
        if fate == "failed":
            raise ModelHTTPError(400, "policy", {"error": {"message": "refused"}})
        if seen == 0:
            phrases = [max(_PLAIN.findall(chunk.text), key=len)[:60].strip() for chunk in bearing]
            return "keyword_search", {"keywords": ["qzxv"] if fate == "unsurfaced" else phrases}
        if seen == 1 and fate in ("right", "lost"):
            return "read_chunk", {"chunk_ids": chunk_ids}
        marks = "".join(f" [{one}]" for one in chunk_ids)
        return f"{gold.answer}{marks}" if fate == "right" else "Quagga."

    async def plays(
        messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        parts = [part for message in messages for part in message.parts]
        sent = " ".join(str(one.content) for one in parts if isinstance(one, UserPromptPart))
        gold, fate = next(fates[question] for question in fates if question in sent)
        said = says(gold, fate, sum(isinstance(one, ToolReturnPart) for one in parts))
        if isinstance(said, str):
            yield said
        else:
            yield {0: DeltaToolCall(said[0], json.dumps(said[1]), tool_call_id=f"c{len(parts)}")}

    return FunctionModel(stream_function=plays, model_name="policy")


@pytest.mark.parametrize("name", SETS)
async def test_the_numbers_are_those_of_the_policy(name: str, tmp_path: Path) -> None:
    dataset = load_dataset(DATA / name)
    settings = Settings(
        kb=tmp_path / "kb", agent=AgentSettings(whole_short_chunks=False), model="none"
    )
    kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    assert dataset.chunks is not None
    kb.add([dataset.chunks])

    end = await run_evaluation(
        dataset,
        variants_of("agent"),
        kb=kb,
        run_dir=tmp_path / "run",
        settings=settings,
        model=policy(dataset, kb),
        limit=COUNT,
    )

    assert (end.ended, len(end.run.results)) == ("done", COUNT)
    scored = score_run(tmp_path / "run")
    fates = [FATES[n % 5] for n in range(COUNT)]
    assert [one.error_kind for one in scored.scores] == [KINDS[fate] for fate in fates]
    by_fate = {
        fate: [one for one, its in zip(scored.scores, fates, strict=True) if its == fate]
        for fate in FATES
    }
    right = by_fate["right"]
    assert all(one.contain and one.exact and one.f1 == 1 for one in right)
    assert all(one.citation_precision == one.citation_recall == 1 for one in right)
    for fate, surfaced, read, steps in (  # a step is a turn of the model
        ("right", 1, 1, 3),
        ("lost", 1, 1, 3),
        ("unread", 1, 0, 2),
        ("unsurfaced", 0, 0, 2),
    ):
        found = by_fate[fate]
        assert {one.surfaced_recall for one in found} == {surfaced}, fate
        assert {one.read_recall for one in found} == {read}, fate
        assert {one.steps for one in found} == {steps}, fate
    [summary] = scored.summaries
    assert (summary.questions, summary.answered, summary.failed) == (20, 16, 4)
    assert summary.contain is not None and summary.contain.mean == 0.2
    assert summary.exact is not None and summary.exact.mean == 0.2
    assert summary.f1 is not None and summary.f1.mean == 0.2
    assert dict(summary.error_kinds) == {
        "failed": 4,
        "never_surfaced": 4,
        "not_read": 4,
        "read_but_lost": 4,
    }
