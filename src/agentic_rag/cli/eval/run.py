"""`arag eval run`: every question to every strategy, and the table."""

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
from agentic_rag.cli.options import (
    AsJson,
    Budget,
    Cost,
    Effort,
    Kb,
    MaxSteps,
    Model,
    QuietIndexing,
    limits,
)


def run(
    ctx: typer.Context,
    directory: DatasetDir,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAMES",
            help="One or more, with commas: agent, workflow, pipeline, naive; the ablations "
            "agent-without-keyword, agent-without-semantic, agent-without-read, agent-naive; "
            "or all, or ablations.",
        ),
    ] = "naive",
    model: Model = None,
    judge: Judge = None,
    limit: Limit = None,
    seed: Seed = None,
    workers: Workers = None,
    max_cost: MaxCost = None,
    retry_failed: RetryFailed = False,
    max_steps: MaxSteps = None,
    budget: Budget = None,
    cost: Cost = None,
    effort: Effort = None,
    run_dir: RunDir = None,
    quiet: QuietIndexing = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of a dataset of one or more strategies, and print how good the answers are.

    Each answer is kept as soon as it is there: Ctrl-C stops, and the same command goes on. The
    dataset's chunks are indexed once, into `DIR/.arag` or `--kb`, for all strategies.

    Example: `arag eval run musique --strategy agent,naive --model openai:gpt-6-luna --limit 50`
    """
    settings = evaluation_settings(
        ctx,
        judge=judge,
        workers=workers,
        max_cost=max_cost,
        model=model,
        agent=limits(max_steps, budget, cost, effort),
    )
    from agentic_rag.cli.eval.running import evaluate
    from agentic_rag.evaluation.running.variants import variants_of

    evaluate(
        directory,
        variants_of(strategy),
        settings,
        kb=kb or ctx.obj,
        run_dir=run_dir,
        limit=limit,
        seed=seed,
        retry_failed=retry_failed,
        quiet=quiet,
        as_json=as_json,
    )
