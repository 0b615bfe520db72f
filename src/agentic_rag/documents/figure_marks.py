"""Images in Markdown text: `![caption](path "title")`, `![caption][label]` and `<img>`.

Fenced code shows none.
"""

import re
from collections.abc import Sequence

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Figure, Table

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)(?:[^`\n]{1,1000})\1")
_IMAGE = re.compile(
    r"!\[(?P<alt>[^\[\]\n]{0,1000})\]"
    r"(?:\([ \t]*(?:<(?P<angled>[^<>\n]{1,2000})>|(?P<path>(?:[^()\s]|\([^()\s]*\)){1,100000}))"
    r"(?:[ \t]+[\"'(](?P<title>[^\n]{0,1000}?)[\"')])?[ \t]*\)|\[(?P<label>[^\[\]\n]{0,200})\])"
)
_TAG = re.compile(r"<img\b(?P<attributes>[^<>]{1,100000})>", re.IGNORECASE)
_DEFINITION = re.compile(r" {0,3}\[([^\[\]\n]{1,200})\]:[ \t]*<?([^<>\s]{1,2000})>?")


def markdown_figures(text: str, tables: Sequence[Table]) -> tuple[Figure, ...]:
    """The images that a Markdown text shows, in order."""
    if "![" not in text and "<img" not in text.lower():
        return ()
    lines = list(_prose(text))
    labels: dict[str, str] = {}
    for _, line in lines:
        if match := _DEFINITION.match(line):
            labels.setdefault(_folded(match[1]), match[2])
    found = []
    for start, line in lines:
        after = min(start + len(line) + 1, len(text))
        inside = next((table.end for table in tables if table.start <= start < table.end), after)
        plain = _CODE.sub(lambda code: " " * len(code[0]), line)
        named = []
        for image in _IMAGE.finditer(plain):
            alt = image["alt"]
            name = image["angled"] or image["path"]
            if name is None:
                name = labels.get(_folded(image["label"] or alt), "")
            named.append((image.start(), name, alt or image["title"] or ""))
        for tag in _TAG.finditer(plain):
            alt = _attribute(tag["attributes"], "alt") or _attribute(tag["attributes"], "title")
            named.append((tag.start(), _attribute(tag["attributes"], "src"), alt))
        found += [Figure(inside, name, one_line(alt)) for _, name, alt in sorted(named) if name]
    return tuple(found)


def _prose(text: str) -> "list[tuple[int, str]]":
    """The lines outside fenced code, each with its offset."""
    found = []
    fence = ""
    start = 0
    for line in text.split("\n"):
        marks = _FENCE.match(line)
        if marks and (not fence or marks[1].startswith(fence)):
            fence = "" if fence else marks[1]
        elif not fence:
            found.append((start, line))
        start += len(line) + 1
    return found


def _attribute(attributes: str, name: str) -> str:
    match = re.search(
        rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", attributes, re.IGNORECASE
    )
    return next((value for value in match.groups() if value), "").strip() if match else ""


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()
