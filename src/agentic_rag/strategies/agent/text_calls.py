"""Tool calls that a model wrote as text instead of making them.

Some models and servers do: JSON in a code fence or bare, `<tool_call>…</tool_call>`,
`<function=name>…</function>`, `[TOOL_CALLS] […]`, or the words "Action:" and "Action Input:".
Only calls of tools that exist count; an example in the middle of an answer does not.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from agentic_rag.strategies.agent.arguments import loosely_read

# Gives the tool's own name for what a model called it, None for no tool.
Canonical = Callable[[str], str | None]

_TAGGED = re.compile(
    r"<\|?(tool_calls?|toolcall|function_calls?|tool_use|invoke)\|?>\s*(.*?)"
    r"\s*(?:<\|?/?\1\|?>|<\|?(?:im_end|eot_id|eom_id)\|?>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_FUNCTION = re.compile(
    r"<function\s*=\s*\"?([\w.-]+)\"?\s*>\s*(.*?)\s*(?:</function>|\Z)", re.IGNORECASE | re.DOTALL
)
_PARAMETER = re.compile(
    r"<parameter\s*=\s*\"?([\w.-]+)\"?\s*>\s*(.*?)\s*(?:</parameter>|(?=<parameter)|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_MARKED = re.compile(r"(?:\[TOOL_CALLS\]|<\|python_tag\|>)\s*(.*)\Z", re.DOTALL)
_NAMED_JSON = re.compile(r"\s*([\w.-]+)\s*(?:\[ARGS\])?\s*(\{.*)\Z", re.DOTALL)
_FENCED = re.compile(r"```[\w-]*\s*\n?(.*?)\s*(?:```\s*\Z|\Z)", re.DOTALL)
_ACTION = re.compile(
    r"^\s*\**Action\**\s*:\s*`?([\w.-]+)`?\s*\n+\s*\**Action Input\**\s*:\s*(.+?)\s*"
    r"(?=^\s*\**Observation|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_BARE = re.compile(r"^[{\[]", re.MULTILINE)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "args", "parameters", "params", "input", "action_input", "tool_input")


@dataclass(frozen=True, slots=True)
class TextCalls:
    """The calls found, as (tool, arguments), and the text before the first one."""

    calls: tuple[tuple[str, object], ...]
    before: str


def find_text_calls(text: str, canonical: Canonical) -> TextCalls:
    """The calls written in `text`; none for an answer."""
    for form in (_tagged, _functions, _marked, _action, _fenced, _bare):
        start, calls = form(text, canonical)
        if calls:
            return TextCalls(tuple(calls), text[:start].strip())
    return TextCalls((), text)


Found = tuple[int, list[tuple[str, object]]]


def _tagged(text: str, canonical: Canonical) -> Found:
    calls: list[tuple[str, object]] = []
    start = len(text)
    for match in _TAGGED.finditer(text):
        inside = match.group(2)
        found = _functions(inside, canonical)[1] or _in_json(inside, canonical)
        if found:
            start = min(start, match.start())
            calls += found
    return start, calls


def _functions(text: str, canonical: Canonical) -> Found:
    calls: list[tuple[str, object]] = []
    start = len(text)
    for match in _FUNCTION.finditer(text):
        tool = canonical(match.group(1))
        if tool is None:
            continue
        parameters = {m.group(1): m.group(2) for m in _PARAMETER.finditer(match.group(2))}
        start = min(start, match.start())
        calls.append((tool, parameters or match.group(2)))
    return start, calls


def _marked(text: str, canonical: Canonical) -> Found:
    match = _MARKED.search(text)
    if match is None:
        return 0, []
    named = _NAMED_JSON.fullmatch(match.group(1))
    tool = canonical(named.group(1)) if named else None
    if named and tool:
        return match.start(), [(tool, named.group(2))]
    return match.start(), _in_json(match.group(1), canonical)


def _action(text: str, canonical: Canonical) -> Found:
    match = _ACTION.search(text)
    tool = canonical(match.group(1)) if match else None
    return (match.start(), [(tool, match.group(2))]) if match and tool else (0, [])


def _fenced(text: str, canonical: Canonical) -> Found:
    """A fence that ends the text."""
    at = text.find("```")
    while at >= 0:
        match = _FENCED.fullmatch(text[at:].rstrip())
        if match and "```" not in match.group(1):
            return at, _in_json(match.group(1), canonical)
        at = text.find("```", at + 3)
    return 0, []


def _bare(text: str, canonical: Canonical) -> Found:
    """JSON that begins a line and ends the text."""
    for match in _BARE.finditer(text):
        rest = text[match.start() :].strip()
        try:
            json.loads(rest, strict=False)
        except (ValueError, RecursionError):
            continue
        return match.start(), _in_json(rest, canonical)
    return 0, []


def _in_json(text: str, canonical: Canonical) -> list[tuple[str, object]]:
    try:
        return list(_calls_in(loosely_read(text), canonical))
    except (ValueError, RecursionError):
        return []


def _calls_in(value: object, canonical: Canonical) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        for one in value:
            yield from _calls_in(one, canonical)
        return
    if not isinstance(value, Mapping):
        return
    inner = value.get("function")
    if isinstance(inner, Mapping):
        yield from _calls_in(inner, canonical)
        return
    if isinstance(value.get("tool_calls"), list):
        yield from _calls_in(value["tool_calls"], canonical)
        return
    for key in _NAMES:
        named = value.get(key)
        tool = canonical(named) if isinstance(named, str) else None
        if tool is not None:
            given = [value[a] for a in _ARGUMENTS if a in value]
            rest = {k: v for k, v in value.items() if k != key and k not in ("id", "type")}
            yield tool, given[0] if given else rest
            return
    if len(value) == 1:
        name, arguments = next(iter(value.items()))
        tool = canonical(str(name))
        if tool is not None and isinstance(arguments, Mapping | list):
            yield tool, arguments
