"""The steps of a question as lines of text, for a live display and for a saved trace.

Thoughts, tool calls, what came back and what it cost; the answer itself is not among them.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentic_rag.cli import streams
from agentic_rag.cli.passages import below_place, place

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agentic_rag.strategies.events import Event, HitRecord, StepStarted, TraceEvent

_FOR = {
    "answer": " for the answer",
    "draft": " for a first answer",
    "evaluate": " whether the passages suffice",
    "hyde": " what an answer might say",
    "keywords": " for words to look for",
    "rerank": " to put the passages in order",
    "rewrite": " what the question means",
}

_TOLD = (
    "by_words",
    "by_path",
    "by_vectors",
    "ms_by_words",
    "ms_by_vectors",
    "question",
    "query",
    "variants",
    "keywords",
    "score",
    "passed",
    "reason",
)
HITS = 5  # shown live of one search
_NARROWEST = 60  # columns


def width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return max(_NARROWEST, shutil.get_terminal_size((100, 24)).columns)


def lines(event: "Event | TraceEvent", columns: int, *, full: bool = False) -> Iterator[str]:
    """What to show of an event, a line each; `full` cuts nothing. Sentences are never cut."""
    whole = full or event.type in ("run_started", "notice")
    for line in _full(event, full):
        yield line if whole else cut(line, columns)


def _full(event: "Event | TraceEvent", full: bool) -> Iterator[str]:
    from agentic_rag.strategies.trace import STOPPED  # loaded where there is an event

    match event.type:
        case "run_started":
            yield f"{event.strategy}, {event.model}: {event.why}".rstrip(": ")
        case "step_started":
            if "model" in event.input:
                yield _asking(event)
            if full and event.input:
                yield f"{event.name} {_arguments(event.input)}"
        case "step_finished" if event.error == STOPPED:
            yield f"{event.name}: stopped after {event.duration:.1f} s"
        case "step_finished":
            count = _passages(len(event.hits))
            facts = [count, _spent(event.input_tokens, event.output_tokens)]
            yield _joined(event.name, [*facts, _retrieved(event.retrieved_tokens)], event.duration)
            yield from _hits(event.hits, full)
            yield from _output(event.output, full)
            if event.error:
                yield f"  failed: {streams.one_line(event.error)}"
        case "tool_called":
            yield f"{event.name} {_arguments(event.arguments)}".rstrip()
        case "tool_returned" if event.error == STOPPED:
            yield f"  → stopped after {event.duration:.1f} s"
        case "tool_returned":
            facts = [_passages(len(event.hits)), _retrieved(event.retrieved_tokens)]
            yield _joined("  →", facts, event.duration)
            if event.error:
                yield f"  failed: {streams.one_line(event.error)}"
            elif full:
                yield from (f"    {line}" for line in streams.safe(event.text).splitlines())
            elif event.hits:
                yield from _hits(event.hits, full)
            else:
                yield f"    {streams.one_line(event.text)}"
        case "thought":
            if full:
                yield "thought:"
                yield from (f"    {line}" for line in streams.safe(event.text).splitlines())
            else:
                yield f"thought: {streams.one_line(event.text)}"
        case "notice":
            yield f"{event.level.replace('info', 'note')}: {streams.one_line(event.message)}"


def _asking(event: "StepStarted") -> str:
    """That a model is being asked, and with how much."""
    tokens = event.input.get("request_tokens")
    size = f", about {tokens:,} tokens" if isinstance(tokens, int) else ""
    return f"asking the model{_FOR.get(event.name, '')}{size} …"


def _joined(name: str, facts: Sequence[str], seconds: float) -> str:
    told = ", ".join([*filter(None, facts), f"{seconds:.1f} s"])
    return f"{name} {told}" if name.startswith(" ") else f"{name}: {told}"


def _passages(count: int) -> str:
    return f"{count} passage{'' if count == 1 else 's'}" if count else ""


def _spent(tokens_in: int, tokens_out: int) -> str:
    return f"{tokens_in:,} tokens in, {tokens_out:,} out" if tokens_in or tokens_out else ""


def _retrieved(tokens: int) -> str:
    return f"{tokens:,} tokens of passages" if tokens else ""


def _output(output: "Mapping[str, JsonValue]", full: bool) -> Iterator[str]:
    """What a step came to: what is searched for, how it was judged; in full all but the model's
    text."""
    told = {k: v for k, v in output.items() if k in _TOLD or (full and k != "text")}
    if told:
        yield f"  → {_arguments(told)}"


def _hits(hits: "Sequence[HitRecord]", full: bool) -> Iterator[str]:
    shown = hits if full else hits[:HITS]
    for hit in shown:
        # A result from the web has no id.
        where = place(hit.title, hit.section, hit.page, chunk_id=hit.chunk_id)
        snippet = streams.one_line(below_place(hit.snippet, hit.title, hit.section))
        yield f"    {where}: {snippet}".removesuffix(": ")
    if len(hits) > len(shown):
        yield f"    and {len(hits) - len(shown)} more"


def _arguments(arguments: "JsonValue | Mapping[str, JsonValue]") -> str:
    if isinstance(arguments, Mapping):
        return streams.one_line(" ".join(f"{k}={_json(v)}" for k, v in arguments.items()))
    return "" if arguments is None else streams.one_line(_json(arguments))


def _json(value: "JsonValue") -> str:
    return json.dumps(value, ensure_ascii=False)


def cut(line: str, columns: int) -> str:
    """`line` in at most so many columns, with an ellipsis where it was cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(line) <= columns:
        return line
    return f"{set_cell_size(line, columns - 1).rstrip()}…"
