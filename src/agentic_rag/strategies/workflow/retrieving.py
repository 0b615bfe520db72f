"""The second stage: every query by BM25 and by vectors, fused, and reordered where there is a
reranker."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import asdict, replace
from typing import Any

from agentic_rag.errors import AragError
from agentic_rag.models.reranker import Ranked, Reranker
from agentic_rag.retrieval import Recalled, ScoredHit, recall
from agentic_rag.strategies.events import Event, HitRecord, Notice, StepFinished, StepStarted, Usage
from agentic_rag.strategies.listwise import Listwise
from agentic_rag.strategies.passages import passages_for
from agentic_rag.strategies.support import names_met
from agentic_rag.strategies.workflow.parts import Run, finished


async def retrieve(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.hits` and `run.passages` from `run.queries`."""
    settings = run.question.settings
    wanted = settings.answer.passages
    candidates = max(wanted, settings.rerank.candidates) if run.reranker else wanted
    step, started = run.next_step(), time.monotonic()
    queries = list(run.queries)
    run.looked_for += [query for query in queries if query not in run.looked_for]
    yield StepStarted(step=step, name="retrieve", input={"queries": list(queries)})
    found: Recalled = await asyncio.to_thread(
        recall,
        run.question.snapshot,
        queries,
        top_k=candidates,
        where=run.question.where,
        settings=settings,
    )
    hits = _joined(run.hits, found.hits)
    run.related = (
        run.related
        or found.related
        or names_met(run.question.text, (scored.hit.snippet for scored in found.hits))
    )
    for message in found.notices:
        yield Notice(level="warning", code="search", message=message)
    output: dict[str, Any] = {
        "types": list(dict.fromkeys(hit.search_type for hit in found.hits)),
        "found": len(found.hits),
        "related": run.related,
    }
    yield StepFinished(
        step=step,
        name="retrieve",
        output=output,
        hits=tuple(record(hit) for hit in hits[:wanted]),
        duration=time.monotonic() - started,
    )
    if run.reranker is not None and hits:
        async for event in _rerank(run, hits):
            yield event
    else:
        run.hits = hits
    run.hits = run.hits[:wanted]
    found_hits = [scored.hit for scored in run.hits]
    run.passages = await asyncio.to_thread(passages_for, run.question, found_hits)


def _joined(earlier: tuple[ScoredHit, ...], new: tuple[ScoredHit, ...]) -> tuple[ScoredHit, ...]:
    """Hits of two rounds in the order of their scores, each chunk once."""
    best: dict[str, ScoredHit] = {}
    for hit in (*earlier, *new):
        known = best.get(hit.hit.chunk_id)
        if known is None or hit.fused_score > known.fused_score:
            best[hit.hit.chunk_id] = hit
    return tuple(sorted(best.values(), key=lambda hit: -hit.fused_score))


async def _rerank(run: Run, hits: tuple[ScoredHit, ...]) -> AsyncGenerator[Event, None]:
    assert run.reranker is not None
    step, started = run.next_step(), time.monotonic()
    spent = run.reranker.usage if isinstance(run.reranker, Listwise) else Usage(cost=0.0)
    yield StepStarted(step=step, name="rerank", input={"model": run.reranker.name})
    texts = await asyncio.to_thread(_texts, run, hits)
    kept = [hit for hit in hits if hit.hit.chunk_id in texts]
    failed = ""
    ranked: list[Ranked] = []
    try:
        ranked = await run.reranker.rerank(
            run.main_query, [texts[hit.hit.chunk_id] for hit in kept]
        )
    except AragError as error:
        failed = str(error)
        message = f"{failed} The order of the searches stands."
        yield Notice(level="warning", code="rerank", message=message)
    used = _since(spent, run.reranker)
    run.usage += used
    first = [replace(kept[one.index], rerank_score=one.score) for one in ranked]
    named = {one.index for one in ranked}
    run.hits = (*first, *(hit for index, hit in enumerate(kept) if index not in named))
    wanted = run.question.settings.answer.passages
    records = tuple(record(hit) for hit in run.hits[:wanted])
    output = {"ranked": len(ranked)}
    yield finished(step, "rerank", started, output, usage=used, hits=records, error=failed)


def _since(before: Usage, reranker: Reranker) -> Usage:
    """What the chat model has spent as a reranker since then."""
    if not isinstance(reranker, Listwise):
        return before
    now = reranker.usage
    return Usage(
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        model_requests=now.model_requests - before.model_requests,
        cost=None if now.cost is None or before.cost is None else now.cost - before.cost,
        estimated=now.estimated,
    )


def _texts(run: Run, hits: tuple[ScoredHit, ...]) -> dict[str, str]:
    read = run.question.snapshot.read_chunk([hit.hit.chunk_id for hit in hits])
    return {chunk.chunk_id: chunk.text for chunk in read.chunks}


def record(scored: ScoredHit) -> HitRecord:
    """A hit with the scores of every route."""
    return HitRecord(
        **asdict(scored.hit),
        vector_score=scored.vector_score,
        keyword_score=scored.keyword_score,
        fused_score=scored.fused_score,
        rerank_score=scored.rerank_score,
        search_type=scored.search_type,
    )
