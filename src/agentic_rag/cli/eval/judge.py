"""`arag eval judge`: verdicts on the answers of a run that has none, or another judge's."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.eval.options import Judge, Workers, evaluation_settings
from agentic_rag.cli.options import AsJson, QuietIndexing, given_path


def judge(
    ctx: typer.Context,
    run_dir: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", parser=given_path, help="The folder that `arag eval run -o` was given."
        ),
    ],
    judge: Judge = None,
    workers: Workers = None,
    quiet: QuietIndexing = False,
    as_json: AsJson = False,
) -> None:
    """Have a model judge the answers of a run; the questions are not asked again.

    Verdicts are kept: what this model has judged already is not sent again.

    Example: `arag eval judge runs/musique --judge openai:gpt-6-luna`
    """
    settings = evaluation_settings(ctx, judge=judge, workers=workers)
    from agentic_rag.cli.eval.counting import counted
    from agentic_rag.cli.eval.table import show_table, table_json
    from agentic_rag.evaluation.measures.judging import open_judge
    from agentic_rag.evaluation.measures.run_scores import score_run
    from agentic_rag.evaluation.running.judged import judge_run
    from agentic_rag.evaluation.running.result_file import read_run, run_lock

    run = read_run(run_dir)
    opened = open_judge(settings, run_dir)
    if opened is None:
        raise typer.BadParameter(
            "Name the model with --judge, or set evaluation.judge_model.", param_hint="--judge"
        )
    with run_lock(run_dir), counted("judging", quiet=quiet) as on_done:
        judged = asyncio.run(judge_run(run, opened, on_progress=on_done))
    scored = score_run(run_dir)
    if as_json:
        streams.out_json(table_json(scored))
    else:
        show_table(scored)
    if judged.verdicts < judged.total:
        answers = streams.counted(judged.total, "answer")
        why = f" {judged.problem}" if judged.problem else ""
        streams.say(
            f"{judged.verdicts:,} of {answers} have a verdict.{why} The same command asks for the "
            "others again."
        )
        raise typer.Exit(exit_codes.SOME_FAILED)
