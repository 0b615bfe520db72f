"""`arag serve`: the HTTP API, the web page, MCP and OpenAI's protocol."""

from typing import Annotated

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import Kb, Model, Strategy, settings_for


def serve(
    ctx: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            show_default=False,
            help="Where to listen. When not given: server.host, which is this machine alone.",
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
            help="The port, 0 for a free one. When not given: server.port.",
        ),
    ] = None,
    model: Model = None,
    strategy: Strategy = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    kb: Kb = None,
) -> None:
    """Serve the web page, the HTTP API, MCP and OpenAI's protocol, until Ctrl-C.

    On this machine no key is needed. Elsewhere the server does not start without one: put a long
    random text into the variable ARAG_TOKEN.

    Example: `arag serve --port 8080 --open`
    """
    server = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = settings_for(ctx, kb, model=model, strategy=strategy, server=server or None)

    from agentic_rag.server.run import serve as run

    run(settings, tell=streams.say, open_page=open_page)
