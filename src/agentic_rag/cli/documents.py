"""`arag list`, `arag show` and `arag remove`: the documents of a knowledge base."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson, Kb, NoWait, PathGlobs, open_existing
from agentic_rag.cli.passages import heading_and_body, path_from_here, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentic_rag.knowledge_base import DocumentInfo


def list_documents(
    ctx: typer.Context,
    path: PathGlobs = None,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """List the documents, with their numbers.

    Into a pipe it writes one line a document: number, status, chunks, path and title, separated
    by tabs.

    Example: `arag list --path '*.pdf'`
    """
    documents = open_existing(ctx, kb).documents()
    if path:
        from agentic_rag.knowledge_base.filters import documents_on_paths

        documents = list(documents_on_paths(tuple(path), {d.number: d for d in documents}).values())
    if as_json:
        streams.out_json({"documents": [asdict(document) for document in documents]})
    elif sys.stdout.isatty():
        _table(documents)
    else:
        for d in documents:
            cells = (str(d.number), d.status, str(d.chunks), d.uri, d.title)
            streams.out("\t".join(streams.one_line(cell) for cell in cells))
    if not documents and not as_json:
        streams.say("There are no documents here." if not path else "No document's path fits.")


def _table(documents: "Sequence[DocumentInfo]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("number", justify="right")
    table.add_column("chunks", justify="right")
    table.add_column("title", overflow="fold")
    table.add_column("path", overflow="fold", style="dim")
    for d in documents:
        count = f"{d.chunks:,}" if d.status == "ready" else d.status
        table.add_row(str(d.number), count, streams.one_line(d.title), path_from_here(d.uri))
    streams.console().print(table)


def show(
    ctx: typer.Context,
    document: Annotated[
        str, typer.Argument(metavar="DOC", help="A document's number, path, or end of a path.")
    ],
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Show one document: what is known of it, and its chunks.

    Example: `arag show handbook.pdf`
    """
    store = open_existing(ctx, kb)
    info = store.document(document)
    chunks = store.chunks(info.number)
    if as_json:
        streams.out_json({"document": asdict(info), "chunks": [asdict(chunk) for chunk in chunks]})
        return
    facts = {
        "number": str(info.number),
        "title": info.title,
        "path": info.uri,
        "kind": info.media_type,
        "status": f"{info.status}: {info.reason}" if info.reason else info.status,
        "size": streams.counted(info.size, "byte"),
        "text": ", ".join(
            streams.counted(count, thing)
            for count, thing in (
                (info.chunks, "chunk"),
                (info.sentences, "sentence"),
                (info.tokens, "token"),
            )
        ),
        "indexed": info.indexed_at,
        **{key: str(value) for key, value in info.metadata.items()},
    }
    for name, value in facts.items():
        streams.out(f"{name:<9} {streams.one_line(value)}")
    for chunk in chunks:
        where = place("", chunk.section, chunk.page, chunk_id=chunk.chunk_id)
        streams.out(f"\n{where}  ({streams.counted(chunk.tokens, 'token')})")
        opening = streams.one_line(heading_and_body(chunk)[1][:400])
        streams.out(f"    {opening[:100]}{'…' if len(opening) > 100 else ''}")


def remove(
    ctx: typer.Context,
    documents: Annotated[
        list[str],
        typer.Argument(metavar="DOC", help="Documents: number, path, or end of a path."),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    no_wait: NoWait = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Take documents out of the knowledge base; the files stay where they are.

    An archive stands for all files in it. On a terminal it asks first.

    Example: `arag remove 12 old/handbook.pdf --yes`
    """
    store = open_existing(ctx, kb)
    found = {info.number: info for name in documents for info in store.select(name)}
    if not yes and sys.stdin.isatty():
        for info in found.values():
            streams.say(f"{info.number}  {info.uri}  ({streams.counted(info.chunks, 'chunk')})")
        question = "Remove it?" if len(found) == 1 else f"Remove these {len(found)} documents?"
        if not _said_yes(question):
            streams.say("Nothing was removed.")
            return
    removed = store.remove([str(number) for number in found], wait=not no_wait, on_wait=streams.say)
    if as_json:
        streams.out_json({"documents": [asdict(info) for info in removed]})
        return
    for info in removed:
        streams.out(f"removed {info.number}  {streams.one_line(info.uri)}")


def _said_yes(question: str) -> bool:
    # typer.confirm lets a blank slip onto standard output.
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
