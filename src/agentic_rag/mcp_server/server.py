"""The MCP server: tools and resources over a knowledge base, for any client's model.

Follows the Model Context Protocol up to its revision of 2026-07-28. What is badly shaped is
answered at once: with an error of the protocol where it is no call of a tool, otherwise with a
sentence in the tool's result, which the model reads.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from agentic_rag.errors import AragError
from agentic_rag.mcp_server import listing
from agentic_rag.mcp_server.adding import add_document
from agentic_rag.mcp_server.arguments import Unusable
from agentic_rag.mcp_server.asking import ask
from agentic_rag.mcp_server.retrieving import retrieve
from agentic_rag.mcp_server.serving import Reply, Serving
from agentic_rag.mcp_server.sessions import Sessions
from agentic_rag.mcp_server.tools import ADD, names, tools
from agentic_rag.mcp_server.wording import Language, note, read
from agentic_rag.strategies.agent.tools import TOOLS

Context = ServerRequestContext[Any, Any]

_logger = logging.getLogger(__name__)
_TEXT = "text/plain"
_STDIO = "stdio"  # the only session of its process
_SESSION_HEADER = "mcp-session-id"
_TOOLS_LAST = CacheHint(ttl_ms=300_000)  # they change with the settings alone


def mcp_server(serving: Serving) -> Server[Any]:
    """The server; a transport runs it (see `stdio` and `http`)."""
    language = serving.settings.server.mcp_language
    sessions = Sessions(language)

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools(serving.settings, language, serving.local))

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        reply = await _called(serving, sessions, ctx, params.name, params.arguments)
        return CallToolResult(
            content=[TextContent(type="text", text=reply.text)], is_error=reply.failed
        )

    async def list_resources(
        _: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = params.cursor if params else None
        page = await _asked(partial(listing.resource_page, serving, cursor))
        resources = [
            Resource(
                name=one.title or one.uri,
                uri=listing.DOCUMENT.format(number=one.number),
                description=one.uri,
                mime_type=_TEXT,
            )
            for one in page.documents
        ]
        after = None if page.after is None else str(page.after)
        return ListResourcesResult(resources=resources, next_cursor=after)

    async def list_templates(
        _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        templates = [
            ResourceTemplate(name="document", uri_template=listing.DOCUMENT, mime_type=_TEXT),
            ResourceTemplate(name="rest of document", uri_template=listing.REST, mime_type=_TEXT),
            ResourceTemplate(name="chunk", uri_template=listing.CHUNK, mime_type=_TEXT),
        ]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        text = await _asked(partial(listing.resource, serving, params.uri, language))
        found = TextResourceContents(uri=params.uri, mime_type=_TEXT, text=text)
        return ReadResourceResult(contents=[found])

    server: Server[Any] = Server(
        "agentic-rag",
        version=_version(),
        title="Agentic RAG",
        instructions=read("instructions", language),
        cache_hints={"tools/list": _TOOLS_LAST},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    server.middleware.append(_shaped)
    return server


async def _called(
    serving: Serving, sessions: Sessions, ctx: Context, name: str, arguments: object
) -> Reply:
    """Run a tool; what goes wrong is told to the model."""
    session = sessions.session(_session_id(ctx, serving))
    language: Language = session.language
    known = names(serving.settings)
    if name not in known:
        said = note("no_tool", language, name=name[:100], tools=", ".join(known))
        return Reply(said, failed=True)
    try:
        if name in TOOLS:
            return await asyncio.to_thread(retrieve, serving, session, name, arguments)
        if name == "ask":

            async def tell(steps: float, said: str) -> None:
                await ctx.session.report_progress(steps, message=said)

            return await ask(serving, arguments, language, tell)
        if name == ADD:
            return await add_document(serving, arguments, language)
        return await asyncio.to_thread(listing.list_documents, serving, arguments, language)
    except (AragError, Unusable) as error:
        return Reply(str(error), failed=True)
    except Exception as error:  # the session goes on
        _logger.exception("the tool %s failed", name)
        return Reply(f"{name} failed unexpectedly ({type(error).__name__}).", failed=True)


async def _asked(call: Any) -> Any:
    """The result of a blocking call; what fails is an error of the protocol."""
    try:
        return await asyncio.to_thread(call)
    except (Unusable, listing.NoSuchResource) as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
    except AragError as error:
        raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None


def _session_id(ctx: Context, serving: Serving) -> str | None:
    """What tells client sessions apart; None where the protocol has none, as over HTTP since
    2026-07-28."""
    if ctx.request is None:
        return _STDIO if serving.local else None
    found = ctx.request.headers.get(_SESSION_HEADER)
    return str(found) if found else None


async def _shaped(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Puts right, or refuses with a sentence, what the protocol's own check would only call
    invalid."""
    params = ctx.params
    if ctx.method != "tools/call" or ctx.request_id is None:
        return await call_next(ctx)
    if not isinstance(params, Mapping) or not isinstance(params.get("name"), str):
        raise MCPError(
            code=INVALID_PARAMS, message="`name` must be the name of a tool; see tools/list."
        )
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        # The protocol wants an object; the tools read what is meant out of a text or a list.
        ctx = replace(ctx, params={**params, "arguments": {"arguments": arguments}})
    return await call_next(ctx)


def _version() -> str:
    try:
        return version("agentic-rag")
    except PackageNotFoundError:  # run from its source without having been installed
        return ""
