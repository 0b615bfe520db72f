"""The three retrieval tools as a Pydantic AI toolset, for an agent of anyone's own."""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.strategies.agent.arguments import BadArguments, as_object
from agentic_rag.strategies.agent.prompts import Language, described
from agentic_rag.strategies.agent.tools import Retrieval, schema

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_core import SchemaValidator

    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, KnowledgeBase

_RUNS_KEPT = 64  # runs whose context tracker is remembered
_UNREADABLE = "INVALID_JSON"  # as Pydantic AI names what was sent instead of an object


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
        async def call(ctx: "RunContext[Any]", /, **arguments: Any) -> str:
            # By run, so that a toolset can serve many at once.
            own = await asyncio.to_thread(retrieval, ctx.run_id or "")
            sent = arguments.get(_UNREADABLE, arguments)
            return (await asyncio.to_thread(own.call, name, sent)).text

        made: Tool[Any] = Tool.from_schema(
            call,
            name,
            described(name, language, settings.agent.tools).text,
            schema(name, language, settings.search.top_k, settings.agent.tools),
            takes_ctx=True,
        )
        made.function_schema.validator = cast("SchemaValidator", _Repaired(name))
        return made

    return FunctionToolset([tool(name) for name in settings.agent.tools])


class _Repaired:
    """Validates the arguments of a tool as the agent reads them: whatever a model sends becomes an
    object. An agent of anyone's own would end at a list, and at the second text that is no JSON."""

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def validate_json(self, sent: str | bytes, **_: object) -> dict[str, object]:
        text = sent if isinstance(sent, str) else bytes(sent).decode("utf-8", "replace")
        return self.validate_python(text)

    def validate_python(self, sent: object, **_: object) -> dict[str, object]:
        try:
            return dict(as_object(self._tool, sent))
        except BadArguments:  # which the tool answers, with an example
            return {_UNREADABLE: sent}
