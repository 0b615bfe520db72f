"""`arag trace`: a saved trace, as it would have been seen live, or in full."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag.cli import answers, steps, streams
from agentic_rag.cli.options import AsJson, given_path
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.strategies.answer import Answer


class NoTrace(AragError):
    """A file is not a saved trace, or cannot be read."""


def trace(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            parser=given_path,
            help="What `arag ask --trace FILE` saved; - for standard input.",
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Show thoughts and what came back whole.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a saved trace: the steps with their times, the answer, its sources and its cost.

    It also reads what `arag ask --json` printed.

    Example: `arag trace why.json --full`
    """
    answer = read_trace(file)
    if as_json:
        streams.out_json(answer.model_dump(mode="json"))
        return
    streams.out(f"Question: {answer.question}\n")
    columns = steps.width()
    finished = {event.step for event in answer.trace if event.type == "step_finished"}
    for event in answer.trace:
        if event.type == "step_started" and event.step in finished and not full:
            continue  # the line of its end says all
        at = f"{event.seconds:7.1f} s  "
        for line in steps.lines(event, columns - len(at), full=full):
            streams.out(f"{at}{line}")
            at = " " * len(at)
    if answer.text:
        streams.out(f"\n{answer.text}")
    answers.print_sources(answer)
    streams.out(f"\n{_ended(answer)}; {answers.summary(answer)}")


def _ended(answer: "Answer") -> str:
    if answer.status == "stopped":
        return "stopped before an answer"
    if answer.status == "failed":
        why = next((n.message for n in reversed(answer.notices) if n.level == "error"), "")
        return f"failed: {streams.one_line(why).rstrip('.')}"
    return answer.status


def read_trace(file: Path) -> "Answer":
    """The answer, with its trace, that was saved in `file`. Raises NoTrace."""
    from pydantic import ValidationError

    from agentic_rag.strategies.answer import Answer

    name = "Standard input" if str(file) == "-" else str(file)
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise NoTrace(f"{name} cannot be read ({error.strerror}); check the path.") from None
    try:
        return Answer.model_validate_json(data)
    except ValidationError:
        raise NoTrace(
            f"{name} is not a trace this version can read; "
            "save one with `arag ask QUESTION --trace FILE`."
        ) from None
