"""Front matter: the YAML (`---`) or TOML (`+++`) block that may open a Markdown file."""

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Scalar

# A block longer than this is no front matter; it also bounds what YAML may be asked to do.
_LONGEST = 64_000
_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def split_front_matter(text: str) -> tuple[dict[str, Scalar], str]:
    """The block's scalars (lists of scalars joined by commas) and the text after the block.

    A text whose first block is no mapping is returned whole: `---` also draws a line.
    """
    head = text[:_LONGEST]
    if match := _YAML.match(head):
        loaded = _load_yaml(match[1])
    elif match := _TOML.match(head):
        loaded = _load_toml(match[1])
    else:
        return {}, text
    if loaded is None:
        return {}, text
    return scalars(loaded), text[match.end() :]


def scalars(values: Mapping[object, object]) -> dict[str, Scalar]:
    """The entries that metadata can hold, under clean names; the others are left out."""
    found: dict[str, Scalar] = {}
    for key, value in values.items():
        name = one_line(str(key))
        if isinstance(value, list | tuple):
            parts = [scalar(item) for item in value]
            if parts and None not in parts:
                found[name] = ", ".join(map(str, parts))
        elif (single := scalar(value)) is not None:
            found[name] = single
    return found


def scalar(value: object) -> Scalar | None:
    """`value` as metadata holds it; None for what is no scalar, or nothing."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value) if abs(value) < 10**4000 else None
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return None


def as_json(value: object) -> str:
    """A value that is no scalar, as readable JSON."""
    return one_line(json.dumps(value, ensure_ascii=False))


def _load_yaml(block: str) -> Mapping[object, object] | None:
    import yaml

    try:
        loaded = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, AttributeError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _load_toml(block: str) -> Mapping[object, object] | None:
    import tomllib

    try:
        return {key: value for key, value in tomllib.loads(block).items()}
    except (RecursionError, ValueError):
        return None
