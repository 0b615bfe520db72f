"""Reranking and fusion: each route by the reranker, then together; or together, then reranked."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from typing import Any

from agentic_rag.errors import AragError
from agentic_rag.retrieval.coarse import Candidate, fused, fused_by_score, merged
from agentic_rag.strategies.events import Event, HitRecord, Notice, StepStarted
from agentic_rag.strategies.pipeline.parts import Run, finished
from agentic_rag.strategies.pipeline.recalling import ranking

Ordered = list[tuple[Candidate, float]]


async def rank(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.rankings`: one, or one a route where each has an answer of its own."""
    assert run.coarse is not None
    step, started = run.next_step(), time.monotonic()
    fusion = run.settings.fusion
    known = {"model": run.reranker.name} if run.reranker else {}
    yield StepStarted(step=step, name="rank", input={"fusion": fusion, **known})
    lists: dict[str, Sequence[Candidate]] = {
        route.name: route.candidates for route in run.coarse.routes if route.candidates
    }
    if fusion == "merged":
        lists = {"both": merged(list(lists.values()))} if lists else {}
    ordered: dict[str, Ordered] = {}
    problem = ""
    for name, candidates in lists.items():
        if not problem:
            try:
                ordered[name] = await _reranked(run, candidates)
                continue
            except AragError as error:
                problem = str(error)
                message = f"{problem} The order of the searches stands."
                yield Notice(level="warning", code="rerank", message=message)
        # One that has just failed is not asked for the other route.
        ordered[name] = [(one, one.score) for one in candidates]
    if fusion == "rrf" and ordered:
        ordered = {"both": _fused(run, ordered)}
    run.rankings = await asyncio.to_thread(
        lambda: [ranking(run, name, scored) for name, scored in ordered.items()]
    )
    output: dict[str, Any] = {one.name: [hit.chunk_id for hit in one.hits] for one in run.rankings}
    hits = {hit.chunk_id: hit for one in run.rankings for hit in one.hits}
    records = tuple(HitRecord(**asdict(hit)) for hit in hits.values())
    yield finished(step, "rank", started, output, hits=records, error=problem)


def _fused(run: Run, ordered: dict[str, Ordered]) -> Ordered:
    """The reranked routes by reciprocal ranks of their best; without a reranker, whose scores make
    the routes alike, by their scores as the hybrid search does it."""
    assert run.coarse is not None
    search = run.question.settings.search
    if run.reranker is None:
        return fused_by_score(run.coarse, search)
    best = run.settings.passages
    return fused([[one for one, _ in scored[:best]] for scored in ordered.values()], search.rrf_k)


async def _reranked(run: Run, candidates: Sequence[Candidate]) -> Ordered:
    """The candidates by the reranker, best first; in their own order where there is none."""
    if run.reranker is None:
        return [(one, one.score) for one in candidates]
    few = candidates[: run.question.settings.rerank.candidates]
    texts = await asyncio.to_thread(_texts, run, few)
    kept = [one for one in few if one.chunk_id in texts]
    ranked = await run.reranker.rerank(run.question.text, [texts[one.chunk_id] for one in kept])
    named = {one.index for one in ranked}
    rest = [(one, float("-inf")) for index, one in enumerate(kept) if index not in named]
    return [(kept[one.index], one.score) for one in ranked] + rest


def _texts(run: Run, candidates: Sequence[Candidate]) -> dict[str, str]:
    """What the reranker reads of each: the file's path, then the chunk with its knowledge path."""
    read = run.question.snapshot.read_chunk([one.chunk_id for one in candidates])
    return {chunk.chunk_id: f"{chunk.uri}\n{chunk.text}" for chunk in read.chunks}
