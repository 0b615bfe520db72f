"""When to give up: what fails alike time after time would fail the next time too."""

from collections.abc import Sequence

_ALIKE = 8  # so many in a row, all of one error


def hopeless(errors: Sequence[str]) -> bool:
    """Whether to go on is of no use; `errors` are those since the last success, in their order."""
    return len(errors) >= _ALIKE and len(set(errors[-_ALIKE:])) == 1
