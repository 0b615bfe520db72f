"""What a check-up says: parts that work or do not, and findings with their cures."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A part that is configured: what it is, why that one, and how its trial went.

    `works` is None where nothing was tried. `detail` says what the trial showed, or why it
    failed; `cure` what to do about a failure. `seconds` is how long the trial took. `code` is that
    of the finding which a failure makes, where it is not the part's name.
    """

    name: str
    value: str
    why: str = ""
    works: bool | None = None
    detail: str = ""
    cure: str = ""
    seconds: float = 0.0
    code: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a knowledge base: a `code` for programs, a sentence for people, and
    the cure. `documents` are the numbers of those concerned; `files` names files."""

    code: str
    message: str
    cure: str
    documents: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
