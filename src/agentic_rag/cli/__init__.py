"""The command line `arag`: parse, call, render.

Results go to standard output and nothing else does; progress, warnings and errors go to
standard error. Heavy modules are imported by the command that needs them, so that
`arag --help` answers at once.
"""

import os
import signal
import sys
from contextlib import suppress

_INTERRUPTED = 130  # exit_codes.INTERRUPTED, before that module is there


def main() -> None:
    """Run `arag` with the arguments of this process; ends by SystemExit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)  # while modules are imported; see Arag.invoke
    if not os.environ.get("ARAG_DEBUG"):
        os.environ.setdefault("LANCE_LOG", "error")  # its warnings name places in its own source
    from agentic_rag.cli.app import app
    from agentic_rag.cli.streams import speak_utf8

    speak_utf8()
    try:
        app(prog_name="arag")
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            # Nobody who pressed Ctrl-C wants to wait for threads to be joined and engines unloaded.
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(_INTERRUPTED)
        raise


def leave(*_: object) -> None:
    """End at once and without a word: what Ctrl-C does before a command has begun."""
    os._exit(_INTERRUPTED)
