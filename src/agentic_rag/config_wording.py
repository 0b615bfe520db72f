"""What is wrong with a setting, and where it was set, in one sentence."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from agentic_rag.config_sections import NO_NAME
from agentic_rag.errors import AragError


class BadSettings(AragError):
    """A setting has a value that cannot be used."""


class BadOverride(BadSettings):
    """A value that the caller gave cannot be used; `setting` is its name, `wrong` says why."""

    def __init__(self, setting: str, wrong: str) -> None:
        super().__init__(
            f"Setting '{setting}' {wrong}; correct it in the argument or option {setting}."
        )
        self.setting = setting
        self.wrong = wrong


# Pydantic's words for these are Python's, not a user's.
_PLAIN = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a section",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "model_type": "must be a section",
    "path_type": "must be a path",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}


def first_problem(
    error: ValidationError, given: Mapping[str, object], file: Path | None
) -> BadSettings:
    """The first thing that is wrong; `given` are the caller's own values, `file` the arag.toml."""
    problem = error.errors()[0]
    loc = [str(part) for part in problem["loc"]]
    name = ".".join(loc)
    wrong = _PLAIN.get(problem["type"], problem["msg"].replace("Input should be", "must be"))
    given_here = _is_given(loc, given)
    place = f"the argument or option {name}" if given_here else _place(loc, file)
    if problem["type"] == "extra_forbidden":
        where = f" (in {place})" if place else ""
        return BadSettings(
            f"There is no setting '{name}'{where}; docs/configuration.md lists them all."
        )
    correct = f"correct it in {place}" if place else "correct it"
    if problem["type"] == "value_error":  # of a section as a whole: what is wrong names both
        wrong = wrong.removeprefix("Value error, ")
        return BadSettings(f"Section '{name}': {wrong}; {correct}.")
    if problem["type"] != NO_NAME:
        wrong = f"{wrong} (got {problem['input']!r})"
    if given_here:
        return BadOverride(name, wrong)
    return BadSettings(f"Setting '{name}' {wrong}; {correct}.")


def _is_given(loc: Sequence[str], given: Mapping[str, object]) -> bool:
    """Whether the caller gave the setting at `loc`, and not only another one of its section."""
    value: object = given
    for part in loc:
        if not isinstance(value, Mapping):  # the section was given whole, and is none
            return True
        if part not in value:
            return False
        value = value[part]
    return True


def _place(loc: list[str], file: Path | None) -> str:
    """Where the setting at `loc` was set: a variable or the file; "" if unknown."""
    set_by = {name.upper(): name for name, value in os.environ.items() if value}
    for depth in range(len(loc), 0, -1):
        variable = f"ARAG_{'__'.join(loc[:depth])}".upper()
        if variable in set_by:
            return f"the environment variable {set_by[variable]}"
    inner = f"ARAG_{'__'.join(loc)}__".upper()
    variables = sorted(name for upper, name in set_by.items() if upper.startswith(inner))
    if variables:
        return f"the environment variable {' or '.join(variables)}"
    return str(file or "")


def bad_variable(said: str, settings: type[BaseModel]) -> str:
    """What is wrong with a variable that should have held JSON."""
    for variable, example in _json_variables(settings):
        name = next((n for n in os.environ if n.upper() == variable), "")
        try:
            json.loads(os.environ.get(name) or "null")
        except ValueError:
            return (
                f"The environment variable {name} is not valid JSON (got {os.environ[name]!r}); "
                f"write it like {name}='{example}'."
            )
    return f"An environment variable ARAG_… cannot be read ({said}); correct it."


def _json_variables(settings: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The variables that are read as JSON, each with an example: lists, and whole sections."""
    for name, field in settings.model_fields.items():
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            continue
        for inner, held in field.annotation.model_fields.items():
            if get_args(held.annotation)[1:] == (...,):
                default = held.default or ("*.log", "drafts/")
                yield f"ARAG_{name}__{inner}".upper(), json.dumps(list(default))
        yield f"ARAG_{name}".upper(), '{"SETTING": VALUE}'
