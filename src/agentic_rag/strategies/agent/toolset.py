"""The three retrieval tools as a Pydantic AI toolset, for an agent of anyone's own."""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from agentic_rag.strategies.agent.prompts import Language, described
from agentic_rag.strategies.agent.tools import TOOLS, Retrieval, schema

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import FunctionToolset

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, KnowledgeBase

_RUNS_KEPT = 64  # runs whose context tracker is remembered


def retrieval_toolset(
    kb: "KnowledgeBase",
    *,
    settings: "Settings | None" = None,
    where: "Filter | None" = None,
    language: Language = "en",
) -> "FunctionToolset[Any]":
    """`keyword_search`, `semantic_search` and `read_chunk` over `kb`.

    Each run of the agent sees one version of the knowledge base, and has a context tracker of its
    own: what it has read is not sent to it again. `where` limits every call, `language` is that
    of the descriptions and notes.
    """
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import FunctionToolset

    settings = settings or kb.settings
    runs: OrderedDict[str, Retrieval] = OrderedDict()

    def retrieval(run_id: str) -> Retrieval:
        if run_id not in runs:
            runs[run_id] = Retrieval(kb.snapshot(), settings, language, where)
            while len(runs) > _RUNS_KEPT:
                runs.popitem(last=False)
        runs.move_to_end(run_id)
        return runs[run_id]

    def tool(name: str) -> "Tool[Any]":
        async def call(ctx: "RunContext[Any]", **arguments: Any) -> str:
            # By run, so that a toolset can serve many at once.
            own = await asyncio.to_thread(retrieval, ctx.run_id or "")
            return (await asyncio.to_thread(own.call, name, arguments)).text

        return Tool.from_schema(
            call,
            name,
            described(name, language).text,
            schema(name, language, settings.search.top_k),
            takes_ctx=True,
        )

    return FunctionToolset([tool(name) for name in TOOLS])
