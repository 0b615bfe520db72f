"""Writing a report: whole or not at all, so that one that was there stays until the new one is."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from agentic_rag.errors import AragError
from agentic_rag.evaluation.report.csv_file import csv_parts
from agentic_rag.evaluation.report.markdown import markdown_of
from agentic_rag.evaluation.report.page import page_parts
from agentic_rag.evaluation.report.systems import System

Form = Literal["html", "md", "csv"]
FORMS: tuple[Form, ...] = get_args(Form)


class ReportUnwritable(AragError):
    """A report's file cannot be written."""


def report_parts(systems: Sequence[System], form: Form) -> Iterator[str]:
    """The report of `systems` in one form, piece by piece."""
    yield from _PARTS[form](systems)


def write_report(path: Path, systems: Sequence[System], form: Form) -> None:
    """Write it, in place of what is there. A CSV file begins with the mark of UTF-8, without which
    Excel reads Chinese wrongly. Blocks. Raises `ReportUnwritable`."""
    draft = path.with_name(f".{path.name}.tmp")
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    try:
        with draft.open("w", encoding=encoding, errors="backslashreplace", newline="") as file:
            for part in report_parts(systems, form):
                file.write(part)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise ReportUnwritable(
            f"{path} cannot be written ({error.strerror}); name another file with -o."
        ) from None


def _markdown(systems: Sequence[System]) -> Iterable[str]:
    return (markdown_of(systems),)


_PARTS: Mapping[Form, Callable[[Sequence[System]], Iterable[str]]] = {
    "html": page_parts,
    "md": _markdown,
    "csv": csv_parts,
}
