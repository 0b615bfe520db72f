"""Source code: the text as it is; Python's classes and functions are its headings."""

import re

from agentic_rag.documents.document import Document, Heading
from agentic_rag.documents.headings import file_name

_DEFINITION = re.compile(r"^([ \t]*)(?:async[ \t]+)?(class|def)[ \t]+([^\W\d]\w*)", re.MULTILINE)
# PEP 263, and the XML declaration.
_DECLARED = re.compile(rb"coding[:=][ \t]*([-\w.]+)|<\?xml[^>]{0,200}?encoding=[\"']([-\w.]+)")


def declared_encoding(data: bytes) -> str | None:
    """The encoding named in the first two lines, if any is."""
    head = b"\n".join(data[:1_000].splitlines()[:2])
    match = _DECLARED.search(head)
    return (match[1] or match[2]).decode("ascii", "ignore") if match else None


def parse_source_code(uri: str, text: str, media_type: str) -> Document:
    """A document of clean code; its title is the file's name."""
    headings = tuple(_python_headings(text)) if media_type == "text/x-python" else ()
    return Document(
        uri=uri, title=file_name(uri), media_type=media_type, text=text, headings=headings
    )


def _python_headings(text: str) -> list[Heading]:
    """Top-level definitions at level 1, the methods of a top-level class at level 2.

    Lines are matched, not parsed: code that does not compile, or is for another version of the
    language, keeps its headings.
    """
    headings: list[Heading] = []
    in_class = False
    method_indent = ""
    for match in _DEFINITION.finditer(text):
        indent, kind, name = match.groups()
        if not indent:
            in_class, method_indent = kind == "class", ""
            headings.append(Heading(match.start(), 1, f"{kind} {name}"))
        elif in_class:
            method_indent = method_indent or indent
            if indent == method_indent:
                headings.append(Heading(match.start(), 2, f"{kind} {name}"))
    return headings
