"""What a person names to be indexed: files and folders, URLs, standard input."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentic_rag.cli import streams
from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.documents import Source
    from agentic_rag.knowledge_base import DocumentInfo

_STANDARD_INPUT = "-"


class NothingToRead(AragError):
    """None of the paths to index can be read, or no document is under them."""


def named_sources(
    named: Sequence[str], name: str | None, settings: "Settings"
) -> "list[Path | Source]":
    """Paths, and sources for URLs and for standard input, which is read here and called `name`.

    Raises BadUrl, typer.BadParameter.
    """
    from agentic_rag.documents import given_source
    from agentic_rag.documents.fetching import Bounds, NothingNamed, named_source

    if name is not None and _STANDARD_INPUT not in named:
        raise typer.BadParameter("--name names standard input; give - as a PATH with it.")
    bounds = Bounds(settings.web.allow_private, settings.web.timeout)
    wanted: list[Path | Source] = []
    for one in dict.fromkeys(named):
        if one == _STANDARD_INPUT:
            wanted.append(given_source(_checked(name), _standard_input()))
        else:
            try:
                wanted.append(named_source(one, bounds))
            except NothingNamed as error:
                raise typer.BadParameter(str(error), param_hint="PATH") from None
    return wanted


def _checked(name: str | None) -> str:
    shown = streams.one_line(name or "").strip()
    if not shown:
        raise typer.BadParameter("Name standard input with --name, as in --name notes.md.")
    return shown


def _standard_input() -> bytes:
    if sys.stdin.isatty():
        streams.say("Reading standard input; Ctrl-D ends it.")
    return sys.stdin.buffer.read()


def files_of(wanted: "Sequence[Path | Source]") -> list[Path]:
    """The files and folders among what was named."""
    return [one for one in wanted if isinstance(one, Path)]


def check_files(wanted: "Sequence[Path | Source]", indexed: "Sequence[DocumentInfo]" = ()) -> None:
    """Raise NothingToRead if nothing but paths was named, and not one of them can be read nor
    holds something `indexed`."""
    paths = files_of(wanted)
    problems = {path: _problem(path) for path in paths}
    if not paths or len(paths) < len(wanted) or not all(problems.values()):
        return
    for path in paths:
        place = Path(os.path.abspath(path)).as_posix()  # noqa: PTH100 - links keep their names
        if any(one.uri == place or one.uri.startswith(f"{place}/") for one in indexed):
            return
    told = ", ".join(f"{path} ({problem})" for path, problem in problems.items())
    raise NothingToRead(f"Nothing can be read at {told}; check the path.")


def _problem(path: Path) -> str:
    """Why `path` cannot be read; empty if it can."""
    from agentic_rag.documents.archives import archive_above

    try:
        if path.is_dir():
            os.scandir(path).close()
        elif path.is_file():
            path.open("rb").close()
        else:
            path.stat()
    except NotADirectoryError as error:
        into = archive_above(os.path.abspath(path))  # noqa: PTH100
        return "" if into else (error.strerror or str(error)).lower()
    except FileNotFoundError:
        return "there is no such file or folder"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def nothing_under(names: Sequence[str]) -> NothingToRead:
    """The error for paths that hold no document."""
    return NothingToRead(
        f"There is nothing to read under {', '.join(names)}; name another path, or see what is "
        "left out by `--exclude`, index.exclude and .gitignore."
    )
