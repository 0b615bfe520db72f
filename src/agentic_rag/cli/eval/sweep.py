"""`arag eval sweep`: the agent with more and more steps, or harder and harder thinking."""

from typing import Annotated

import typer

from agentic_rag.cli.eval.options import (
    DatasetDir,
    Judge,
    Limit,
    MaxCost,
    RetryFailed,
    RunDir,
    Seed,
    Workers,
    evaluation_settings,
)
from agentic_rag.cli.options import AsJson, Kb, Model, QuietIndexing


def sweep(
    ctx: typer.Context,
    directory: DatasetDir,
    max_steps: Annotated[
        str | None,
        typer.Option(
            "--max-steps", metavar="LIST", show_default=False, help="Step limits, as in 5,10,15,20."
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            metavar="LIST",
            show_default=False,
            help="Reasoning efforts, as in minimal,low,medium,high.",
        ),
    ] = None,
    model: Model = None,
    judge: Judge = None,
    limit: Limit = None,
    seed: Seed = None,
    workers: Workers = None,
    max_cost: MaxCost = None,
    retry_failed: RetryFailed = False,
    run_dir: RunDir = None,
    quiet: QuietIndexing = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of the agent with every pair of a step limit and a reasoning effort.

    It is one run, as of `arag eval run`: it can be stopped and gone on with.

    Example: `arag eval sweep musique --max-steps 5,10,20 --effort low,high -o runs/scaling`
    """
    if not max_steps and not effort:
        raise typer.BadParameter("Give --max-steps or --effort, each a list such as 5,10,15.")
    settings = evaluation_settings(
        ctx, judge=judge, workers=workers, max_cost=max_cost, model=model
    )
    from agentic_rag.cli.eval.running import evaluate
    from agentic_rag.evaluation.running.variants import swept

    efforts = [part.strip() for part in (effort or "").split(",") if part.strip()]
    evaluate(
        directory,
        swept(_numbers(max_steps or ""), efforts),
        settings,
        kb=kb or ctx.obj,
        run_dir=run_dir,
        limit=limit,
        seed=seed,
        retry_failed=retry_failed,
        quiet=quiet,
        as_json=as_json,
    )


def _numbers(given: str) -> list[int]:
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise typer.BadParameter(
            f"{given!r} is no list of numbers such as 5,10,15.", param_hint="--max-steps"
        )
    return [int(part) for part in parts]
