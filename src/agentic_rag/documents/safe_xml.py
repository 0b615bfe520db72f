"""XML of office documents through lxml, with entities, network and unbounded trees off.

Elements are met by their local names: the same format has one namespace by ECMA-376 and another
by ISO 29500 "strict", and no two formats read here disagree on what a name means.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name

# lxml ships no types.
Element = Any


def parse_xml(uri: str, data: bytes) -> tuple[Element, bool]:
    """The root element of an XML document, and whether it is whole: of a damaged one, what stands
    before the damage. Raises UnreadableDocument where nothing can be read."""
    from lxml import etree

    for recover in (False, True):
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,  # depth 256, 10 MB a text, no growth by entities
            remove_comments=True,
            remove_pis=True,
            recover=recover,
        )
        try:
            root = etree.fromstring(data, parser)
        except etree.XMLSyntaxError:
            continue
        except ValueError:  # an encoding that libxml2 does not know
            break
        if root is not None:
            return root, not recover
    raise UnreadableDocument(
        f"'{file_name(uri)}' holds damaged XML; open it in its own program and save it again"
    )


def elements(uri: str, data: bytes, *names: str) -> Iterator[Element]:
    """The elements of those local names, each when it is whole; what has been met is forgotten, so
    that a large sheet does not become a large tree. Raises UnreadableDocument at the damage."""
    from lxml import etree

    try:
        for _, element in etree.iterparse(
            BytesIO(data),
            tag=[f"{{*}}{name}" for name in names],
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        ):
            yield element
            element.clear()
            above = element.getparent()
            while above is not None and element.getprevious() is not None:
                del above[0]
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableDocument(
            f"'{file_name(uri)}' holds damaged XML; open it in its own program and save it again"
        ) from error


def local(element: Element) -> str:
    """An element's name without its namespace; "" for what is no element (an entity)."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str, default: str = "") -> str:
    """An attribute by its local name, whatever its namespace."""
    value = element.get(name)
    if value is not None:
        return str(value)
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return default


def child(element: Element, *path: str) -> Element | None:
    """The first descendant along a path of local names, or None."""
    found = element
    for name in path:
        found = next((inner for inner in found if local(inner) == name), None)
        if found is None:
            return None
    return found


def children(element: Element, name: str) -> list[Element]:
    """The children of a local name."""
    return [inner for inner in element if local(inner) == name]


def descendants(element: Element, name: str) -> Iterator[Element]:
    """All descendants of a local name, in document order."""
    found: Iterator[Element] = element.iterfind(f".//{{*}}{name}")
    return found


def is_on(element: Element | None) -> bool:
    """Whether a switch such as `<w:vanish/>` is there and not turned off."""
    return element is not None and attribute(element, "val", "1") not in ("0", "false", "off")
