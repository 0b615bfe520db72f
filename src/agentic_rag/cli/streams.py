"""Standard output and standard error: their encoding, and text made safe for a terminal."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from agentic_rag.errors import AragError

if TYPE_CHECKING:
    from rich.console import Console

# Everything below space but tab and newline, DEL, the C1 range, and the marks that turn the
# writing direction: a document could otherwise move the cursor or disguise what is shown.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def speak_utf8() -> None:
    """Make both streams UTF-8 whatever the locale; a name that is no text shows as `\\udcff`.

    A stream that is closed (`arag chat <&-`) becomes an empty one; what is to be written to a
    closed standard output is an error.
    """
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stderr = sys.stderr or _nowhere("w")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    elif isinstance(sys.stdout, io.TextIOWrapper):
        by_line = sys.stdout.line_buffering
        sys.stdout = _Stdout(
            sys.stdout.detach(), "utf-8", "backslashreplace", line_buffering=by_line
        )


class StdoutUnusable(AragError):
    """Standard output is closed (`>&-`) or takes no more, so that a result would be lost."""


class _Stdout(io.TextIOWrapper):
    """Standard output, which names itself where it cannot be written to."""

    def write(self, text: str) -> int:
        with _naming_stdout():
            return super().write(text)

    def flush(self) -> None:
        with _naming_stdout():
            super().flush()


class _Closed(io.TextIOBase):
    """Stands where standard output is closed."""

    def write(self, _: str) -> int:
        check_stdout()
        return 0


@contextmanager
def _naming_stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutUnusable(
            f"Standard output cannot be written to ({error.strerror}); send it to another place."
        ) from error


def check_stdout() -> None:
    """Raise StdoutUnusable where nothing can be printed: before what costs time or money."""
    if isinstance(sys.stdout, _Closed):
        raise StdoutUnusable(
            "Standard output is closed, so that there is no place for what is found; open it, or "
            "send it to a file."
        )


def _nowhere(mode: str) -> TextIO:
    return cast(TextIO, Path(os.devnull).open(mode, encoding="utf-8"))


def safe(text: str) -> str:
    """`text` without control characters; line ends become plain newlines."""
    return _UNSAFE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """`text` on one line, without control characters."""
    return " ".join(safe(text).split())


def counted(count: int, thing: str) -> str:
    """`counted(1, "chunk")` is "1 chunk", `counted(2000, "chunk")` is "2,000 chunks"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def say(message: str) -> None:
    """One line on standard error."""
    print(safe(message), file=sys.stderr, flush=True)


def out(text: str = "") -> None:
    """Plain text on standard output, as it is but for control characters."""
    print(safe(text))


def out_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output; Chinese stays readable."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def out_json_line(value: dict[str, Any]) -> None:
    """One JSON object on one line of standard output, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def console() -> "Console":
    """Rich on standard output; it never reads markup, since document text may hold brackets."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # Rich would end with 1, as an error does

    return Piped(
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not sys.stdout.isatty(),
        file=sys.stdout,
    )


def error_console() -> "Console":
    """Rich on standard error."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, stderr=True)


def abandon_stdout() -> None:
    """Where it cannot be written to: let the interpreter's last flush go nowhere instead of
    failing."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # it was closed from the beginning
        os.dup2(devnull, sys.stdout.fileno())
