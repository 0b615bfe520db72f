"""The agent's prompts: Markdown files beside this module, one for each language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

Language = Literal["en", "zh"]

TOOLS = ("keyword_search", "semantic_search", "read_chunk")

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
def described(tool: str, language: Language, given: Sequence[str] = TOOLS) -> Described:
    """A tool's description, where the model is given the tools `given`: the paragraphs of its
    file, then its list of parameters."""
    lines = _filled_for(tool, language, tuple(given)).splitlines()
    parameters = [line for line in lines if line.startswith("- ")]
    text = [line for line in lines if not line.startswith("- ")]
    pairs = (line.removeprefix("- ").split(": ", 1) for line in parameters)
    return Described("\n".join(text).strip(), {name: meaning for name, meaning in pairs})


def system_prompt(language: Language, given: Sequence[str] = TOOLS) -> str:
    """The system prompt, which speaks of the tools `given` and of no others."""
    return _filled_for("system", language, tuple(given))


def read_again(language: Language, given: Sequence[str] = TOOLS) -> str:
    """How earlier evidence can be read again, as a clause; "" without the tool to."""
    form = "parts" if "read_chunk" in given else "whole"
    return _notes("given_tools", language)[f"again_{form}"]


def _filled_for(name: str, language: Language, given: tuple[str, ...]) -> str:
    says = _notes("given_tools", language)
    searches = [tool for tool in given if tool != "read_chunk"]
    form = "parts" if "read_chunk" in given else "whole"
    blanks = {
        "tools": says[f"tools_{len(given)}"],
        "searching": says[f"searching_{searches[0] if len(searches) == 1 else 'both'}"],
        "reading": says[f"reading_{form}"],
        "sentences_keyword": says[f"sentences_keyword_{form}"],
        "sentences_semantic": says[f"sentences_semantic_{form}"],
        "read_first": says[f"read_first_{form}"],
        "or_keyword": says["or_keyword"] if "keyword_search" in given else "",
    }
    lines = (line.rstrip() for line in filled(name, language, **blanks).splitlines())
    return "\n".join(lines)


def note(name: str, language: Language, /, **values: object) -> str:
    """A short remark to the model, from the list of notes."""
    return Template(_notes("notes", language)[name]).substitute(values)


@cache
def _notes(file: str, language: Language) -> Mapping[str, str]:
    pairs = (line.partition(":") for line in read(file, language).splitlines())
    return {name: text.removeprefix(" ") for name, _, text in pairs}
