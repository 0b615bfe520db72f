"""The agent's prompts: Markdown files beside this module, one for each language."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

Language = Literal["en", "zh"]

_PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True)
class Described:
    """How a tool is described to the model: as a whole, and parameter by parameter."""

    text: str
    parameters: Mapping[str, str]


@cache
def read(name: str, language: Language) -> str:
    """The text of the prompt `name`."""
    return (_PROMPTS / f"{name}.{language}.md").read_text(encoding="utf-8").strip()


def filled(name: str, language: Language, /, **values: object) -> str:
    """The prompt `name` with its blanks filled in."""
    return Template(read(name, language)).substitute(values)


@cache
def described(tool: str, language: Language) -> Described:
    """A tool's description: the paragraphs of its file, then its list of parameters."""
    lines = read(tool, language).splitlines()
    parameters = [line for line in lines if line.startswith("- ")]
    text = [line for line in lines if not line.startswith("- ")]
    pairs = (line.removeprefix("- ").split(": ", 1) for line in parameters)
    return Described("\n".join(text).strip(), {name: meaning for name, meaning in pairs})


def note(name: str, language: Language, /, **values: object) -> str:
    """A short remark to the model, from the list of notes."""
    return Template(_notes(language)[name]).substitute(values)


@cache
def _notes(language: Language) -> Mapping[str, str]:
    pairs = (line.split(": ", 1) for line in read("notes", language).splitlines())
    return {name: text for name, text in pairs}
