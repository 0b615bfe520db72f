"""The fourth stage, where the documents fall short: search the web, read the pages."""

import time
from collections.abc import AsyncGenerator

from agentic_rag.strategies.events import Event, HitRecord, Notice, StepStarted
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.workflow.parts import Run, finished
from agentic_rag.web_search import WebSearchUnavailable, read_results


async def search_web(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.web`; without a provider, or where it fails, the run goes on without."""
    if run.provider is None:
        run.web_problem = "no web search is set up"
        message = (
            "The documents fall short, and no web search is set up: the answer rests on the "
            "documents alone. The setting `web_search.provider` takes one."
        )
        yield Notice(level="warning", code="no_web_search", message=message)
        return
    step, started = run.next_step(), time.monotonic()
    known = {"provider": run.provider.name, "query": run.main_query}
    yield StepStarted(step=step, name="web_search", input=dict(known))
    try:
        results = await run.provider.search(run.main_query, language=run.language)
    except WebSearchUnavailable as error:
        run.web_problem = str(error)
        message = f"{error} The answer rests on the documents alone."
        yield Notice(level="warning", code="web_search_unavailable", message=message)
        yield finished(step, "web_search", started, {}, error=str(error))
        return
    pages = await read_results(results, run.main_query, run.question.settings)
    local = {passage.uri for passage in run.passages}
    texts = {" ".join(passage.text.split()) for passage in run.passages}
    new = [p for p in pages if p.url not in local and " ".join(p.text.split()) not in texts]
    run.web = [
        Passage(
            chunk_id=f"0-{number}",  # a mark that no document can have
            text=page.text,
            title=page.title,
            uri=page.url,
            snippet=" ".join(page.text.split())[:300],
            origin="web",
        )
        for number, page in enumerate(new, start=1)
    ]
    for page in new:
        if page.problem:
            # What to do about an address is for whoever typed it; here the search gave it.
            reason = page.problem.partition(";")[0].rstrip(".")
            message = f"{reason}: what the search said of it stands in."
            yield Notice(level="info", code="page_not_read", message=message)
    if not run.web:
        run.web_problem = "the web search found nothing"
        message = "The web search found nothing: the answer rests on the documents alone."
        yield Notice(level="warning", code="web_search_empty", message=message)
    hits = tuple(
        HitRecord(chunk_id="", score=0.0, title=p.title, uri=p.uri, snippet=p.snippet)
        for p in run.web
    )
    yield finished(step, "web_search", started, {"results": len(results)}, hits=hits)
