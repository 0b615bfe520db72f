"""CSV and TSV: each row one line, `heading: value; heading: value`, that stands by itself.

A row is retrieved without its neighbours, so its line repeats the headings. Nothing is lost: a
cell past the last heading is named by its column, a cell without a value is left out.
"""

import csv
import re
from collections.abc import Sequence

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Document
from agentic_rag.documents.headings import file_name

_DELIMITERS = ",;\t|"
_SNIFFED = 64_000
_NUMBER = re.compile(r"[-+]?[\d.,]+%?\Z")
# Python refuses a cell of more than 131,072 characters unless told otherwise.
_LONGEST_CELL = 2**31 - 1


def parse_delimited(uri: str, text: str, media_type: str) -> Document:
    """A document of clean delimited text; its title is the file's name."""
    delimiter = _delimiter(text, "\t" if media_type == "text/tab-separated-values" else ",")
    rows, warnings = _rows(text, delimiter)
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    names: Sequence[str] = ()
    if rows and not all(_NUMBER.match(cell.strip()) for cell in rows[0]):
        names = [one_line(cell) for cell in rows[0]]
        body = rows[1:] or [[]]
    else:
        body = rows
    lines = [_line(names, row) if row else " | ".join(filter(None, names)) for row in body]
    return Document(
        uri=uri,
        title=file_name(uri),
        media_type=media_type,
        text="".join(f"{line}\n" for line in lines),
        metadata={"rows": len(body) if body != [[]] else 0, "columns": max(map(len, rows))}
        if rows
        else {},
        warnings=warnings,
    )


def row_line(names: Sequence[str], values: Sequence[str]) -> str:
    """`name: value; name: value`, without the empty values; the names are clean already."""
    parts = []
    for name, value in zip(names, values, strict=True):
        if shown := one_line(value):
            parts.append(f"{name}: {shown}")
    return "; ".join(parts)


def _line(names: Sequence[str], row: Sequence[str]) -> str:
    named = [
        names[column] if column < len(names) and names[column] else f"column {column + 1}"
        for column in range(len(row))
    ]
    return row_line(named, row)


def _rows(text: str, delimiter: str) -> tuple[list[list[str]], tuple[str, ...]]:
    csv.field_size_limit(_LONGEST_CELL)
    lines = text.splitlines(keepends=True)
    try:
        return list(csv.reader(lines, delimiter=delimiter, strict=True)), ()
    except csv.Error:
        pass  # strict also refuses "a"b, which the plain reader takes well
    rows = list(csv.reader(lines, delimiter=delimiter))
    longest = max((cell.count("\n") for row in rows[-1:] for cell in row), default=0)
    if longest == 0:
        return rows, ()
    # A quote that is never closed has swallowed the lines after it.
    rows = list(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    return rows, ("a quotation mark is never closed: quotation marks were taken as text",)


def _delimiter(text: str, usual: str) -> str:
    """The delimiter that cuts the first rows into the same number of cells most often."""
    sample = text[:_SNIFFED]
    if len(text) > _SNIFFED:
        sample = sample[: sample.rfind("\n") + 1] or sample
    lines = sample.splitlines(keepends=True)
    best, best_score = usual, 0.0
    for delimiter in sorted(_DELIMITERS, key=lambda mark: mark != usual):
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        if not widths or widths[0] < 2:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        score = alike + min(widths[0], 50) / 1_000  # between equals, more columns
        if score > best_score:
            best, best_score = delimiter, score
    return best
