"""`arag mcp`: the knowledge base as tools for another agent."""

import asyncio
from typing import Annotated

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import Kb, Model, settings_for


def mcp(
    ctx: typer.Context,
    http: Annotated[
        bool,
        typer.Option(
            "--http", help="Serve streamable HTTP, in place of standard input and output."
        ),
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            show_default=False,
            help="With --http: where to listen. When not given: server.host.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            show_default=False,
            help="With --http: the port, 0 for a free one. When not given: server.port.",
        ),
    ] = None,
    add: Annotated[
        bool | None,
        typer.Option(
            "--add/--no-add",
            show_default=False,
            help="Whether the client may add documents. When not given: server.mcp_add_documents.",
        ),
    ] = None,
    model: Model = None,
    kb: Kb = None,
) -> None:
    """Let another agent search and ask, over the Model Context Protocol.

    A client starts it and speaks to it by standard input and output; with --http it is a server,
    at /mcp. `arag serve` has the same there.

    Example: `claude mcp add documents -- arag --kb ~/notes/.arag mcp`

    Example: `arag mcp --http --port 8766`
    """
    if not http and (host is not None or port is not None):
        raise typer.BadParameter("--host and --port go with --http.")
    server = {"host": host, "port": port, "mcp_add_documents": add}
    flags = {name: value for name, value in server.items() if value is not None}
    settings = settings_for(ctx, kb, model=model, server=flags or None)

    from agentic_rag.mcp_server.serving import Serving, asking, opened_when_needed

    knowledge_base = opened_when_needed(settings)
    serving = Serving(settings, knowledge_base, asking(settings, knowledge_base), local=not http)
    if http:
        from agentic_rag.mcp_server.http import run_http

        run_http(serving, streams.say)
        return

    from agentic_rag.mcp_server.server import mcp_server
    from agentic_rag.mcp_server.stdio import run_stdio

    asyncio.run(run_stdio(mcp_server(serving)))
