"""`arag reembed`: change the embedding model of a knowledge base."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.index import LINES_OF_A_KIND, stopping_on_ctrl_c
from agentic_rag.cli.options import AsJson, Kb, NoWait, settings_for
from agentic_rag.cli.passages import path_from_here

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import ReembedReport


def reembed(
    ctx: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help="The embedding model to change to. When not given: embedding.model.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Embed anew also with the same model, as when it was updated."
        ),
    ] = False,
    no_wait: NoWait = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress, and name only what failed.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Change the embedding model of a knowledge base: embed every sentence anew.

    The vectors there are serve until the last new one is made. Ctrl-C keeps what is done, and the
    same command goes on with it.

    Example: `arag reembed --model openai:text-embedding-3-small`
    """
    asked = settings_for(ctx, kb).embedding.model
    settings = settings_for(ctx, kb, embedding={"model": model} if model else None)

    from agentic_rag.cli.progress import shown
    from agentic_rag.knowledge_base import KnowledgeBase, KnowledgeBaseBusy
    from agentic_rag.models.embedder import EmbeddingFailed

    store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
    with (
        shown(quiet=quiet) as on_progress,
        stopping_on_ctrl_c() as stop,
        # Only the main thread hears Ctrl-C, and a batch in hand would keep it deaf.
        ThreadPoolExecutor(max_workers=1) as pool,
    ):
        try:
            report = pool.submit(
                store.reembed,
                force=force,
                on_progress=on_progress,
                stop=stop,
                on_wait=streams.say,
                wait=not no_wait,
            ).result()
        except KnowledgeBaseBusy:
            if not stop.is_set():
                raise
            streams.say("Stopped while waiting; nothing was done.")
            raise typer.Exit(exit_codes.INTERRUPTED) from None
        except EmbeddingFailed:
            streams.say("What was embedded is kept; the same command goes on with it.")
            raise
    if as_json:
        streams.out_json(asdict(report))
    else:
        _render(report, quiet=quiet)
    if model and model != asked and not report.stopped:
        streams.say(
            f'From now on the settings have to name it: embedding.model = "{model}" in arag.toml, '
            f"or ARAG_EMBEDDING__MODEL."
        )
    if report.stopped:
        raise typer.Exit(exit_codes.INTERRUPTED)
    if report.without_vector:
        raise typer.Exit(exit_codes.SOME_FAILED)


def _render(report: "ReembedReport", *, quiet: bool) -> None:
    for one in report.without_vector[:LINES_OF_A_KIND]:
        where = f"{one.chunk_id} {path_from_here(one.uri)}"
        why = f" ({one.reason})" if one.reason else ""
        streams.say(streams.one_line(f"without a vector: {where}: {one.text}{why}"))
    if len(report.without_vector) > LINES_OF_A_KIND:
        more = len(report.without_vector) - LINES_OF_A_KIND
        streams.say(f"… and {more:,} more; --json lists them all.")
    if report.stopped:
        streams.say(
            f"Stopped. Searches go on with '{report.model_before}'; run the same command again to "
            "continue."
        )
    elif not quiet:
        streams.out(_summary(report))


def _summary(report: "ReembedReport") -> str:
    if not report.changed:
        return f"The vectors are of '{report.model}' already; --force makes them anew."
    known = report.sentences - report.embedded
    return (
        f"{streams.counted(report.sentences, 'sentence')} with vectors of '{report.model}' "
        f"({report.dimensions} dimensions) in place of '{report.model_before}': "
        f"{report.embedded:,} embedded, {known:,} known already; {report.seconds:.1f} s."
    )
