"""`arag eval prepare`: a published dataset, or a table of one's own, as a dataset to run."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson, given_path, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentic_rag.evaluation.checking import Check
    from agentic_rag.evaluation.prepare import Read

_NAMED_AT_MOST = 5  # ids in a line


def prepare(
    ctx: typer.Context,
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="arag, hotpotqa, musique, 2wiki, graphrag-bench, csv, tsv, jsonl, json, or auto.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", parser=given_path, help="The file with the questions."),
    ],
    corpus: Annotated[
        Path | None,
        typer.Argument(
            metavar="CORPUS",
            parser=given_path,
            show_default=False,
            help="The file of the corpus, where it is one of its own: A-RAG's chunks.json, the "
            "texts of GraphRAG-Bench; for 2wiki id_aliases.json.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            parser=given_path,
            show_default=False,
            help="The folder of the dataset; it is made where it is not there.",
        ),
    ],
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            show_default=False,
            help="Only the first N questions, and of paragraphs that come with them only theirs.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a dataset that is in the folder.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a dataset that `arag eval run` takes, and report what is wrong with it.

    Example: `arag eval prepare musique musique_ans_v1.0_dev.jsonl -o data/musique --limit 1000`
    """
    from agentic_rag.evaluation.checking import check
    from agentic_rag.evaluation.prepare import (
        Files,
        read_form,
        refuse_to_overwrite,
        write_dataset,
    )

    if not force:
        refuse_to_overwrite(output)
    chunk_tokens = settings_for(ctx, None).chunking.size
    read = read_form(form, Files(file, corpus, limit, chunk_tokens))
    found = check(read.prepared)
    write_dataset(read.prepared, output, overwrite=force)
    if as_json:
        streams.out_json(
            {
                "directory": str(output),
                "form": read.form,
                "notes": list(read.prepared.notes),
                **asdict(found),
            }
        )
        return
    for line in _report(read, found):
        streams.out(line)
    kb = " --kb .arag" if found.chunks is None else ""
    streams.say(f"Written; go on with: arag eval run {shlex.quote(str(output))}{kb}")


def _report(read: "Read", found: "Check") -> "Iterator[str]":
    kinds = ", ".join(f"{streams.one_line(k)} {n:,}" for k, n in sorted(found.kinds.items()))
    yield f"form       {read.form}"
    yield f"questions  {found.questions:,}{f' ({kinds})' if kinds else ''}"
    if found.chunks is None:
        yield "chunks     none: index the documents with `arag index`, and name them with --kb"
    else:
        tokens = f", {found.chunk_tokens:,.0f} tokens in the mean" if found.chunk_tokens else ""
        yield f"chunks     {found.chunks:,}{tokens}"
    yield f"gold ids   {found.supporting:.1f} a question"
    yield from (streams.one_line(note) for note in read.prepared.notes)
    for what, ids in (
        ("no answer, so that only retrieval is measured", found.no_answer),
        ("no supporting ids, so that recall is not measured", found.no_supporting),
        (
            "a supporting id that is no chunk",
            tuple(f"{qid} ({gold})" for qid, gold in found.missing),
        ),
        ("an answer that stands in no supporting chunk", found.answer_elsewhere),
        ("the text of an earlier question", found.same_question),
        ("the text of an earlier chunk", found.equal_chunks),
    ):
        if ids:
            yield f"{len(ids):,} with {what}: {_named(ids)}"


def _named(ids: "Sequence[str]") -> str:
    more = len(ids) - _NAMED_AT_MOST
    shown = ", ".join(streams.one_line(one)[:80] for one in ids[:_NAMED_AT_MOST])
    return f"{shown} and {more:,} more" if more > 0 else shown
