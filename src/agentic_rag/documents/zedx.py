"""A zedx: a ZIP archive of the HTML pages of a manual, with a `nodetree.xml` that orders them.

Each page is a document of its own. The names of the nodes above it are its knowledge path, and the
name of its own node is its title where it has none. What stands at the head or foot of most pages,
and a line that repeats the one before it, is left out. Pages that the tree does not name are filed
by their folders. Styles, scripts, fonts and pictures are no documents; what else it does not name
and is none that could be read is told.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from agentic_rag.documents import file_types
from agentic_rag.documents.archives import ArchivedFile, archived_files
from agentic_rag.documents.beside import archive_beside, by_path
from agentic_rag.documents.clutter import is_clutter
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document
from agentic_rag.documents.edits import Edit, edited
from agentic_rag.documents.errors import UnreadableDocument, UnsupportedDocument
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.nodetree import Nodetree, file_of, read_nodetree, shown_url
from agentic_rag.documents.zip_safety import (
    Archive,
    Member,
    open_archive,
    open_archive_file,
    read_member,
)

SUFFIX = ".zedx"
_MEDIA_TYPE = "application/x-zedx"
_TREE = "nodetree.xml"
_MOST_TREE_BYTES = 50_000_000
MOST_PAGE_BYTES = 50_000_000
_NAMES_TOLD = 10
# Read though the tree does not name them. An archive is one document, as in any other archive.
_DOCUMENTS = frozenset((
    "html", "pdf", "word", "slides", "spreadsheet", "open_document", "rtf", "markdown", "rst",
    "text", "csv", "epub", "eml", "mbox", "msg", "ipynb", "zip", "zedx",
))  # fmt: skip
# What pages are shown with, and nobody would look for.
_TRIMMINGS = frozenset((
    ".css", ".scss", ".less", ".js", ".mjs", ".cjs", ".map", ".svg", ".ico", ".cur", ".woff",
    ".woff2", ".ttf", ".otf", ".eot", ".xsl",
))  # fmt: skip
# Furniture stands among the first or last lines of most pages; so many pages tell.
_EDGE = 6
_SAMPLE = 40
_FEWEST_PAGES = 5
_MOST_OF = 0.6


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page stands: its knowledge path below the zedx, and its node's name, if any."""

    path: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Manual:
    """The documents of a zedx, in the order of its tree and then of its directory, and all its
    files; `places` of the documents by their paths; `problems` are sentences for a person."""

    files: tuple[ArchivedFile, ...]
    everything: tuple[ArchivedFile, ...] = field(repr=False)
    places: dict[str, Place] = field(repr=False)
    problems: tuple[str, ...] = ()


def is_zedx(path: str) -> bool:
    """Whether a file is a zedx by its name."""
    return path.lower().endswith(SUFFIX)


def open_manual(path: Path) -> Manual:
    """The manual at `path`. Raises UnreadableDocument, OSError."""
    archive = open_archive_file(path)
    with archive.file:
        return manual_of(archive)


def manual_of(archive: Archive) -> Manual:
    """The manual that an archive holds."""
    files = archived_files(archive)
    tree_file = _tree_file(files)
    tree, folder = Nodetree(trouble="is missing"), ""
    if tree_file is not None:
        folder = tree_file.path.rpartition("/")[0]
        tree = _tree(archive, tree_file)
    problems = []
    if tree.trouble:
        place = "the pages it names no more are" if tree.nodes else "its pages are"
        problems.append(f"its {_TREE} {tree.trouble}: {place} filed by their folders")
    exact = {file.path: file for file in files}
    folded = {file.path.casefold(): file for file in reversed(files)}
    ordered: dict[str, ArchivedFile] = {}
    places: dict[str, Place] = {}
    missing: dict[str, None] = {}
    for node in tree.nodes:
        named = file_of(node.url, folder)
        file = next((exact[path] for path in named if path in exact), None)
        file = file or next((folded[p] for p in map(str.casefold, named) if p in folded), None)
        if file is None:
            if called := shown_url(node.url, folder):  # an anchor alone names no file
                missing[called] = None
        elif file.path not in ordered:
            ordered[file.path] = file
            places[file.path] = Place(node.above, node.name)
    if missing:
        problems.append(_missing(list(missing)))
    unread: list[str] = []
    for file in files:
        if file.path in ordered:
            continue
        if _is_document(file.path):
            ordered[file.path] = file
            places[file.path] = Place(tuple(file.path.split("/")[:-1]))
        elif not (_is_trimming(file.path) or _is_clutter(file.path)):
            unread.append(file.path)
    if unread:
        problems.append(_unread(unread))
    return Manual(tuple(ordered.values()), tuple(files), places, tuple(problems))


