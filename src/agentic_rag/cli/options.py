"""Options that several commands share, and how they become settings, filters and an open store."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Filter, KnowledgeBase


def given_path(text: str) -> Path:
    """The path that an option or argument names; an empty one is a usage error, where `Path("")`
    would be the current folder."""
    if not text:
        raise typer.BadParameter("It is empty; name a file or a folder.")
    return Path(text)


Kb = Annotated[
    Path | None,
    typer.Option(
        "--kb",
        metavar="DIR",
        help="The knowledge base: a folder. When not given: ARAG_KB, arag.toml, or .arag.",
        show_default=False,
        parser=given_path,
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
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="PATTERN",
        show_default=False,
        help="Leave out what fits, written as in .gitignore. Can be repeated.",
    ),
]
QuietIndexing = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress, and name only what failed.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the answer and its sources.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="The chat model: openai:NAME, anthropic:NAME, ollama:NAME, local, "
        "local:/path/to.gguf or none. When not given: the setting, or the best one at hand.",
    ),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        show_default=False,
        help="How to answer: agent, workflow, pipeline or naive. When not given: the setting, or "
        "agent where the model can call tools.",
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        "--max-steps",
        min=1,
        metavar="N",
        show_default=False,
        help="How many times the agent may search or read. When not given: agent.max_steps.",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="TOKENS",
        show_default=False,
        help="How long the agent's history may grow. When not given: agent.token_budget.",
    ),
]
Cost = Annotated[
    float | None,
    typer.Option(
        "--cost",
        metavar="DOLLARS",
        show_default=False,
        help="What the agent may spend on a question, where prices are known. "
        "When not given: agent.max_cost.",
    ),
]
Effort = Annotated[
    str | None,
    typer.Option(
        "--effort",
        metavar="LEVEL",
        show_default=False,
        help="How hard a reasoning model thinks: minimal, low, medium, high, xhigh or max. "
        "When not given: agent.effort.",
    ),
]


def limits(
    max_steps: int | None, budget: int | None, cost: float | None, effort: str | None
) -> dict[str, object] | None:
    """What the options say of the settings section `agent`; None when they say nothing."""
    options = {
        "max_steps": max_steps,
        "token_budget": budget,
        "max_cost": cost,
        "effort": effort,
    }
    return {name: value for name, value in options.items() if value is not None} or None


_OPTION_OF = {
    "kb": "--kb",
    "model": "--model",
    "strategy": "--strategy",
    "agent.max_steps": "--max-steps",
    "agent.token_budget": "--budget",
    "agent.max_cost": "--cost",
    "agent.effort": "--effort",
    "evaluation.judge_model": "--judge",
    "evaluation.max_cost": "--max-cost",
    "evaluation.workers": "--workers",
}


def no_more_words(ctx: typer.Context, *question: str) -> None:
    """A usage error where words are left over: a question without quotes, or one for `chat`."""
    if ctx.args:
        whole = shlex.quote(" ".join([*question, *ctx.args]))
        raise typer.BadParameter(f"A question goes in quotes: arag ask {whole}")


def settings_for(ctx: typer.Context, kb: Path | None, **flags: object) -> "Settings":
    """The settings in force for this command; `--kb` counts before and after the command's name.

    A value that cannot be used is a usage error of its option, where it came by one.
    """
    from agentic_rag.config import BadOverride, load_settings

    try:
        return load_settings(kb=kb or ctx.obj, **flags)
    except BadOverride as error:
        wrong = f"It {error.wrong}."
        raise typer.BadParameter(wrong, param_hint=_OPTION_OF.get(error.setting)) from None


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
    if not all(path.strip() for path in paths or ()):
        raise typer.BadParameter(
            "It is empty; give a glob such as '*/laws/*'.", param_hint="--path"
        )
    from agentic_rag.knowledge_base import Filter

    return Filter(paths=tuple(paths or ()), metadata=key_values(where, "--where"))
