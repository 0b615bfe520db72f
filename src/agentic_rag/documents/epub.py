"""EPUB 2 and 3: the chapters in reading order, each through the reading of HTML.

The package file names the chapters (EPUB 3.3, "spine"), the table of contents their titles: where
a chapter's file marks no heading itself, its title from there is its heading. What is left out:
pictures, and with them the pages of books that consist of pictures.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from agentic_rag.documents.cleaning import one_line
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document, Heading, Scalar
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.html_page import declared_encoding, read_html
from agentic_rag.documents.safe_xml import (
    Element,
    attribute,
    child,
    children,
    descendants,
    local,
    parse_xml,
)
from agentic_rag.documents.zip_safety import Archive, open_archive, read_member

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts are often scrambled in books that are free to read (EPUB 3.3, "font obfuscation").
_FONT_SCRAMBLING = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")
_MOST_CHAPTER_BYTES = 50_000_000
_DEEPEST_TITLE = 6
_NAMES_TOLD = 5
_BETWEEN = re.compile(r"[\s\W_]+")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the table of contents; `path` is the chapter's file, `level` counts from 1."""

    path: str
    level: int
    title: str


def parse_epub(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a book. Raises UnreadableDocument for a damaged one and for one that is locked
    to a reading program."""
    archive = open_archive(uri, data)
    package_path, package = _package(uri, archive)
    folder = posixpath.dirname(package_path)
    items = _manifest(package, folder)
    chapters = _spine(package, items)
    locked = _locked(uri, archive)
    contents = _contents(uri, archive, package, items)
    composition = Composition()
    missing: list[str] = []
    closed: list[str] = []
    for path in chapters:
        member = archive.find(path)
        if path in locked:
            closed.append(path)
        elif member is None:
            missing.append(path)
        else:
            page = _page(uri, path, read_member(archive, member, _MOST_CHAPTER_BYTES), composition)
            if page is not None:
                _add_chapter(composition, page, contents.get(path, []))
    if closed and composition.is_empty():
        raise UnreadableDocument(
            f"'{file_name(uri)}' is locked to a reading program (DRM); only a copy without that "
            "lock can be read"
        )
    if not chapters:
        raise UnreadableDocument(
            f"'{file_name(uri)}' names no chapters: it is damaged; convert it again, or fetch it "
            "again"
        )
    if missing:
        composition.warn(f"chapters missing in the file: {_told(missing)}")
    if closed:
        composition.warn(f"chapters locked to a reading program (DRM): {_told(closed)}")
    if composition.is_empty() and not missing:
        composition.warn("no text in it: its pages are pictures")
    title, metadata = _metadata(package)
    return composition.finish(uri, title or file_name(uri), media_type, metadata)


def _package(uri: str, archive: Archive) -> tuple[str, Element]:
    """The path and the root element of the package file."""
    path = ""
    if member := archive.find(_CONTAINER):
        root, _ = parse_xml(uri, read_member(archive, member))
        rootfile = next(descendants(root, "rootfile"), None)
        path = _inside("", attribute(rootfile, "full-path")) if rootfile is not None else ""
    member = archive.find(path) if path else None
    if member is None:  # a container that leads nowhere: there is but one package file
        member = next((m for m in archive.members if m.name.lower().endswith(".opf")), None)
    if member is None:
        raise UnreadableDocument(
            f"'{file_name(uri)}' is no EPUB book: its package file is missing; convert it again"
        )
    root, _ = parse_xml(uri, read_member(archive, member))
    return member.name, root


def _manifest(package: Element, folder: str) -> dict[str, tuple[str, str, str]]:
    """The files of the book by their ids: path, media type, properties."""
    manifest = child(package, "manifest")
    return {
        attribute(item, "id"): (
            _inside(folder, attribute(item, "href")),
            attribute(item, "media-type").lower(),
            attribute(item, "properties"),
        )
        for item in (() if manifest is None else children(manifest, "item"))
    }


def _spine(package: Element, items: Mapping[str, tuple[str, str, str]]) -> list[str]:
    """Paths of the chapters in reading order; each once."""
    spine = child(package, "spine")
    refs = () if spine is None else children(spine, "itemref")
    named = [items.get(attribute(ref, "idref")) for ref in refs]
    found = [item for item in named if item and (item[1] in _PAGES or _is_page(item[0]))]
    # A book without a spine is read in the order of its files.
    found = found or [item for item in items.values() if item[1] in _PAGES]
    return list(dict.fromkeys(path for path, _, _ in found))


def _is_page(path: str) -> bool:
    return path.lower().endswith((".xhtml", ".html", ".htm"))


def _locked(uri: str, archive: Archive) -> set[str]:
    """Paths of encrypted files, scrambled fonts left out."""
    member = archive.find(_ENCRYPTION)
    if member is None:
        return set()
    root, _ = parse_xml(uri, read_member(archive, member))
    locked = set()
    for data in descendants(root, "EncryptedData"):
        method = next(descendants(data, "EncryptionMethod"), None)
        if method is not None and attribute(method, "Algorithm") in _FONT_SCRAMBLING:
            continue
        for reference in descendants(data, "CipherReference"):
            locked.add(_inside("", attribute(reference, "URI")))
    return locked


def _page(uri: str, path: str, data: bytes, composition: Composition) -> Document | None:
    try:
        text = decode(data, declared_encoding(data)).text
        return read_html(uri, text, "application/xhtml+xml")
    except (NotText, UnreadableDocument):
        composition.warn(f"a chapter is damaged and left out: {path}")
        return None


def _add_chapter(composition: Composition, page: Document, entries: list[_Entry]) -> None:
    """Append a chapter with its own headings and those that only the table of contents names."""
    if not page.text.strip():
        return
    headings = {heading.start: heading for heading in page.headings}
    marked = {_bare(heading.text) for heading in page.headings}
    at = 0
    for entry in entries:
        wanted = _bare(entry.title)
        if not wanted or wanted in marked:
            continue
        start = _line_of(page.text, wanted, at)
        if start is not None and start not in headings:
            headings[start] = Heading(start, entry.level, entry.title)
            at = start + 1
        elif not headings and entry is entries[0]:
            composition.add_heading(entry.level, entry.title)
    in_order = tuple(headings[start] for start in sorted(headings))
    composition.add_document(replace(page, title="", headings=in_order))


def _line_of(text: str, wanted: str, after: int) -> int | None:
    """Where the first line after an offset stands that is a title, read without its spaces and
    punctuation."""
    start = 0
    for line in text.split("\n"):
        if start >= after and len(line) < 4 * len(wanted) + 20 and _bare(line) == wanted:
            return start
        start += len(line) + 1
    return None


def _bare(title: str) -> str:
    return _BETWEEN.sub("", title).casefold()


def _contents(
    uri: str, archive: Archive, package: Element, items: Mapping[str, tuple[str, str, str]]
) -> dict[str, list[_Entry]]:
    """The lines of the table of contents by the file they lead to."""
    nav = next((path for path, _, props in items.values() if "nav" in props.split()), "")
    spine = child(package, "spine")
    ncx = items.get(attribute(spine, "toc") if spine is not None else "", ("", "", ""))[0]
    ncx = ncx or next((p for p, kind, _ in items.values() if kind.endswith("dtbncx+xml")), "")
    for path, reading in ((nav, _nav_entries), (ncx, _ncx_entries)):
        member = archive.find(path) if path else None
        if member is None:
            continue
        try:
            root, _ = parse_xml(uri, read_member(archive, member))
        except UnreadableDocument:
            continue  # the chapters are there all the same
        found: dict[str, list[_Entry]] = {}
        for entry in reading(root, posixpath.dirname(member.name)):
            found.setdefault(entry.path, []).append(entry)
        if found:
            return found
    return {}


def _nav_entries(root: Element, folder: str) -> Iterator[_Entry]:
    """The entries of EPUB 3's navigation document: nested lists of links."""
    navs = list(descendants(root, "nav"))
    toc = next((nav for nav in navs if attribute(nav, "type") == "toc"), navs[0] if navs else None)
    if toc is None:
        return
    for link in descendants(toc, "a"):
        level = sum(local(above) == "ol" for above in link.iterancestors())
        yield _entry(folder, attribute(link, "href"), level, "".join(link.itertext()))


def _ncx_entries(root: Element, folder: str) -> Iterator[_Entry]:
    """The entries of EPUB 2's NCX: nested points."""
    for point in descendants(root, "navPoint"):
        label, content = child(point, "navLabel"), child(point, "content")
        if label is None or content is None:
            continue
        level = 1 + sum(local(above) == "navPoint" for above in point.iterancestors())
        yield _entry(folder, attribute(content, "src"), level, "".join(label.itertext()))


def _entry(folder: str, href: str, level: int, title: str) -> _Entry:
    return _Entry(_inside(folder, href), min(max(level, 1), _DEEPEST_TITLE), one_line(title))


def _inside(folder: str, href: str) -> str:
    """The path in the archive that a reference leads to."""
    try:
        path = unquote(urlsplit(href.strip()).path)
    except ValueError:
        path = href
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def _metadata(package: Element) -> tuple[str, dict[str, Scalar]]:
    about = child(package, "metadata")
    values: dict[str, list[str]] = {}
    for element in () if about is None else about.iter("*"):
        text = one_line("".join(element.itertext()))
        if text:
            values.setdefault(local(element), []).append(text)
    names = {"author": "creator", "publisher": "publisher", "date": "date", "language": "language"}
    metadata: dict[str, Scalar] = {
        name: ", ".join(values[element]) for name, element in names.items() if element in values
    }
    return next(iter(values.get("title", [])), ""), metadata


def _told(paths: list[str]) -> str:
    shown = ", ".join(one_line(path) for path in paths[:_NAMES_TOLD])
    more = len(paths) - _NAMES_TOLD
    return f"{shown} and {more} more" if more > 0 else shown
