"""`nodetree.xml`: the table of contents of a zedx, nested nodes with a `name` and a `url`.

Elements may be called anything; attributes are met in any case. The tree is read as a stream and
only so far as it can name files: entities are never resolved from outside, and how much inner ones
may grow is held by libxml2.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.html_page import declared_encoding

if TYPE_CHECKING:
    from lxml.etree import XMLSyntaxError

# Twice the files that an archive may hold: a page may be named by more than one node.
MOST_NODES = 200_000
_DECLARATION = re.compile(r"\s*<\?xml\b[^>]{0,500}\?>")
_LONGEST_NAME = 300
# One letter is a drive of Windows.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that leads to a file: the names of the nodes above it, its own, and its `url`."""

    above: tuple[str, ...]
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Nodetree:
    """The nodes in order, and what is wrong with the tree, as a clause ("" for nothing)."""

    nodes: tuple[Node, ...] = ()
    trouble: str = ""


def read_nodetree(data: bytes) -> Nodetree:
    """The nodes of a tree, those before the damage where it is damaged."""
    from lxml import etree

    try:
        text = decode(data, declared_encoding(data)).text
    except NotText:
        return Nodetree(trouble="is no text")
    found: list[Node] = []
    try:
        for node in _nodes(_DECLARATION.sub("", text, count=1).strip().encode()):
            if len(found) == MOST_NODES:
                return Nodetree(tuple(found), f"holds more than {MOST_NODES:,} nodes")
            found.append(node)
    except etree.XMLSyntaxError as error:
        return Nodetree(tuple(found), _wrong(error))
    except ValueError:
        return Nodetree(tuple(found), "is damaged")
    return Nodetree(tuple(found), "" if found else "names no files")


def _wrong(error: "XMLSyntaxError") -> str:
    """What is wrong with a tree that libxml2 refuses, as a clause."""
    from lxml.etree import ErrorTypes

    if error.code == ErrorTypes.ERR_ENTITY_IS_EXTERNAL:
        return "refers to a file outside of it by an entity, which is never read"
    limit = error.code == ErrorTypes.ERR_RESOURCE_LIMIT
    if error.code == ErrorTypes.ERR_ENTITY_LOOP or (limit and "entity" in str(error)):
        return "holds entities that would grow without bound"
    if limit and "depth" in str(error):
        return "is nested too deep (256 levels are read)"
    return "is damaged"


def _nodes(data: bytes) -> Iterator[Node]:
    from lxml import etree

    names: list[str] = []
    for event, element in etree.iterparse(
        BytesIO(data),
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    ):
        if event == "start":
            name = one_line(_attribute(element, "name", "title"))[:_LONGEST_NAME]
            if url := _attribute(element, "url", "href").strip():
                yield Node(tuple(filter(None, names)), name, url)
            names.append(name)
        else:
            names.pop()
            element.clear()
            above = element.getparent()
            while above is not None and element.getprevious() is not None:
                del above[0]


def _attribute(element: Any, *names: str) -> str:
    for key, value in element.attrib.items():
        if key.rpartition("}")[2].lower() in names:
            return str(value)
    return ""


def file_of(url: str, folder: str) -> list[str]:
    """The paths in the archive that a `url` may mean, from `folder`, where the tree lies: as
    written, then without the percent signs."""
    plain = url.partition("#")[0].partition("?")[0].replace("\\", "/").strip()
    written = dict.fromkeys([plain, unquote(plain)])
    found: list[str] = []
    for path in written:
        for base in dict.fromkeys(["" if path.startswith("/") else folder, ""]):
            parts = _resolved([*base.split("/"), *path.split("/")])
            if parts:
                found.append("/".join(parts))
    return found


def shown_url(url: str, folder: str) -> str:
    """What a `url` that names no file in the archive is called to a person: its path in it, or all
    of it where it leads elsewhere; "" where it is only an anchor."""
    if _SCHEME.match(url):
        return one_line(url)[:_LONGEST_NAME]
    return next(reversed(file_of(url, folder)), "")


def _resolved(parts: Sequence[str]) -> list[str]:
    """Parts of a path without `.` and `..`; what climbs out of the archive stays at its top."""
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part not in ("", "."):
            kept.append(part)
    return kept
