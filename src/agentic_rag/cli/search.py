"""`arag search` and `arag read`: find chunks, and read them whole."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.options import AsJson, Kb, PathGlobs, Where, filter_for, open_existing
from agentic_rag.cli.passages import (
    below_place,
    heading_and_body,
    hit_json,
    path_from_here,
    place,
    print_passage,
)

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import SearchResult

Mode = Literal["keyword", "semantic", "bm25", "hybrid"]


def _mode(text: str) -> str:
    if text not in get_args(Mode):
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(get_args(Mode))}.")
    return text


def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            metavar="MODE",
            parser=_mode,
            help="keyword: exact text; semantic: meaning; bm25: words; "
            "hybrid: meaning and words together.",
        ),
    ] = "hybrid",
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--top-k",
            min=1,
            max=1000,
            metavar="N",
            show_default=False,
            help="How many hits, 1 to 1000. When not given: the setting search.top_k, which is 5.",
        ),
    ] = None,
    path: PathGlobs = None,
    where: Where = None,
    whole_words: Annotated[
        bool,
        typer.Option("--whole-words", help="Keyword mode: `art` does not match `part`."),
    ] = False,
    require_all: Annotated[
        bool,
        typer.Option("--require-all", help="Keyword mode: a chunk must hold every keyword."),
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Find the chunks that fit a query, best first.

    In keyword mode each word is a keyword of its own, and quotes keep a phrase together. A search
    that finds nothing says so on standard error; its exit code is 0.

    Example: `arag search '"power of attorney" signed' --mode keyword -k 3`
    """
    if not query.strip():
        raise typer.BadParameter("The query is empty; give a word to look for.")
    if (whole_words or require_all) and mode != "keyword":
        raise typer.BadParameter("--whole-words and --require-all need --mode keyword.")
    wanted = filter_for(path, where)
    store = open_existing(ctx, kb)
    if mode == "keyword":
        from agentic_rag.knowledge_base.keyword import split_keywords

        result = store.keyword_search(
            split_keywords(query), k, whole_words=whole_words, require_all=require_all, where=wanted
        )
    else:
        result = store.snapshot().search(query, mode, k, where=wanted)
    for notice in result.notices:
        streams.say(f"note: {notice}")
    if as_json:
        streams.out_json(
            {
                "hits": [hit_json(hit) for hit in result.hits],
                "mode": mode,
                "query": query,
                "counts": dict(result.counts),
                "related": bool(result.related),
                "notices": list(result.notices),
            }
        )
    else:
        _render(result, mode, whole_words=whole_words)


def _render(result: "SearchResult", mode: Mode, *, whole_words: bool) -> None:
    screen = streams.console()
    for rank, hit in enumerate(result.hits, start=1):
        print_passage(
            screen,
            f"{rank}.",
            place(hit.title, hit.section, hit.page, chunk_id=hit.chunk_id, source_id=hit.source_id),
            f"score {hit.score:,.0f}" if mode == "keyword" else f"score {hit.score:.3f}",
            hit.uri,
            below_place(hit.snippet, hit.title, hit.section),
            result.terms,
            inside_words=mode == "keyword" and not whole_words,
        )
    if mode == "keyword":
        for keyword, count in result.counts.items():
            if count == 0 or not result.hits:
                chunks = "1 chunk contains" if count == 1 else f"{count:,} chunks contain"
                streams.say(f"{chunks} {keyword!r}.")
    if not result.hits:
        streams.say("Nothing was found.")
    elif not result.related:
        streams.say("Nothing clearly related was found; these are only the nearest passages.")


def read(
    ctx: typer.Context,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID", help="Chunk ids, as `arag search` shows them.")
    ],
    before: Annotated[
        int, typer.Option("--before", min=0, metavar="N", help="Also N chunks before each.")
    ] = 0,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="N", help="Also N chunks after each.")
    ] = 0,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Show the whole text of chunks.

    An id that is not there is named on standard error, and with --json under `missing`; the exit
    code is then 3, or 1 where none is there.

    Example: `arag read 12-3 --after 1`
    """
    result = open_existing(ctx, kb).snapshot().read_chunk(ids, before=before, after=after)
    if as_json:
        streams.out_json(
            {
                "chunks": [asdict(chunk) for chunk in result.chunks],
                "missing": list(result.unknown),
            }
        )
    else:
        screen = streams.console()
        for number, chunk in enumerate(result.chunks):
            if number:
                screen.print()
            above, body = heading_and_body(chunk)
            screen.print(above, style="bold")
            screen.print(path_from_here(chunk.uri), style="dim")
            screen.print()
            screen.print(body)
    for unknown, nearest in result.unknown.items():
        hint = f"the nearest is {nearest}" if nearest else "ids look like 12-3, see `arag search`"
        streams.say(f"error: There is no chunk {unknown!r} here; {hint}.")
    if not result.chunks:
        raise typer.Exit(exit_codes.ERROR)
    if result.unknown:
        raise typer.Exit(exit_codes.SOME_FAILED)
