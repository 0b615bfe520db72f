"""Coarse ranking: the candidates of the two routes, with their counts and times."""

import asyncio
import time
from collections.abc import AsyncGenerator

from agentic_rag.retrieval.coarse import Candidate, Coarse, coarse, fused_by_score
from agentic_rag.strategies.events import Event, Notice, StepStarted
from agentic_rag.strategies.passages import passages_for
from agentic_rag.strategies.pipeline.parts import Ranking, Run, finished


async def recall_routes(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.coarse`."""
    step, started = run.next_step(), time.monotonic()
    yield StepStarted(
        step=step, name="retrieve", input={"sparse": list(run.sparse), "dense": list(run.dense)}
    )
    run.coarse = await asyncio.to_thread(_coarse, run)
    for message in run.coarse.notices:
        yield Notice(level="warning", code="search", message=message)
    sparse, dense = run.coarse.routes
    output = {
        "by_words": len(sparse.candidates) - sparse.by_path,
        "by_path": sparse.by_path,
        "by_vectors": len(dense.candidates),
        "ms_by_words": round(1000 * sparse.seconds),
        "ms_by_vectors": round(1000 * dense.seconds),
        "related": run.coarse.related,
    }
    yield finished(step, "retrieve", started, output)


def _coarse(run: Run) -> Coarse:
    return coarse(
        run.question.snapshot,
        run.sparse,
        run.dense,
        where=run.question.where,
        settings=run.settings,
    )


def take_in_order(run: Run) -> None:
    """The rankings by the order of the routes alone, without a reranker."""
    run.coarse = _coarse(run)
    scored = fused_by_score(run.coarse, run.question.settings.search)
    run.rankings = [ranking(run, "both", scored)]


def ranking(run: Run, name: str, scored: list[tuple[Candidate, float]]) -> Ranking:
    """The best of `scored`, as hits and as passages."""
    assert run.coarse is not None
    hits = run.coarse.hits(scored[: run.settings.passages])
    return Ranking(name, hits, passages_for(run.question, hits))
