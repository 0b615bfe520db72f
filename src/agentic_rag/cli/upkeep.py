"""`arag status` and `arag compact`: how a knowledge base is, and tidying it."""

from dataclasses import asdict

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson, Kb, NoWait, open_existing


def status(ctx: typer.Context, kb: Kb = None, as_json: AsJson = False) -> None:
    """Show what a knowledge base holds, and what is wrong with it if anything is.

    Example: `arag status --kb ~/notes.arag`
    """
    state = open_existing(ctx, kb).status()
    if as_json:
        streams.out_json(asdict(state))
        return
    chunking = ", ".join(f"{name} {value}" for name, value in state.chunking.items())
    facts = {
        "knowledge base": str(state.path),
        "documents": f"{state.documents:,} ({len(state.failed)} failed, {len(state.empty)} empty)",
        "chunks": f"{state.chunks:,}",
        "sentences": f"{state.sentences:,}",
        "tokens": f"{state.tokens:,}",
        "on disk": in_bytes(state.bytes_on_disk),
        "embedding": f"{state.embedding_model}, {state.dimensions} dimensions",
        "chunking": chunking,
        "schema": str(state.schema_version),
        "unindexed rows": f"{state.unindexed_rows:,}",
        "writer": state.writer or "none",
    }
    if state.off_topic_score is not None:
        facts["off-topic score"] = f"{state.off_topic_score:.3f}"
    for name, value in facts.items():
        streams.out(f"{name:<16} {streams.one_line(value)}")
    if state.sentences_without_vector:
        streams.out(
            f"\nWithout a vector: {streams.counted(state.sentences_without_vector, 'sentence')}. "
            "Keyword and BM25 search find them, semantic search does not."
        )
        for d in state.without_vector:
            streams.out(f"  {d.number}  {streams.one_line(d.uri)}: {d.without_vector:,}")
    for one in state.unfinished:
        streams.out(
            f"\nChange to '{one.embedding_model}': {one.sentences:,} of {state.sentences:,} "
            "sentences embedded; `arag reembed` goes on, `arag compact` drops it."
            if state.writer is None
            else f"\nChange to '{one.embedding_model}': {one.sentences:,} sentences so far."
        )
    for title, documents in (("failed", state.failed), ("empty", state.empty)):
        if documents:
            streams.out(f"\n{title}:")
        for d in documents:
            streams.out(f"  {d.number}  {streams.one_line(d.uri)}: {streams.one_line(d.reason)}")
    if state.failed or state.sentences_without_vector:
        streams.out("Try those again with `arag index --retry-failed`.")


def compact(
    ctx: typer.Context, no_wait: NoWait = False, kb: Kb = None, as_json: AsJson = False
) -> None:
    """Merge small files, delete old ones, and bring the indexes up to date.

    This also runs by itself when it is needed.

    Example: `arag compact`
    """
    report = open_existing(ctx, kb).compact(wait=not no_wait, on_wait=streams.say)
    if as_json:
        streams.out_json(asdict(report))
        return
    for name, value in asdict(report).items():
        shown = in_bytes(value) if name.startswith("bytes") else value
        streams.out(f"{name.replace('_', ' '):<16} {shown}")


def in_bytes(count: int) -> str:
    """`12345678` as `12.3 MB`."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
