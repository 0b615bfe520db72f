"""Headings found in a text, and which of them is the document's title."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.document import Heading


def file_name(uri: str) -> str:
    """The last part of a path or URL, as the title of a document that names itself nowhere."""
    return one_line(PurePosixPath(uri.replace("\\", "/") or "/").name) or one_line(uri)


def split_title(
    headings: Sequence[Heading], given: str, fallback: str
) -> tuple[str, tuple[Heading, ...]]:
    """The title, and the headings without it, so that no section path repeats the title.

    A title given elsewhere (front matter, `<title>`) wins. Otherwise the first heading is the
    title if it is the only one of the first level: where there are several, each is a part, and
    naming the document after the first would file the others under it.
    """
    first = headings[0] if headings and headings[0].level == 1 else None
    if given:
        repeated = first is not None and first.text.casefold() == given.casefold()
        return given, tuple(headings[1:] if repeated else headings)
    if first is not None and first.text and all(h.level > 1 for h in headings[1:]):
        return first.text, tuple(headings[1:])
    return fallback, tuple(headings)
