"""`arag eval retrieval`: how well each search finds the supporting chunks, with no model."""

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import exit_codes, streams
from agentic_rag.cli.eval.options import DatasetDir, Limit
from agentic_rag.cli.options import AsJson, Kb, QuietIndexing, given_path, settings_for

if TYPE_CHECKING:
    from agentic_rag.evaluation.dataset import Dataset
    from agentic_rag.evaluation.measures.intervals import Estimate
    from agentic_rag.evaluation.records import GoldQuestion
    from agentic_rag.evaluation.retrieval_only import ModeSummary, Searched, SearchMode

_DEEPEST = 1000  # as `arag search -k`


def retrieval(
    ctx: typer.Context,
    directory: DatasetDir,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="NAMES",
            help="One or more, with commas: keyword, bm25, semantic, hybrid; recall, the "
            "workflow's search; sparse, dense and pipeline, the pipeline's two routes and both "
            "together; or all. keyword takes the question's words but stop words.",
        ),
    ] = "keyword,bm25,semantic,hybrid",
    k: Annotated[
        str, typer.Option("--k", metavar="LIST", help="At how many hits to measure.")
    ] = "1,2,5,10",
    limit: Limit = None,
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            parser=given_path,
            show_default=False,
            help="Also write a line for each question and search into this file.",
        ),
    ] = None,
    quiet: QuietIndexing = False,
    kb: Kb = None,
    as_json: AsJson = False,
) -> None:
    """Measure the searches alone, with no model: recall, MRR, nDCG and milliseconds a question.

    Questions without supporting ids are left out. The dataset's chunks are indexed once, into
    `DIR/.arag` or `--kb`.

    Example: `arag eval retrieval musique --mode bm25,semantic,hybrid --k 2,5,10`
    """
    modes, ks = _modes(mode), _ks(k)
    if csv_file is not None and not csv_file.absolute().parent.is_dir():
        raise typer.BadParameter(
            f"There is no folder {csv_file.absolute().parent}; make it, or name another.",
            param_hint="--csv",
        )
    settings = settings_for(ctx, None)
    from agentic_rag.cli.eval.counting import counted
    from agentic_rag.cli.index import stopping_on_ctrl_c
    from agentic_rag.cli.progress import shown
    from agentic_rag.evaluation.dataset import load_dataset
    from agentic_rag.evaluation.retrieval_only import search_all, summarise_modes
    from agentic_rag.evaluation.running.corpus import IndexingStopped, knowledge_base_of

    streams.check_stdout()
    dataset = load_dataset(directory)
    questions = _measurable(dataset, limit)
    try:
        with shown(quiet=quiet) as on_progress, stopping_on_ctrl_c() as stop:
            store = knowledge_base_of(
                dataset, settings, kb or ctx.obj, on_progress=on_progress, stop=stop
            )
    except IndexingStopped as error:
        streams.say(str(error))
        raise typer.Exit(exit_codes.INTERRUPTED) from None
    with counted("searching", quiet=quiet) as on_done:
        found = list(search_all(store, questions, modes, ks, settings=settings, on_done=on_done))
    for notice in dict.fromkeys(notice for one in found for notice in one.notices):
        streams.say(f"note: {notice}")
    if csv_file is not None:
        _write(csv_file, found)
    summaries = summarise_modes(found)
    if as_json:
        streams.out_json(
            {
                "dataset": str(dataset.directory.absolute()),
                "knowledge_base": str(store.directory),
                "searches": [asdict(summary) for summary in summaries],
            }
        )
    else:
        _show(dataset.name, summaries)
    if not any(one.reciprocal_rank for one in found):
        streams.say(
            "No supporting chunk was found by any search: check that the ids in "
            "questions.json are those of this knowledge base."
        )


def _modes(given: str) -> "list[SearchMode]":
    from agentic_rag.evaluation.retrieval_only import MODES

    names = [part.strip() for part in given.split(",") if part.strip()]
    if names == ["all"]:
        return list(MODES)
    unknown = next((name for name in names if name not in MODES), None)
    if unknown is not None or not names:
        raise typer.BadParameter(
            f"{unknown or given!r} is not one of {', '.join(MODES)}, all.", param_hint="--mode"
        )
    return [mode for name in dict.fromkeys(names) for mode in MODES if mode == name]


def _ks(given: str) -> list[int]:
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if not parts or not all(
        part.isascii() and part.isdecimal() and 1 <= int(part) <= _DEEPEST for part in parts
    ):
        raise typer.BadParameter(
            f"{given!r} is no list of numbers from 1 to {_DEEPEST} such as 1,5,10.",
            param_hint="--k",
        )
    return sorted({int(part) for part in parts})


def _measurable(dataset: "Dataset", limit: int | None) -> "list[GoldQuestion]":
    """The questions that can be measured; says how many cannot."""
    from agentic_rag.evaluation.dataset import BadDataset

    asked = dataset.questions[:limit]
    questions = [question for question in asked if question.supporting]
    if not questions:
        raise BadDataset(
            f"No question of {dataset.directory} names its supporting chunks, so that there is "
            "nothing to measure a search by; add `supporting_chunk_ids`."
        )
    if len(questions) < len(asked):
        left_out = streams.counted(len(asked) - len(questions), "question")
        streams.say(f"note: {left_out} without supporting ids are left out.")
    return questions


def _show(name: str, summaries: "Sequence[ModeSummary]") -> None:
    from rich.table import Table

    ks = list(summaries[0].recall_at)
    table = Table(title=name, title_justify="left", box=None, pad_edge=False)
    table.add_column("search", no_wrap=True)
    for column in ("n", *(f"R@{k}" for k in ks), "95 %", "MRR", f"nDCG@{ks[-1]}", "ms"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in summaries:
        last = one.recall_at[ks[-1]]
        table.add_row(
            one.mode,
            f"{one.questions:,}",
            *(_percent(one.recall_at[k]) for k in ks),
            f"{100 * last.low:.0f}-{100 * last.high:.0f}",
            f"{one.mrr.mean:.3f}",
            f"{one.ndcg_at[ks[-1]].mean:.3f}",
            f"{one.milliseconds:.1f}",
        )
    streams.console().print(table)
    streams.out(
        "n questions. R@k: percent of the supporting chunks among the first k hits, with the 95 %"
    )
    streams.out(f"interval of R@{ks[-1]}. MRR within {ks[-1]} hits. ms a question, one at a time.")


def _percent(estimate: "Estimate") -> str:
    return f"{100 * estimate.mean:.1f}"


def _write(path: Path, found: "Sequence[Searched]") -> None:
    ks = list(found[0].recall_at)
    head = ["search", "question", *(f"recall@{k}" for k in ks), *(f"ndcg@{k}" for k in ks)]
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([*head, "reciprocal_rank", "ms", "hits"])
        for one in found:
            lines.writerow(
                [
                    one.mode,
                    one.qid,
                    *(f"{one.recall_at[k]:.4f}" for k in ks),
                    *(f"{one.ndcg_at[k]:.4f}" for k in ks),
                    f"{one.reciprocal_rank:.4f}",
                    f"{one.milliseconds:.2f}",
                    " ".join(one.chunk_ids),
                ]
            )
