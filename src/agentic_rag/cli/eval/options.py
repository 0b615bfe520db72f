"""Options that several commands of `arag eval` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag.cli.options import given_path, settings_for

if TYPE_CHECKING:
    from agentic_rag.config import Settings

DatasetDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        parser=given_path,
        help="The dataset: a folder with questions.json, and chunks.json where the corpus comes "
        "with it.",
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="RUN",
        parser=given_path,
        show_default=False,
        help="The folder of the run; the same again goes on with it. When not given: "
        "runs/NAME-OF-DATASET.",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="MODEL",
        show_default=False,
        help="The chat model that judges the answers. When not given: evaluation.judge_model.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", show_default=False, help="Only N questions."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        show_default=False,
        help="Draw the questions at random, the same for the same N. When not given: the first of "
        "the file.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        show_default=False,
        help="Questions answered at a time. When not given: evaluation.workers.",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="DOLLARS",
        show_default=False,
        help="Begin no question once so much is spent, where prices are known. When not given: "
        "evaluation.max_cost.",
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask questions that ended in an error again.")
]


def evaluation_settings(
    ctx: typer.Context,
    *,
    judge: str | None = None,
    workers: int | None = None,
    max_cost: float | None = None,
    **flags: Any,
) -> "Settings":
    """The settings in force, with what the options say of the section `evaluation`."""
    options = {"judge_model": judge, "workers": workers, "max_cost": max_cost}
    given = {name: value for name, value in options.items() if value is not None}
    return settings_for(ctx, None, evaluation=given or None, **flags)
