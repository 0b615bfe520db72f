"""`arag eval report`: runs as a page with every question, as Markdown, as CSV."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag.cli import streams
from agentic_rag.cli.options import AsJson, given_path

if TYPE_CHECKING:
    from agentic_rag.evaluation.report.files import Form
    from agentic_rag.evaluation.report.systems import System

_NAME = "report"


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            parser=given_path,
            help="The folders that `arag eval run -o` was given.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            parser=given_path,
            show_default=False,
            help="The file, or a folder for it; `-` is standard output. When not given: "
            "report.html in the folder of the first run.",
        ),
    ] = None,
    forms: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="LIST",
            show_default=False,
            help="One or more of html, md, csv, with commas. When not given: what the name of the "
            "file ends in.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what came of one or more runs into one page: the table, plots, every question.

    The page holds each question's trace and needs no network. CSV has a line for each question and
    system.

    Example: `arag eval report runs/musique runs/other -o report.html`
    """
    wanted = _forms(forms, output)
    to_stdout = output == Path("-")
    if to_stdout and (len(wanted) > 1 or as_json):
        raise typer.BadParameter("Standard output takes one format alone.", param_hint="--output")
    from agentic_rag.evaluation.report.files import report_parts, write_report
    from agentic_rag.evaluation.report.systems import systems_of

    streams.check_stdout()
    systems = systems_of(runs)
    _tell_of_judges(systems)
    if to_stdout:
        for part in report_parts(systems, wanted[0]):
            print(streams.safe(part), end="")
        return
    files = _files(output or runs[0] / f"{_NAME}.html", wanted)
    for form, path in files.items():
        write_report(path, systems, form)
    if as_json:
        streams.out_json(_json(systems, list(files.values())))
    else:
        for path in files.values():
            streams.out(str(path))


def _forms(given: str | None, output: Path | None) -> "list[Form]":
    from agentic_rag.evaluation.report.files import FORMS

    if given is None:
        if output is None or output.is_dir():
            return ["html"]
        named = [form for form in FORMS if output.suffix.lower() == f".{form}"]
        if not named:
            raise typer.BadParameter(
                f"The name {output.name} does not say the format; end it in .html, .md or .csv, or "
                "give --format.",
                param_hint="--output",
            )
        return named
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = next((name for name in names if name not in FORMS), None)
    if unknown is not None or not names:
        raise typer.BadParameter(
            f"{unknown or given!r} is not one of {', '.join(FORMS)}.", param_hint="--format"
        )
    return [form for form in FORMS if form in names]


def _files(output: Path, forms: "list[Form]") -> "dict[Form, Path]":
    """Where each goes: of several formats, each under its own suffix."""
    if output.is_dir():
        output = output / f"{_NAME}.{forms[0]}"
    if len(forms) == 1:
        return {forms[0]: output}
    return {form: output.with_suffix(f".{form}") for form in forms}


def _tell_of_judges(systems: "list[System]") -> None:
    judges = {one.scored.judge for one in systems}
    if len(judges) > 1:
        told = ", ".join(f"{one.name}: {one.scored.judge or 'none'}" for one in systems)
        streams.say(f"note: not all are judged by one model ({told}).")


def _json(systems: "list[System]", files: list[Path]) -> dict[str, Any]:
    return {
        "files": [str(path.absolute()) for path in files],
        "systems": [
            {
                "name": one.name,
                "run": str(one.scored.run.directory.absolute()),
                "dataset": one.scored.run.info.dataset,
                "model": one.model,
                "judge": one.scored.judge,
                **asdict(one.summary),
            }
            for one in systems
        ],
    }
