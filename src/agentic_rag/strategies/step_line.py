"""A step on the way to an answer, in a line, for those who only show that something is done."""

from collections.abc import Iterator

from agentic_rag.strategies.events import Event, StepStarted, ToolCalled

_LONGEST = 100  # characters of what a tool was given


def step_line(event: Event) -> str:
    """`keyword_search: Ada Brown, bridge`, or the name of a step; "" for what is none."""
    match event:
        case ToolCalled(name=name, arguments=arguments):
            said = ", ".join(_words(arguments))
            short = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
            return f"{name}: {short}" if short else name
        case StepStarted(name=name):
            return name
    return ""


def _words(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _words(one)
    elif value is not None:
        yield " ".join(str(value).split())
