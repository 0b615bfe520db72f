"""`arag eval`: measure how well the strategies answer, and see why an answer was wrong."""

import typer

from agentic_rag.cli.eval import compare, judge, prepare, report, retrieval, run, sweep

app = typer.Typer(
    name="eval",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure how well each strategy answers questions whose answers are known.",
)
app.command("prepare")(prepare.prepare)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("judge")(judge.judge)
app.command("retrieval")(retrieval.retrieval)
app.command("report")(report.report)
app.command("compare")(compare.compare)
