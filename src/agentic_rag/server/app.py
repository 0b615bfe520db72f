"""The application: everything that `arag serve` answers, over one knowledge base."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.mcp_server.http import McpOverHttp
from agentic_rag.mcp_server.serving import Serving
from agentic_rag.server.authorisation import Authorisation, token_of
from agentic_rag.server.errors import tell_errors
from agentic_rag.server.routes import health, openai_protocol
from agentic_rag.server.state import new_state

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings


def create_app(
    settings: "Settings",
    *,
    kb: KnowledgeBase | None = None,
    model: "str | Model | None" = None,
) -> FastAPI:
    """The application for these settings; `kb` is opened when it starts where none is given, and
    made where there is none; `model` overrides the settings. Raises TokenNeeded."""
    token = token_of(settings.server)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opened = await asyncio.to_thread(_opened, settings) if kb is None else kb
        app.state.server = new_state(settings, opened, model)
        async with mcp.running():
            yield

    mcp = McpOverHttp(
        Serving(
            settings,
            lambda create: app.state.server.kb,
            lambda: app.state.server.gate.entered(),
            model=model,
        )
    )
    app = FastAPI(
        title="Agentic RAG",
        version=_version(),
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
        middleware=_middleware(settings, token),
    )
    tell_errors(app)
    app.include_router(health.router)
    app.include_router(openai_protocol.router)
    app.router.routes.append(mcp.route)
    return app


def _opened(settings: "Settings") -> KnowledgeBase:
    return KnowledgeBase.open(settings.kb, settings=settings)


def _middleware(settings: "Settings", token: str | None) -> list[Middleware]:
    """From the outermost to the innermost. CORS is before authorisation, as a browser's preflight
    request carries no token."""
    origins = settings.server.allow_origins
    layers = [Middleware(Authorisation, token=token, origins=origins)]
    if origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
        layers.insert(0, cors)
    return layers


def _version() -> str:
    try:
        return version("agentic-rag")
    except PackageNotFoundError:  # run from its source without having been installed
        return "0"
