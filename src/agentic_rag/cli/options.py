"""Options that several commands share, and how they become settings, filters and an open store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, KnowledgeBase

Kb = Annotated[
    Path | None,
    typer.Option(
        "--kb",
        metavar="DIR",
        help="The knowledge base: a folder. When not given: ARAG_KB, arag.toml, or .arag.",
        show_default=False,
        readable=False,  # said in one line when it is opened
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
PathGlobs = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="GLOB",
        help="Only documents whose path fits, as in `--path '*/laws/*'`. Can be repeated.",
        show_default=False,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only documents with this metadata. Can be repeated; all must fit.",
        show_default=False,
    ),
]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait", help="End with an error when another process is writing, instead of waiting."
    ),
]


def settings_for(ctx: typer.Context, kb: Path | None, **flags: object) -> "Settings":
    """The settings in force for this command; `--kb` counts before and after the command's name."""
    from agentic_rag.config import load_settings

    return load_settings(kb=kb or ctx.obj, **flags)


def open_existing(ctx: typer.Context, kb: Path | None) -> "KnowledgeBase":
    """The knowledge base that is there already; raises NoKnowledgeBase when it is not."""
    from agentic_rag.knowledge_base import KnowledgeBase

    settings = settings_for(ctx, kb)
    return KnowledgeBase.open(settings.kb, settings=settings, create=False)


def key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """`["lang=en"]` as `{"lang": "en"}`; a pair without `=` is a usage error."""
    found = {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE; write {option} lang=en")
        found[key.strip()] = value.strip()
    return found


def filter_for(paths: list[str] | None, where: list[str] | None) -> "Filter | None":
    """What --path and --where ask for; None when neither was given."""
    if not paths and not where:
        return None
    from agentic_rag.knowledge_base import Filter

    return Filter(paths=tuple(paths or ()), metadata=key_values(where, "--where"))
