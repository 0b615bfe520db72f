"""What a model sends as arguments, made into what a tool takes.

Models wrap arguments in one more level, send JSON inside JSON, "5" for a number, a string for a
list, "null" for nothing. What is meant is clear in most cases and is taken; where it is not, the
error is one sentence for the model.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_HITS = 20  # A-RAG
MOST_NEIGHBOURS = 3
_MOST_KEYWORDS = 20
_MOST_IDS = 20

_WRAPPERS = frozenset(
    (
        *("input", "inputs", "arguments", "args", "parameters", "params", "kwargs", "request"),
        *("body", "data", "payload", "value", "properties", "tool_input", "action_input"),
    )
)
_ABSENT = frozenset(["", "null", "none", "nil", "undefined"])
_NEVER_A_KEYWORD = frozenset(["", "null", "undefined"])  # "None" may be a word of a program
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "keywords": ("keyword", "words", "terms", "query", "queries", "q"),
    "query": ("q", "question", "searchquery", "text", "queries", "keywords"),
    "chunk_ids": ("chunkid", "ids", "id", "chunks", "chunk"),
    "top_k": ("k", "topk", "limit", "n", "numresults"),
    "neighbours": ("neighbors", "neighbour", "neighbor", "window"),
    "whole_words": ("wholeword",),
    "require_all": ("all", "matchall"),
}
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.0+)?")
_ID = re.compile(r"(\d{1,9})\s*[-‐‑‒–—−_]\s*(\d{1,9})")
_BETWEEN_KEYWORDS = re.compile(r"\s*[,;|\n，、；]\s*")


class BadArguments(ValueError):
    """Arguments that cannot be understood; the message is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class KeywordSearch:
    """`keyword_search`, as it will be run. `top_k` None: as the settings say."""

    keywords: tuple[str, ...]
    top_k: int | None = None
    whole_words: bool = False
    require_all: bool = False


@dataclass(frozen=True, slots=True)
class SemanticSearch:
    """`semantic_search`, as it will be run."""

    query: str
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """`read_chunk`, as it will be run. An id that is none stays as it was sent."""

    chunk_ids: tuple[str, ...]
    neighbours: int = 0


Wanted = KeywordSearch | SemanticSearch | ReadChunk

EXAMPLES: Mapping[str, str] = {
    "keyword_search": '{"keywords": ["Ada Brown", "bridge"]}',
    "semantic_search": '{"query": "who designed the bridge"}',
    "read_chunk": '{"chunk_ids": ["12-3"]}',
}
_MAIN: Mapping[str, str] = {
    "keyword_search": "keywords",
    "semantic_search": "query",
    "read_chunk": "chunk_ids",
}
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "keyword_search": ("keywords", "top_k", "whole_words", "require_all"),
    "semantic_search": ("query", "top_k"),
    "read_chunk": ("chunk_ids", "neighbours"),
}


def understood(tool: str, arguments: object) -> Wanted:
    """The call of `tool` that `arguments` (an object, or text that should be one) ask for.

    Raises `BadArguments`.
    """
    given = _named(tool, _unwrapped(tool, _object(tool, arguments)))
    match tool:
        case "keyword_search":
            return KeywordSearch(
                _keywords(given.get("keywords")),
                _count(given.get("top_k"), 1, MOST_HITS),
                _flag(given.get("whole_words")),
                _flag(given.get("require_all")),
            )
        case "semantic_search":
            return SemanticSearch(
                _query(given.get("query")), _count(given.get("top_k"), 1, MOST_HITS)
            )
        case "read_chunk":
            neighbours = _count(given.get("neighbours"), 0, MOST_NEIGHBOURS)
            return ReadChunk(_ids(given.get("chunk_ids")), neighbours or 0)
    raise BadArguments(f"There is no tool {tool}.")


def as_object(tool: str, arguments: object) -> Mapping[str, object]:
    """The arguments of `tool` as an object, whatever stood in its place. Raises `BadArguments`."""
    return _object(tool, arguments)


def loosely_read(text: str) -> object:
    """`text` as JSON, or as JSON with something after it, or as a Python literal.

    Raises ValueError.
    """
    text = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    try:
        return json.loads(text, strict=False)
    except ValueError:
        pass
    if text[:1] in ("{", "["):
        try:
            return json.JSONDecoder(strict=False).raw_decode(text)[0]
        except ValueError:
            pass
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    raise ValueError("not an object")


