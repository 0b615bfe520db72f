"""The command line `arag`: parse, call, render.

Results go to standard output and nothing else does; progress, warnings and errors go to
standard error. Heavy modules are imported by the command that needs them, so that
`arag --help` answers at once.
"""


def main() -> None:
    """Run `arag` with the arguments of this process; ends by SystemExit."""
    from agentic_rag.cli.app import app
    from agentic_rag.cli.streams import speak_utf8

    speak_utf8()
    app(prog_name="arag")
