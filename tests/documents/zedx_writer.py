"""A zedx written by hand: pages, files, and the tree of nodes that names them."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr


@dataclass(frozen=True)
class Node:
    """A node of the tree; `url` is "" for one that leads nowhere."""

    name: str
    url: str = ""
    inner: Sequence["Node"] = ()


def nodetree(*nodes: Node, charset: str = "utf-8") -> bytes:
    """A nodetree.xml."""
    body = "".join(map(_node, nodes))
    return f'<?xml version="1.0" encoding="{charset}"?>\n<tree>{body}</tree>'.encode(charset)


def page(body: str, title: str = "", charset: str = "utf-8") -> bytes:
    """An HTML page."""
    head = f'<meta http-equiv="Content-Type" content="text/html; charset={charset}">'
    named = f"<title>{title}</title>" if title else ""
    return f"<html><head>{head}{named}</head><body>{body}</body></html>".encode(charset)


def write_zedx(path: Path, files: Mapping[str, str | bytes], *nodes: Node) -> Path:
    """A zedx of these files, and a tree where there are nodes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if nodes:
            archive.writestr("nodetree.xml", nodetree(*nodes))
    return path


def _node(node: Node) -> str:
    url = f" url={quoteattr(node.url)}" if node.url else ""
    return f"<node name={quoteattr(node.name)}{url}>{''.join(map(_node, node.inner))}</node>"
