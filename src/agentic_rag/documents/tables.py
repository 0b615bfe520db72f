"""Pipe tables in Markdown text: where they lie, and which row is the heading.

The form is that of GitHub Flavored Markdown 0.29: a row, a row of dashes with as many cells, then
rows up to the first line without a pipe.
"""

import re

from agentic_rag.documents.document import Table

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DASHES = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")


def pipe_tables(text: str) -> tuple[Table, ...]:
    """The tables of a Markdown text that have rows, in order; none inside fenced code."""
    found: list[Table] = []
    fence = ""
    above = above_start = start = 0  # `above`: cells of the line before
    table: list[int] | None = None  # where the table at hand and its rows begin
    for line in text.split("\n"):
        end = min(start + len(line) + 1, len(text))
        marks = _FENCE.match(line)
        if table is not None:
            if "|" not in line:
                if start > table[1]:
                    found.append(Table(table[0], table[1], start))
                table = None
        elif not fence and above > 1 and _DASHES.match(line) and _cells(line) == above:
            table = [above_start, end]
        if marks and (not fence or marks[1].startswith(fence)):
            fence = "" if fence else marks[1]
        above, above_start = (0 if fence else _cells(line)), start
        start += len(line) + 1
    if table is not None and len(text) > table[1]:
        found.append(Table(table[0], table[1], len(text)))
    return tuple(found)


def _cells(line: str) -> int:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return len(re.findall(r"(?<!\\)\|", inner)) + 1 if "|" in line else 0
