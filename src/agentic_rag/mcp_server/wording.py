"""What a client's model is told: Markdown files beside this module, one for each language."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

Language = Literal["en", "zh"]

_PROMPTS = Path(__file__).parent / "prompts"


@cache
def read(name: str, language: Language) -> str:
    """The text of the prompt `name`."""
    return (_PROMPTS / f"{name}.{language}.md").read_text(encoding="utf-8").strip()


@cache
def described(tool: str, language: Language) -> tuple[str, Mapping[str, str]]:
    """A tool's description, and its parameters' by name."""
    lines = read(tool, language).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("- ")).strip()
    pairs = (line[2:].split(": ", 1) for line in lines if line.startswith("- "))
    return text, {name: meaning for name, meaning in pairs}


def note(name: str, language: Language, /, **values: object) -> str:
    """A short remark, from the list of notes."""
    return Template(_notes(language)[name]).substitute(values)


def chunks(count: int, language: Language) -> str:
    """So many chunks, in words."""
    return note("one_chunk" if count == 1 else "chunks", language, count=count)


@cache
def _notes(language: Language) -> Mapping[str, str]:
    pairs = (line.split(": ", 1) for line in read("notes", language).splitlines())
    return {name: text for name, text in pairs}
