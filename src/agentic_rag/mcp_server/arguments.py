"""What a client sends as arguments of `ask`, `list_documents` and `add_document`.

As with the three retrieval tools, models wrap an object in one more, send JSON as text, and write
"null" for nothing; what is meant is taken.
"""

from collections.abc import Mapping

from agentic_rag.strategies.agent.arguments import loosely_read

_NOTHING = frozenset(["", "null", "none", "nil", "undefined"])


class Unusable(ValueError):
    """Arguments that cannot be understood; the message is a sentence for the model."""


def given(arguments: object, names: tuple[str, ...], *, lone: bool = True) -> dict[str, object]:
    """The values under `names`, those that say "nothing" left out. Raises `Unusable`.

    A lone value that is no object, or with `lone` stands under another name, is that of the first
    name.
    """
    value = _read(arguments)
    for _ in range(3):
        if not isinstance(value, Mapping) or any(name in value for name in names):
            break
        if len(value) != 1:
            break
        inner = _read(next(iter(value.values())))
        if not lone and inner is not None and not isinstance(inner, Mapping):
            unknown = next(iter(value))
            raise Unusable(f"There is no argument `{unknown}`; there are {', '.join(names)}.")
        value = inner
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = {names[0]: value}
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Unusable(f"The arguments must be a JSON object with {' or '.join(names)}.")
    return {name: value[name] for name in names if not _nothing(value.get(name))}


def text(values: Mapping[str, object], name: str) -> str:
    """The text under a name, "" where there is none. Raises `Unusable`."""
    value = values.get(name, "")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Unusable(f"`{name}` must be text.")
    return value.strip()


def number(values: Mapping[str, object], name: str, least: int, most: int) -> int | None:
    """The number under a name, brought within its bounds; None where there is none. Raises
    `Unusable`."""
    if name not in values:
        return None
    try:
        value = float(text(values, name))
    except ValueError:
        raise Unusable(f"`{name}` must be a whole number.") from None
    if value != value:
        raise Unusable(f"`{name}` must be a whole number.")
    return int(min(max(value, least), most))


def _read(value: object) -> object:
    """JSON in a text is read; any other text stays."""
    if isinstance(value, str):
        if value.strip().lower() in _NOTHING:
            return None
        if value.lstrip()[:1] in ("{", "["):
            try:
                return loosely_read(value)
            except (ValueError, RecursionError):
                return value
    return value


def _nothing(value: object) -> bool:
    if isinstance(value, list):
        return all(_nothing(one) for one in value)
    if isinstance(value, Mapping):
        return not value
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)
