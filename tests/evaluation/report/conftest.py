"""Runs written by hand, so that every figure of a report is known beforehand."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.evaluation.records import GoldQuestion, Result, RunInfo, Variant
from agentic_rag.evaluation.running.result_file import RESULTS, begin_run
from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.trace import (
    HitRecord,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolCalled,
    ToolReturned,
    TraceEvent,
    Usage,
)

QUESTIONS = (
    GoldQuestion(
        qid="q1",
        question="Who built Oriole Bridge?",
        answer="Ada Brown",
        supporting=("c1",),
        kind="bridge",
    ),
    GoldQuestion(
        qid="q2", question="蓝桥泵站有几台水泵？", answer="两台", supporting=("c2",), kind="pump"
    ),
    GoldQuestion(
        qid="q3",
        question="When did Plover House burn down?",
        answer="1902",
        supporting=("c3",),
        kind="bridge",
    ),
    GoldQuestion(
        qid="q4",
        question="What does Heron Mill grind?",
        answer="buckwheat",
        supporting=("c4",),
        kind="mill",
    ),
)

WriteRun = Callable[..., Path]


def hit(name: str, snippet: str = "") -> HitRecord:
    """A hit on the given chunk `c1`, whose chunk id is `1-1`."""
    return HitRecord(
        chunk_id=f"1-{name[1:]}", score=0.5, source_id=name, title="Chronicle", snippet=snippet
    )


def answer(
    question: str,
    text: str,
    *,
    found: Sequence[str] = (),
    read: Sequence[str] = (),
    cited: Sequence[str] = (),
    said: str = "",
    tokens: int = 100,
    **more: Any,
) -> Answer:
    """An agent's answer: a search that finds chunks, a call that reads some, and the text."""
    events: list[TraceEvent] = [RunStarted(question=question, strategy="agent", model="m")]
    for step, (name, names) in enumerate((("semantic_search", found), ("read_chunk", read)), 1):
        if names:
            call = {"call_id": f"c{step}", "name": name}
            shown = "\n".join(f"[1-{one[1:]}] Chronicle\n{said or 'text'}" for one in names)
            events += [
                StepStarted(step=str(step), name="think"),
                ToolCalled(**call, arguments={"query": question}, step=str(step)),
                ToolReturned(
                    **call,
                    text=shown,
                    hits=tuple(hit(one, said) for one in names),
                    retrieved_tokens=tokens,
                    duration=0.25,
                ),
                StepFinished(step=str(step), name="think", input_tokens=50, output_tokens=5),
            ]
    given: dict[str, Any] = {
        "status": "answered",
        "usage": Usage(
            input_tokens=50, output_tokens=5, retrieved_tokens=tokens, model_requests=2, cost=0.01
        ),
        "seconds": 2.0,
        **more,
    }
    return Answer(
        question=question,
        text=text,
        raw_text=text,
        citations=tuple(
            Citation(
                number=n, chunk_id=f"1-{one[1:]}", source_id=one, title="Chronicle", made_by="model"
            )
            for n, one in enumerate(cited, 1)
        ),
        trace=tuple(events),
        strategy="agent",
        model="m",
        **given,
    )


def results_of(variant: str = "agent") -> list[Result]:
    """Right; read but lost; failed; unanswered without having found anything."""
    one, two, _, four = (question.question for question in QUESTIONS)
    made = {"variant": variant, "finished": "2026-01-01T00:00:00+00:00"}
    return [
        Result(
            **made,
            qid="q1",
            outcome="answered",
            answer=answer(
                one,
                "Ada Brown built it [1].",
                found=["c4", "c1"],
                read=["c1"],
                cited=["c1"],
                said="It was built by Ada Brown.",
            ),
        ),
        Result(
            **made,
            qid="q2",
            outcome="answered",
            answer=answer(two, "三台。", found=["c2"], read=["c2"], tokens=300),
        ),
        Result(**made, qid="q3", outcome="failed", error="The model failed: no such model."),
        Result(
            **made,
            qid="q4",
            outcome="unanswered",
            answer=answer(four, "Not in the documents.", found=["c5"], status="insufficient"),
        ),
    ]


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    def write(
        name: str = "first",
        results: Mapping[str, Sequence[Result]] | None = None,
        *,
        questions: Sequence[GoldQuestion] = QUESTIONS,
        dataset: str = "birds",
        dataset_hash: str = "h",
        model: str = "m",
    ) -> Path:
        by_variant = {"agent": results_of()} if results is None else results
        directory = tmp_path / name
        info = RunInfo(
            dataset=f"/data/{dataset}",
            dataset_hash=dataset_hash,
            knowledge_base=str(tmp_path / "none"),
            variants=tuple(Variant(name=one, strategy="agent") for one in by_variant),
            model=model,
        )
        begin_run(directory, info, questions)
        lines = (one.model_dump_json() + "\n" for given in by_variant.values() for one in given)
        (directory / RESULTS).write_text("".join(lines), encoding="utf-8")
        return directory

    return write
