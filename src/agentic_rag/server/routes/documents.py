"""`/api/documents`: what is in the knowledge base, adding to it and taking out of it."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import FileResponse, Response

from agentic_rag.documents.fetching import Bounds, web_source
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base.knowledge_base import KnowledgeBase
from agentic_rag.knowledge_base.records import (
    Chunk,
    DocumentInfo,
    DocumentStatus,
    KnowledgeBaseBusy,
    UnknownDocument,
)
from agentic_rag.server.errors import responses
from agentic_rag.server.given import Body, Short
from agentic_rag.server.job_records import Job, JobDocument
from agentic_rag.server.originals import original
from agentic_rag.server.receiving import Received, receive
from agentic_rag.server.state import ServerState, State
from agentic_rag.server.upload_names import safe_folder, safe_name
from agentic_rag.server.uploads import not_supported

_PAGE, _MOST_PAGE = 50, 500
_CHUNKS, _MOST_CHUNKS = 20, 200
_PATIENCE = 10.0  # seconds to wait for another process that writes
_MEGABYTE = 1_000_000

router = APIRouter(prefix="/api/documents", tags=["Documents"])
Number = Annotated[int, Path(ge=1, examples=[12])]


class UnsupportedUpload(AragError):
    """None of the files of a request is one that is read here."""

    status = 415


class DocumentPage(BaseModel):
    """A page of documents, the newest first. `total` fit, on all pages together; `next` is the
    cursor of the next page, null at the end."""

    documents: tuple[DocumentInfo, ...]
    total: int
    next: int | None


class ChunkPage(BaseModel):
    """A page of a document's chunks, in order; `next` is the cursor of the next one."""

    chunks: tuple[Chunk, ...]
    total: int
    next: int | None


class Address(Body):
    """A page of the web to add."""

    url: Short


class Retried(BaseModel):
    """The jobs that try again; none where nothing had failed."""

    jobs: tuple[Job, ...]


@router.get("", summary="List documents", responses=responses(422, 503))
async def list_documents(
    state: State,
    limit: Annotated[int, Query(ge=1, le=_MOST_PAGE)] = _PAGE,
    cursor: Annotated[int | None, Query(ge=1)] = None,
    q: Annotated[str, Query(max_length=1000)] = "",
    status: DocumentStatus | None = None,
) -> DocumentPage:
    """The documents whose title or path contains `q`, the newest first."""
    wanted = q.strip().lower()

    def page() -> DocumentPage:
        fitting = [
            one
            for one in state.kb.snapshot().documents.values()
            if (status is None or one.status == status)
            and (not wanted or wanted in one.title.lower() or wanted in one.uri.lower())
        ]
        below = [one for one in reversed(fitting) if cursor is None or one.number < cursor]
        shown = tuple(below[:limit])
        after = shown[-1].number if len(below) > limit else None
        return DocumentPage(documents=shown, total=len(fitting), next=after)

    return await asyncio.to_thread(page)


_FILES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                }
            }
        },
    }
}


@router.post(
    "",
    summary="Upload files",
    status_code=202,
    responses=responses(400, 408, 409, 413, 415, 422, 503),
    openapi_extra=_FILES,
)
async def upload(
    state: State, request: Request, folder: Annotated[str, Query(max_length=1000)] = ""
) -> Job:
    """Take files in; they are indexed in the background, by the job that is answered.

    A file replaces the document of the same name in the same `folder`. Those of a type that is not
    read here are told in the job.
    """
    place = safe_folder(folder)
    await asyncio.to_thread(state.jobs.ready)
    most = state.settings.server.max_upload_mb * _MEGABYTE
    async with state.uploads.incoming() as incoming:
        files = await receive(request, incoming, most)
        return await asyncio.to_thread(_taken, state, files, place)


