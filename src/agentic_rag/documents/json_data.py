"""JSON and JSON Lines: readable lines `path.to.key: value`, or a corpus that comes pre-chunked.

A record (an item of a top-level list, a line of JSON Lines) that is flat becomes one line,
`key: value; key: value`, as a row of a table does; a nested one becomes a block of lines.
"""

import json
from collections.abc import Iterator

from agentic_rag.documents.cleaning import clean_text, number_ranges, one_line
from agentic_rag.documents.delimited import row_line
from agentic_rag.documents.document import Document
from agentic_rag.documents.given_chunks import given_chunks
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.plain_text import parse_plain_text

# A flat record longer than this is easier read as a block.
_LONGEST_LINE = 2_000
_FAULT = (ValueError, RecursionError)


def parse_json(uri: str, text: str, media_type: str) -> Document:
    """A document of one JSON value. What is no JSON (comments, a cut file) stays as it is, with
    a warning; several values one after another are read as JSON Lines."""
    if not text.strip():
        return parse_plain_text(uri, text, media_type)
    try:
        # Line separators within a string have become newlines, which JSON would have escaped.
        value = json.loads(text, strict=False)
    except _FAULT as error:
        if _is_json_lines(text):
            return parse_json_lines(uri, text, media_type)
        return _as_written(uri, text, media_type, f"it is not valid JSON ({_reason(error)})")
    if isinstance(value, list):
        return _records(uri, media_type, value, ())
    return _document(uri, media_type, "\n".join(_lines(value)) + "\n", ())


def parse_json_lines(uri: str, text: str, media_type: str) -> Document:
    """A document of one JSON value a line. A line that is no JSON is kept as it is written."""
    records: list[object] = []
    faults: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except _FAULT:
            records.append(line)
            faults.append(number)
    if faults and len(faults) == len(records):
        return _as_written(uri, text, media_type, "no line of it is valid JSON")
    warnings: tuple[str, ...] = ()
    if faults:
        lines, are = ("lines", "are") if len(faults) > 1 else ("line", "is")
        warnings = (f"{lines} {number_ranges(faults)} {are} not valid JSON: taken as plain text",)
    return _records(uri, media_type, records, warnings)


def _records(
    uri: str, media_type: str, records: list[object], warnings: tuple[str, ...]
) -> Document:
    if not warnings and (given := given_chunks(records)):
        chunks, complaints = given
        return Document(
            uri=uri,
            title=file_name(uri),
            media_type=media_type,
            text="",
            given_chunks=chunks,
            warnings=complaints,
        )
    blocks = [_record(record) for record in records]
    parts: list[str] = []
    for block in blocks:
        if not block:
            continue
        several = "\n" in block
        parts.append(f"\n{block}\n\n" if several and not parts else f"{block}\n" + "\n" * several)
    text = "".join(parts).lstrip("\n")
    return _document(uri, media_type, text, warnings)


def _record(record: object) -> str:
    """One line for a flat record, else a block of lines."""
    if isinstance(record, dict) and not any(isinstance(v, dict | list) for v in record.values()):
        values = [_shown(value) for value in record.values()]
        size = sum(map(len, values))
        if size <= _LONGEST_LINE and not any("\n" in value.strip() for value in values):
            return row_line([one_line(str(key)) for key in record], values)
    return "\n".join(_lines(record))


def _lines(value: object) -> Iterator[str]:
    """`path.to.key: value` for each scalar, in order; a list of scalars is one line."""
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict) and item:
            dotted = f"{path}." if path else ""
            children = [(f"{dotted}{one_line(str(key))}", child) for key, child in item.items()]
            stack.extend(reversed(children))
        elif isinstance(item, list) and any(isinstance(child, dict | list) for child in item):
            indexed = [(f"{path}[{index}]", child) for index, child in enumerate(item)]
            stack.extend(reversed(indexed))
        else:
            if isinstance(item, list):
                shown = ", ".join(one_line(_shown(child)) for child in item)
            else:
                shown = _shown(item).rstrip("\n")
            yield f"{path}: {shown}".rstrip(" ") if path else shown


def _shown(value: object) -> str:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict | list):
        return ""  # empty, or it would have been opened
    return json.dumps(value)  # null, true, 1.5


def _is_json_lines(text: str) -> bool:
    """Whether the first two lines with something on them are JSON objects or lists."""
    lines = [line for line in text[:1_000_000].split("\n") if line.strip()][:2]
    try:
        return len(lines) == 2 and all(isinstance(json.loads(x), dict | list) for x in lines)
    except _FAULT:
        return False


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _as_written(uri: str, text: str, media_type: str, why: str) -> Document:
    return _document(uri, media_type, text, (f"{why}: taken as plain text",))


def _document(uri: str, media_type: str, text: str, warnings: tuple[str, ...]) -> Document:
    return Document(
        uri=uri,
        title=file_name(uri),
        media_type=media_type,
        text=clean_text(text),
        warnings=warnings,
    )
