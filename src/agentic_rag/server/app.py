"""The application: everything that `arag serve` answers, over one knowledge base."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
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
from agentic_rag.server.body_limits import BodyLimits
from agentic_rag.server.errors import tell_errors
from agentic_rag.server.questions import Asked, events_of
from agentic_rag.server.request_log import HEADER, RequestLog
from agentic_rag.server.routes import (
    ask,
    docs,
    documents,
    health,
    jobs,
    metrics,
    openai_protocol,
    reading,
    search,
    sessions,
    traces,
)
from agentic_rag.server.state import new_state
from agentic_rag.server.web import router as web

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agentic_rag.config import Settings

_THREADS = 32
_UPLOADS = "/api/documents"  # counts its files itself, see `server.max_upload_mb`


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
        state = app.state.server = new_state(settings, opened, model)
        # Questions wait in threads for files and models; asyncio's own number is 6 on two cores.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "work"))
        await asyncio.to_thread(state.start)
        async with mcp.running():
            yield
        await asyncio.to_thread(state.jobs.stop)
        state.searching.shutdown(wait=False, cancel_futures=True)

    mcp = McpOverHttp(
        Serving(
            settings,
            lambda create: app.state.server.kb,
            lambda question, strategy: events_of(app.state.server, Asked(question, strategy)),
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
    for part in (ask, sessions, traces, search, reading, documents, jobs):
        app.include_router(part.router)
    for part in (openai_protocol, health, metrics, docs):
        app.include_router(part.router)
    app.include_router(web.router)
    app.mount("/static", web.static_files, name="static")
    app.router.routes.append(mcp.route)
    return app


def _opened(settings: "Settings") -> KnowledgeBase:
    return KnowledgeBase.open(settings.kb, settings=settings)


def _middleware(settings: "Settings", token: str | None) -> list[Middleware]:
    """From the outermost to the innermost. CORS is before authorisation, as a browser's preflight
    request carries no token."""
    origins = settings.server.allow_origins
    most = settings.server.max_body_kb * 1024
    layers = [
        Middleware(RequestLog),
        Middleware(Authorisation, token=token, origins=origins),
        Middleware(BodyLimits, most=most, paths={_UPLOADS: None}),
    ]
    if origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", HEADER],
            expose_headers=[HEADER, "Retry-After"],
        )
        layers.insert(1, cors)
    return layers


def _version() -> str:
    try:
        return version("agentic-rag")
    except PackageNotFoundError:  # run from its source without having been installed
        return "0"
