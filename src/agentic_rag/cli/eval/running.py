"""Running from the command line: the bar, Ctrl-C, and what is printed at the end."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.index import stopping_on_ctrl_c
from agentic_rag.cli.progress import SECONDS_BETWEEN_LINES, shown

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.evaluation.records import Variant
    from agentic_rag.evaluation.running.runner import RunEnd
    from agentic_rag.evaluation.running.tally import RunProgress

Report = Callable[["RunProgress"], None]


def evaluate(
    directory: Path,
    variants: "Sequence[Variant]",
    settings: "Settings",
    *,
    kb: Path | None,
    run_dir: Path | None,
    limit: int | None,
    seed: int | None,
    retry_failed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run `variants` over the dataset in `directory`, print the table, and end with an exit
    code."""
    from agentic_rag.cli.eval.table import show_table, table_json
    from agentic_rag.evaluation.dataset import load_dataset
    from agentic_rag.evaluation.measures.judging import open_judge
    from agentic_rag.evaluation.measures.run_scores import score_run
    from agentic_rag.evaluation.running.corpus import IndexingStopped, knowledge_base_of
    from agentic_rag.evaluation.running.runner import run_evaluation

    streams.check_stdout()  # before anything is paid for
    dataset = load_dataset(directory)
    place = run_dir or Path("runs") / dataset.name
    judge = open_judge(settings, place)
    try:
        with shown(quiet=quiet) as on_progress, stopping_on_ctrl_c() as stop:
            store = knowledge_base_of(dataset, settings, kb, on_progress=on_progress, stop=stop)
    except IndexingStopped as error:
        streams.say(str(error))
        raise typer.Exit(exit_codes.INTERRUPTED) from None

    async def run(on_progress: Report) -> "RunEnd":
        return await run_evaluation(
            dataset,
            variants,
            kb=store,
            run_dir=place,
            settings=settings,
            judge=judge,
            limit=limit,
            seed=seed,
            retry_failed=retry_failed,
            on_progress=on_progress,
        )

    with _bar(quiet=quiet) as report:
        end = _interruptible(lambda: run(report))
    if end is None:
        streams.say("Stopped. What is answered is kept; the same command goes on.")
        raise typer.Exit(exit_codes.INTERRUPTED)
    scored = score_run(place)
    if as_json:
        streams.out_json(table_json(scored))
    else:
        show_table(scored)
        streams.say(f"`arag eval report {place}` writes a page with every question.")
    if unjudged := sum(one.unjudged for one in scored.scores):
        streams.say(
            f"{streams.counted(unjudged, 'answer')} without a verdict of the judge: "
            f"`arag eval judge {place}` asks for them again."
        )
    _tell_of_the_end(end, settings)


def _tell_of_the_end(end: "RunEnd", settings: "Settings") -> None:
    answers = [result.answer for result in end.run.results if result.answer is not None]
    unpriced = sum(answer.usage.cost is None for answer in answers)
    if settings.evaluation.max_cost is not None and unpriced:
        questions = streams.counted(unpriced, "question")
        streams.say(f"note: no price is known of {questions}, so --max-cost could not count them.")
    failed = sum(result.outcome == "failed" for result in end.run.results)
    if end.ended == "cost":
        streams.say(
            f"The ceiling of ${settings.evaluation.max_cost:g} is reached; with a higher "
            "--max-cost the same command goes on."
        )
    elif end.ended == "failures":
        streams.say(
            f"Ended, since questions one after another failed alike: {end.problem} "
            "Mend that, then run the same command with --retry-failed."
        )
    elif failed:
        questions = streams.counted(failed, "question")
        streams.say(f"{questions} failed; --retry-failed asks them again.")
    if end.ended != "done" or failed:
        raise typer.Exit(exit_codes.SOME_FAILED)


def _interruptible(work: "Callable[[], Coroutine[Any, Any, RunEnd]]") -> "RunEnd | None":
    """What `work` gives; None after Ctrl-C, which cancels it."""

    async def main() -> "RunEnd | None":
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(work())
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    return asyncio.run(main())


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Report]:
    """Yields what is to be called with each progress: a bar, or a line every few seconds."""
    if quiet:
        yield lambda progress: None
    elif not sys.stderr.isatty():
        yield _lines()
    else:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bars = Progress(
            TextColumn("asking"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}", markup=False),
            TimeRemainingColumn(),
            console=streams.error_console(),
        )
        with bars:
            task = bars.add_task("asking", total=None, told="")

            def report(progress: "RunProgress") -> None:
                bars.update(
                    task, completed=progress.done, total=progress.total, told=_told(progress)
                )

            yield report


def _lines() -> Report:
    last = 0.0

    def report(progress: "RunProgress") -> None:
        nonlocal last
        now = time.monotonic()
        due = now - last >= SECONDS_BETWEEN_LINES
        if due or progress.done == progress.total or progress.pause >= SECONDS_BETWEEN_LINES:
            last = now
            streams.say(f"asking: {_told(progress)}")

    return report


def _told(progress: "RunProgress") -> str:
    parts = [f"{progress.done:,} of {progress.total:,}"]
    if progress.told:
        parts.append(f"{100 * progress.right / progress.told:.1f} % right")
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.cost:
        more = "+" if progress.cost_unknown else ""
        parts.append(f"${progress.cost:.2f}{more}")
    if progress.pause >= 1:
        parts.append(f"the provider wants a pause of {progress.pause:.0f} s")
    return ", ".join(parts)