def _object(tool: str, arguments: object, depth: int = 0) -> Mapping[str, object]:
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return {str(name): value for name, value in arguments.items()}
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            read = loosely_read(arguments)
        except (ValueError, RecursionError):
            if arguments.lstrip()[0] in '{["':
                raise BadArguments("The arguments are not a JSON object.") from None
            read = [arguments.strip()]  # the bare value of the only parameter that matters
        if isinstance(read, str) and depth >= 2:
            read = [read]
        return _object(tool, read, depth + 1)
    if isinstance(arguments, Sequence):
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return _object(tool, arguments[0], depth + 1)
        return {_MAIN[tool]: list(arguments)}
    return {_MAIN[tool]: arguments}


def _unwrapped(tool: str, given: Mapping[str, object]) -> Mapping[str, object]:
    for _ in range(4):
        if any(_parameter(tool, name) for name in given if name not in _WRAPPERS):
            return given
        inside = [
            read
            for name, value in given.items()
            if (read := _inner(value)) is not None
            and (len(given) == 1 or name.lower() in _WRAPPERS)
        ]
        if not inside:
            return given
        given = inside[0]
    return given


def _inner(value: object) -> Mapping[str, object] | None:
    if isinstance(value, str):
        try:
            value = loosely_read(value)
        except (ValueError, RecursionError):
            return None
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else None


def _named(tool: str, given: Mapping[str, object]) -> dict[str, object]:
    """The values by our names; what is named otherwise is left out."""
    named: dict[str, object] = {}
    for name, value in given.items():
        parameter = _parameter(tool, name)
        if parameter and (parameter == name or parameter not in named):
            named[parameter] = value
    if not named and len(given) == 1:  # a lone value under a name of the model's own
        named[_MAIN[tool]] = next(iter(given.values()))
    return named


def _parameter(tool: str, name: str) -> str | None:
    plain = re.sub(r"[\W_]", "", name).lower()
    known = _PARAMETERS[tool]
    for parameter in known:
        if plain == parameter.replace("_", ""):
            return parameter
    return next((p for p in known if plain in _ALIASES[p]), None)


def _strings(value: object) -> list[str]:
    """The texts in a value of any shape, blanks and words for nothing left out."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] == "[" and text[-1:] == "]":
            try:
                return _strings(loosely_read(text))
            except (ValueError, RecursionError):
                pass
        return [] if text.lower() in _NEVER_A_KEYWORD else [text]
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [str(value)]
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in _strings(one)]
    if isinstance(value, Sequence):
        return [text for one in value for text in _strings(one)]
    return []


def _keywords(value: object) -> tuple[str, ...]:
    found = _strings(value)
    if isinstance(value, str) and len(found) == 1:
        found = [word for word in _BETWEEN_KEYWORDS.split(found[0]) if word]
    kept = {" ".join(word.strip("\"'“”").split()).lower(): word for word in reversed(found)}
    words = [" ".join(word.strip("\"'“”").split()) for word in reversed(kept.values())]
    words = [word for word in words if word]
    if not words:
        raise BadArguments("`keywords` is missing: a list of words to look for.")
    return tuple(words[:_MOST_KEYWORDS])


def _query(value: object) -> str:
    query = " ".join(" ".join(_strings(value)).split())
    if not query or query.lower() in _ABSENT:
        raise BadArguments("`query` is missing: a short text that says what to look for.")
    return query[:2000]


def _ids(value: object) -> tuple[str, ...]:
    found: list[str] = []
    for text in _strings(value):
        ids = [f"{int(a)}-{int(b)}" for a, b in _ID.findall(text)]
        found += ids or [text[:40]]
    if not found:
        raise BadArguments("`chunk_ids` is missing: a list of ids from a search.")
    return tuple(dict.fromkeys(found))[:_MOST_IDS]


def _count(value: Any, least: int, most: int) -> int | None:
    """A number within its bounds; None where none, or nothing that is one, was given."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(min(max(value, least), most))


def _flag(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("true", "yes", "1", "on")
    return bool(value) if isinstance(value, bool | int) else False