def _taken(state: ServerState, files: list[Received], folder: str) -> Job:
    problems = {id(one): not_supported(one) for one in files}
    good = [one for one in files if problems[id(one)] is None]
    refused = [
        JobDocument(uri=problem.uri, outcome="unsupported", reason=problem.reason)
        for problem in problems.values()
        if problem
    ]
    if not good:
        raise UnsupportedUpload(f"'{refused[0].uri}' cannot be read: {refused[0].reason}.")
    sources = state.uploads.keep(good, folder)
    return state.jobs.add("files", [safe_name(one.name) for one in files], sources, refused)


@router.post(
    "/url", summary="Add a page of the web", status_code=202, responses=responses(400, 422, 503)
)
async def add_url(state: State, body: Address) -> Job:
    """Fetch what a URL holds and index it, in the background. Addresses of private networks are
    refused, unless `web.allow_private` is on."""
    web = state.settings.web
    source = web_source(body.url, Bounds(web.allow_private, web.timeout))
    return await asyncio.to_thread(state.jobs.add, "url", [source.uri], [source.uri])


@router.post("/retry", summary="Try again what failed", status_code=202, responses=responses(503))
async def retry(state: State) -> Retried:
    """Index again every document that failed, and jobs that ended early."""
    return Retried(jobs=tuple(await asyncio.to_thread(state.jobs.retry)))


@router.get("/{number}", summary="A document", responses=responses(404, 422, 503))
async def document(state: State, number: Number) -> DocumentInfo:
    """What is known of a document."""
    return await asyncio.to_thread(_existing, state.kb, number)


@router.get("/{number}/chunks", summary="A document's chunks", responses=responses(404, 422, 503))
async def chunks(
    state: State,
    number: Number,
    limit: Annotated[int, Query(ge=1, le=_MOST_CHUNKS)] = _CHUNKS,
    cursor: Annotated[int, Query(ge=0)] = 0,
) -> ChunkPage:
    """The text of a document, a page of chunks at a time."""

    def page() -> ChunkPage:
        total = _existing(state.kb, number).chunks
        end = cursor + limit
        found = state.kb.snapshot().chunks(number, cursor, end)
        return ChunkPage(chunks=tuple(found), total=total, next=end if end < total else None)

    return await asyncio.to_thread(page)


@router.get(
    "/{number}/file",
    summary="A document's file",
    response_class=Response,
    responses={**responses(404, 422, 503), 200: {"content": {"application/octet-stream": {}}}},
)
async def file(state: State, number: Number) -> Response:
    """The file that a document was made of. A PDF and pictures are to be shown, others saved."""
    most = state.settings.index.max_file_mb * _MEGABYTE

    def found() -> Response:
        one = original(_existing(state.kb, number), most)
        if one.path is None:
            return Response(one.data, media_type=one.media_type, headers=one.headers)
        return FileResponse(one.path, media_type=one.media_type, headers=one.headers)

    return await asyncio.to_thread(found)


@router.delete(
    "/{number}",
    summary="Delete a document",
    status_code=204,
    responses=responses(404, 409, 422, 503),
)
async def delete(state: State, number: Number) -> None:
    """Take a document out of the knowledge base; an upload's file is deleted with it, any other
    file stays where it is."""
    await asyncio.to_thread(_delete, state, number)


def _delete(state: ServerState, number: int) -> None:
    newest = state.jobs.newest()
    found = _existing(state.kb, number)
    with state.jobs.paused():  # to the end, or a job that waits would bring the file back
        _remove(state.kb, number)
        upload = state.uploads.upload_of(found.uri)
        if upload is None or state.jobs.wants(upload.as_posix(), newest):
            return
        inside = f"{upload.as_posix()}/"
        if not any(one.uri.startswith(inside) for one in state.kb.documents()):
            state.uploads.delete(upload)


def _remove(kb: KnowledgeBase, number: int) -> None:
    """Remove a document, waiting a little for another process. Raises KnowledgeBaseBusy."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            kb.remove([str(number)], wait=False)
            return
        except KnowledgeBaseBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _existing(kb: KnowledgeBase, number: int) -> DocumentInfo:
    found = kb.snapshot().documents.get(number)
    if found is None:
        raise UnknownDocument(f"There is no document {number}; /api/documents lists all there are.")
    return found
