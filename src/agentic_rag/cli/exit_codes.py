"""What `arag` returns to the shell. docs/cli.md is written from this list."""

OK = 0
ERROR = 1
USAGE = 2
SOME_FAILED = 3
UNEXPECTED = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANINGS = {
    OK: "Everything was done. A search that found nothing counts as done.",
    ERROR: "Nothing was done, or nothing was found to read; one line on standard error says why.",
    USAGE: "The command line was wrong: an unknown command or option, or a missing argument.",
    SOME_FAILED: (
        "`arag index` finished, but some document failed, holds no text, or was named on the "
        "command line and is of a kind that is not supported. Files of unknown kinds that are "
        "only met inside a folder do not count. `arag ask`, `arag chat`: the model failed, and the "
        "best passages stand in for its answer, or the file of `--trace` could not be written. "
        "`arag read`: some of the chunks are not there. "
        "`arag doctor`: something was found. `arag reembed`: some sentence could not be embedded. "
        "`arag eval run`, `arag eval sweep`: some question failed, or the run ended at its cost "
        "ceiling or because all failed alike. `arag eval judge`: some answer has no verdict."
    ),
    UNEXPECTED: "A fault of arag itself. `ARAG_DEBUG=1` shows the traceback.",
    INTERRUPTED: (
        "Ctrl-C. `arag index` and `arag reembed` have kept what they had done; run the same again "
        "to go on; so has `arag eval run`. `arag ask` has printed what was found."
    ),
    BROKEN_PIPE: "The program that read the output stopped reading, as in `arag list | head -1`.",
}
