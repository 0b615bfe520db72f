"""The tools as a client lists them: names, descriptions, and schemas of the arguments."""

from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from agentic_rag.mcp_server.wording import Language, described, read
from agentic_rag.strategies.agent.prompts import described as described_to_the_agent
from agentic_rag.strategies.agent.tools import TOOLS, schema
from agentic_rag.strategies.run import STRATEGIES

if TYPE_CHECKING:
    from agentic_rag.config import Settings

MOST_LISTED = 100  # documents of one page
LISTED = 50
ADD = "add_document"

_ARGUMENTS: dict[str, dict[str, dict[str, Any]]] = {
    "ask": {
        "question": {"type": "string"},
        "strategy": {"type": "string", "enum": sorted(STRATEGIES)},
    },
    "list_documents": {
        "containing": {"type": "string"},
        "after": {"type": "integer", "minimum": 0},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": LISTED},
    },
    ADD: {
        "url": {"type": "string"},
        "text": {"type": "string"},
        "title": {"type": "string"},
        "path": {"type": "string"},
    },
}
_REQUIRED = {"ask": ["question"]}


def names(settings: "Settings") -> tuple[str, ...]:
    """The tools there are: of the agent's those that it has, and `add_document` only where the
    settings allow it."""
    added = (ADD,) if settings.server.mcp_add_documents else ()
    retrieval = tuple(tool for tool in TOOLS if tool in settings.agent.tools)
    return (*retrieval, "ask", "list_documents", *added)


def tools(settings: "Settings", language: Language, local: bool) -> list[Tool]:
    """The tools, described in one language. `local`: a client that may name files of this
    machine."""
    return [_tool(name, settings, language, local) for name in names(settings)]


def _tool(name: str, settings: "Settings", language: Language, local: bool) -> Tool:
    if name in TOOLS:
        others = settings.agent.tools
        text = described_to_the_agent(name, language, others).text
        arguments = schema(name, language, settings.search.top_k, others)
        again = {"type": "boolean", "default": False, "description": read("again", language)}
        arguments["properties"]["again"] = again
    else:
        text, meanings = described(name, language)
        arguments = _schema(name, meanings, local)
    adds = name == ADD
    return Tool(
        name=name,
        description=text,
        input_schema=arguments,
        annotations=ToolAnnotations(
            read_only_hint=not adds,
            destructive_hint=adds,  # it may replace a document
            idempotent_hint=adds or None,
            open_world_hint=name == "ask" or adds,  # the web
        ),
    )


def _schema(name: str, meanings: Any, local: bool) -> dict[str, Any]:
    properties = {
        parameter: {**kind, "description": meanings[parameter]}
        for parameter, kind in _ARGUMENTS[name].items()
        if local or parameter != "path"
    }
    required = {"required": _REQUIRED[name]} if name in _REQUIRED else {}
    return {
        "type": "object",
        "properties": properties,
        **required,
        "additionalProperties": False,
    }
