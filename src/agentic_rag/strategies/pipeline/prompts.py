"""The pipeline's prompts: Markdown files beside this module, one for each language."""

from functools import cache
from pathlib import Path
from string import Template

_PROMPTS = Path(__file__).parent / "prompts"


@cache
def read(name: str, language: str) -> str:
    """The text of the prompt `name`."""
    return (_PROMPTS / f"{name}.{language}.md").read_text(encoding="utf-8").strip()


def filled(name: str, language: str, /, **values: object) -> str:
    """The prompt `name` with its blanks filled in."""
    return Template(read(name, language)).substitute(values)
