"""The command line `arag`: parse, call, render.

Results go to standard output and nothing else does; progress, warnings and errors go to
standard error. Heavy modules are imported by the command that needs them, so that
`arag --help` answers at once.
"""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Run `arag` with the arguments of this process; ends by SystemExit."""
    from agentic_rag.cli import exit_codes
    from agentic_rag.cli.app import app
    from agentic_rag.cli.streams import speak_utf8

    speak_utf8()
    try:
        app(prog_name="arag")
    except SystemExit as end:
        if end.code == exit_codes.INTERRUPTED:
            # Nobody who pressed Ctrl-C wants to wait for threads to be joined and engines unloaded.
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(exit_codes.INTERRUPTED)
        raise