class Pages:
    """Makes the documents of a manual out of its pages; `read` gives a file's bytes."""

    def __init__(self, manual: Manual, read: Callable[[Member], bytes]) -> None:
        self._manual = manual
        self._read = read

    def finish(self, path: str, document: Document) -> Document:
        """The page at `path` with its title, and without what is repeated."""
        place = self._manual.places[path]
        if document.given_chunks is not None:
            return document
        document = _without(document, self._furniture)
        nameless = document.title == file_name(path) or document.title in self._furniture
        if place.name and nameless:
            return replace(document, title=place.name)
        if place.name and place.name.casefold() != document.title.casefold():
            above = (*document.knowledge_path, place.name)
            return replace(document, knowledge_path=above)
        return document

    @cached_property
    def _furniture(self) -> frozenset[str]:
        """Lines at the head or foot of most pages."""
        from agentic_rag.documents.parse import family_of, parse
        from agentic_rag.documents.reading import Reading

        pages = [file for file in self._manual.files if family_of(file.path, b"") == "html"]
        sample = pages[:: max(1, len(pages) // _SAMPLE)][:_SAMPLE]
        found: Counter[str] = Counter()
        read = 0
        for file in sample:
            try:
                page = parse(file.path, self._read(file.member), (), "", Reading())
            except Exception:  # the page itself will say what is wrong with it
                continue
            read += 1
            lines = [line for line in page.text.split("\n") if line.strip()]
            edges = {line.strip() for line in (*lines[:_EDGE], *lines[-_EDGE:])}
            found.update(edges | {page.title})
        if read < _FEWEST_PAGES:
            return frozenset()
        return frozenset(line for line, count in found.items() if count > _MOST_OF * read)


def parse_zedx(uri: str, data: bytes, media_type: str) -> Document:
    """A zedx that is no file on disk as one document: each page under the names of its nodes.
    Raises UnreadableDocument."""
    return read_zedx(uri, data, 0)


def read_zedx(uri: str, data: bytes, depth: int) -> Document:
    """The same of a zedx that lies `depth` files deep in others. Archives in it are only named."""
    from agentic_rag.documents.attachments import MOST_DEPTH, attachment

    archive = open_archive(uri, data)
    manual = manual_of(archive)
    pages = Pages(manual, lambda member: read_member(archive, member))
    members = by_path({file.path: file.member for file in manual.everything})
    composition = Composition()
    for problem in manual.problems:
        composition.warn(problem)
    open_path: tuple[str, ...] = ()
    for file in manual.files:
        if _is_clutter(file.path):
            continue
        try:
            if depth >= MOST_DEPTH or file.path.lower().endswith((".zip", SUFFIX)):
                raise UnreadableDocument("it lies too deep, an archive in an archive; unpack it")
            beside = archive_beside(
                members, file.path.split("/")[:-1], partial(read_member, archive)
            )
            content = read_member(archive, file.member)
            found = attachment(file.path, content, beside=beside)
            page = found.read(f"{uri}/{file.path}", depth + 1)
        except (UnreadableDocument, UnsupportedDocument) as error:
            composition.warn(f"'{file.path}' in it is not read: {error}")
            continue
        page = pages.finish(file.path, page)
        path = manual.places[file.path].path
        for level, name in enumerate(path, start=1):
            if open_path[:level] != path[:level]:
                composition.add_heading(level, name)
        open_path = path
        composition.add_document(page, below=len(path) + 1, heading=page.title)
        for warning in page.warnings:
            composition.warn(f"'{file.path}' in it: {warning}")
    return composition.finish(uri, file_name(uri), _MEDIA_TYPE, {"files": len(manual.files)})


def _tree_file(files: Sequence[ArchivedFile]) -> ArchivedFile | None:
    """The tree, that at the top where there are several."""
    trees = [file for file in files if PurePosixPath(file.path).name.lower() == _TREE]
    return min(trees, key=lambda file: file.path.count("/"), default=None)


def _tree(archive: Archive, file: ArchivedFile) -> Nodetree:
    if file.member.encrypted:
        return Nodetree(trouble="needs a password")
    if file.member.size > _MOST_TREE_BYTES:
        return Nodetree(trouble=f"is larger than {_MOST_TREE_BYTES // 1_000_000} MB")
    try:
        return read_nodetree(read_member(archive, file.member, _MOST_TREE_BYTES))
    except UnreadableDocument:
        return Nodetree(trouble="is damaged")


def _missing(names: list[str]) -> str:
    one = len(names) == 1
    what, verb = ("document", "is") if one else ("documents", "are")
    return f"{len(names):,} {what} that its {_TREE} names {verb} not in it: {_told(names)}"


def _unread(names: list[str]) -> str:
    one = len(names) == 1
    what, verb = ("file", "is") if one else ("files", "are")
    return (
        f"{len(names):,} {what} that its {_TREE} does not name {verb} not read: {_told(names)}; "
        "unpack it to index them"
    )


def _told(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_TOLD:,} more" if len(names) > _NAMES_TOLD else ""
    return ", ".join(names[:_NAMES_TOLD]) + more


def _family(path: str) -> str | None:
    family, _ = file_types.BY_SUFFIX.get(PurePosixPath(path).suffix.lower(), (None, ""))
    return family


def _is_document(path: str) -> bool:
    return _family(path) in _DOCUMENTS


def _is_clutter(path: str) -> bool:
    return any(map(is_clutter, path.split("/")))


def _is_trimming(path: str) -> bool:
    located = PurePosixPath(path)
    named = located.name.lower() == _TREE or located.suffix.lower() in _TRIMMINGS
    return named or _family(path) == "picture"


def _without(document: Document, furniture: frozenset[str]) -> Document:
    """The document without furniture at its edges, and without lines that stand twice in a row
    (in tables and code they mean something)."""
    text = document.text
    kept = {h.start for h in document.headings}
    tables = [(table.start, table.end) for table in document.tables]
    fixed = sorted(tables + [(code.start, code.end) for code in document.code])
    lines: list[tuple[int, str]] = []
    start = 0
    for line in text.split("\n"):
        if line.strip():
            lines.append((start, line))
        start += len(line) + 1
    edits = []
    before = ""
    for number, (start, line) in enumerate(lines):
        shown = line.strip()
        while fixed and fixed[0][1] <= start:
            fixed.pop(0)
        inside = bool(fixed) and fixed[0][0] <= start
        at_edge = number < _EDGE or number >= len(lines) - _EDGE
        repeated = shown == before or (at_edge and shown in furniture)
        if repeated and not inside and start not in kept:
            end = min(start + len(line) + 1, len(text))
            end += text.startswith("\n", end)  # with the empty line behind it
            edits.append(Edit(start, end))
        before = shown
    return edited(document, edits) if edits else document
