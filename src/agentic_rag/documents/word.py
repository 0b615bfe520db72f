"""Word (docx, docm, dotx; ECMA-376 part 1, 17): paragraphs, lists and tables in their order.

Read as well: text boxes and charts after the paragraph they hang on, footnotes, endnotes and
comments after the paragraph that refers to them, headers and footers once, before everything.
Left out: hidden and deleted text, tables of contents and page numbers (they repeat headings and
say nothing of the text), embedded files. Pictures are figures (see figures.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from agentic_rag.documents.document import Document, Figure
from agentic_rag.documents.drawings import graphic_blocks
from agentic_rag.documents.encoding import NotText, decode
from agentic_rag.documents.headings import file_name, split_title
from agentic_rag.documents.html_page import declared_encoding, parse_html
from agentic_rag.documents.lines import Block, Lines, below_title, flat
from agentic_rag.documents.office_package import Package, Relation, open_package, relation_id
from agentic_rag.documents.page_numbers import is_page_number
from agentic_rag.documents.safe_xml import (
    Element,
    attribute,
    child,
    children,
    descendants,
    is_on,
    local,
)
from agentic_rag.documents.word_styles import Numbering, Styles, read_numbering, read_styles
from agentic_rag.documents.word_text import mark_is_deleted, read_paragraph

_DELETED = ("del", "moveFrom", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr", "pPr")
# A paragraph longer than this is text, whatever its style.
_LONGEST_HEADING = 300
_MOST_HEADING_ROWS = 3
# A cell of more is a part of the page, not a value in a row.
_LONGEST_CELL = 2_000
_ROWS_IN_A_CELL = 5


def parse_word(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a Word file's bytes. Raises UnreadableDocument."""
    package = open_package(uri, data)
    reading = _open(package)
    body = child(reading.root, "body")
    blocks = list(reading.blocks(reading.root if body is None else body))
    lines = Lines()
    for text in reading.headers_and_footers():
        lines.paragraph(text)
    lines.add(below_title(blocks))
    given, metadata = package.properties()
    text, marked, tables = lines.finish()
    title, headings = split_title(marked, given, file_name(uri))
    warnings = [*package.damage_warnings(), *dict.fromkeys(reading.warnings)]
    members = package.archive.members
    if not text and any(member.name.startswith("word/media/") for member in members):
        warnings.append("the file holds only pictures; saved as PDF, they can be read by OCR")
    return Document(
        uri=uri,
        title=title,
        media_type=media_type,
        text=text,
        headings=headings,
        tables=tables,
        figures=tuple(lines.figures),
        metadata=metadata,
        warnings=tuple(warnings),
    )


def _open(package: Package) -> "_Reading":
    main = package.main_part()
    relations = package.relations(main)

    def part(kind: str) -> Element | None:
        names = [found.target for found in relations.values() if found.kind == kind]
        return package.optional_xml(names[0]) if names else None

    styles = read_styles(part("styles"))
    return _Reading(
        package=package,
        root=package.xml(main),
        relations=relations,
        styles=styles,
        numbering=read_numbering(part("numbering"), styles),
        notes={
            (kind, attribute(note, "id")): note
            for kind in ("footnote", "endnote")
            for root in (part(f"{kind}s"),)
            if root is not None
            for note in children(root, kind)
        },
        comments={
            attribute(comment, "id"): comment
            for root in (part("comments"),)
            if root is not None
            for comment in children(root, "comment")
        },
        settings=part("settings"),
    )


@dataclass(slots=True)
class _Reading:
    """One file being read. Blocks have the level of their heading plus one, 1 being the style of
    titles."""

    package: Package
    root: Element
    relations: dict[str, Relation]
    styles: Styles
    numbering: Numbering
    notes: dict[tuple[str, str], Element]
    comments: dict[str, Element]
    settings: Element | None
    warnings: list[str] = field(default_factory=list)
    _shown: dict[tuple[str, str], int] = field(default_factory=dict)

    def blocks(self, container: Element) -> Iterator[Block]:
        """The blocks of a body, cell, text box or note."""
        carried = ""  # text of a paragraph that goes on in the next one
        for element in container:
            name = local(element)
            if name == "p":
                if self.styles.in_contents(child(element, "pPr")):
                    continue
                block, *apart = self._paragraph(element, carried)
                carried = ""
                if mark_is_deleted(child(element, "pPr")) and not block.figures:
                    carried = block.text
                else:
                    yield block
                yield from apart
                continue
            if carried:
                yield Block(carried)
                carried = ""
            if name == "tbl":
                yield from self._table(element)
            elif name == "sdt":
                content = child(element, "sdtContent")
                if content is not None and not _is_contents(element):
                    yield from self.blocks(content)
            elif name == "AlternateContent":
                yield from self._alternate(element)
            elif name == "altChunk":
                yield from self._foreign(element)
            elif name not in _DELETED:
                yield from self.blocks(element)
        if carried:
            yield Block(carried)

    def headers_and_footers(self) -> Iterator[str]:
        """The lines of headers, then of footers, each once, those that are shown on some page."""
        seen: set[str] = set()
        even = self.settings is not None and is_on(child(self.settings, "evenAndOddHeaders"))
        for wanted in ("headerReference", "footerReference"):
            for section in descendants(self.root, "sectPr"):
                first = is_on(child(section, "titlePg"))
                for reference in children(section, wanted):
                    kind = attribute(reference, "type", "default")
                    if (kind == "first" and not first) or (kind == "even" and not even):
                        continue
                    relation = self.relations.get(relation_id(reference))
                    root = self.package.optional_xml(relation.target) if relation else None
                    for block in () if root is None else self.blocks(root):
                        text = flat(block)
                        if text not in seen and not is_page_number(text):
                            seen.add(text)
                            yield text

    def _alternate(self, element: Element) -> Iterator[Block]:
        for branch in element:
            found = list(self.blocks(branch))
            if any(block.text or block.rows for block in found):
                yield from found
                return

    def _paragraph(self, element: Element, carried: str) -> Iterator[Block]:
        properties = child(element, "pPr")
        found = read_paragraph(element, self.styles)
        text = carried + found.text
        level = self.styles.heading_level(properties)
        label = self.numbering.label(properties) if text.strip() else ""
        figures = tuple(self._figures(found.pictures))
        if level is not None and label == "- ":
            label = ""
        if level is not None and len(text) <= _LONGEST_HEADING and text.strip():
            yield Block(label + text, level=level + 1, figures=figures)
        else:
            yield Block(label + text, item=bool(label), figures=figures)
        for box in found.boxes:
            yield from self.blocks(box)
        for graphic in found.graphics:
            yield from graphic_blocks(self.package, self.relations, graphic)
        for key in found.notes:
            yield from self._note(key)
        for comment in found.comments:
            yield from self._comment(comment)

    def _figures(self, pictures: list[tuple[str, str]]) -> Iterator[Figure]:
        for named, caption in pictures:
            relation = self.relations.get(named)
            if relation is None or not relation.target:
                continue  # it lies elsewhere, on a server
            read = partial(self._picture, relation.target)
            yield Figure(0, relation.target.rpartition("/")[2], caption, read)

    def _picture(self, name: str) -> bytes:
        return self.package.bytes_of(name) or b""

    def _note(self, key: tuple[str, str]) -> Iterator[Block]:
        note = self.notes.get(key)
        if note is None or key in self._shown:
            return
        number = sum(kind == key[0] for kind, _ in self._shown) + 1
        self._shown[key] = number
        text = " ".join(filter(None, map(flat, self.blocks(note))))
        if text:
            yield Block(f"({number}) {text}")

    def _comment(self, comment_id: str) -> Iterator[Block]:
        comment = self.comments.get(comment_id)
        key = ("comment", comment_id)
        if comment is None or key in self._shown:
            return
        self._shown[key] = 0
        text = " ".join(filter(None, map(flat, self.blocks(comment))))
        if text:
            author = attribute(comment, "author")
            yield Block(f"Comment ({author}): {text}" if author else f"Comment: {text}")

    def _foreign(self, element: Element) -> Iterator[Block]:
        """HTML that was put into the file as it is and that Word shows as text."""
        relation = self.relations.get(relation_id(element))
        data = self.package.bytes_of(relation.target) if relation else None
        try:
            if relation is None or data is None or data.startswith(b"PK"):
                raise NotText("it is no text")
            if not relation.target.lower().endswith((".html", ".htm", ".xhtml", ".txt")):
                raise NotText("it is of another type")
            text = decode(data, declared_encoding(data)).text
        except NotText:
            self.warnings.append("an embedded document is left out: save the file again in Word")
            return
        page = parse_html(self.package.uri, text, "text/html")
        yield from (Block(part) for part in page.text.split("\n\n"))  # its pictures lie elsewhere

    def _table(self, table: Element) -> Iterator[Block]:
        rows = list(_rows(table))
        cells = [[list(self.blocks(cell)) for cell in _cells(row)] for row in rows]
        if _is_layout(cells):
            for row in cells:
                for blocks in row:
                    yield from blocks
            return
        shown = []
        for row, found in zip(rows, cells, strict=True):
            line = [""] * _number(child(row, "trPr"), "gridBefore", 0)
            for cell, blocks in zip(_cells(row), found, strict=True):
                properties = child(cell, "tcPr")
                text = "" if _is_covered(properties) else " ".join(map(flat, blocks)).strip()
                line += [text, *[""] * (_number(properties, "gridSpan", 1) - 1)]
            shown.append(tuple(line))
        heading = _heading_rows(rows)
        figures = (f for row in cells for blocks in row for block in blocks for f in block.figures)
        yield Block(rows=tuple(shown), heading_rows=heading, figures=tuple(figures))


def _is_contents(element: Element) -> bool:
    gallery = child(element, "sdtPr", "docPartObj", "docPartGallery")
    return gallery is not None and attribute(gallery, "val").lower() == "table of contents"


def _unwrapped(element: Element, wanted: str) -> Iterator[Element]:
    """Rows or cells, those inside content controls and insertions too."""
    for inner in element:
        name = local(inner)
        if name == wanted:
            yield inner
        elif name in ("sdt", "sdtContent", "customXml", "ins", "moveTo"):
            yield from _unwrapped(inner, wanted)


def _rows(table: Element) -> Iterator[Element]:
    for row in _unwrapped(table, "tr"):
        properties = child(row, "trPr")
        if properties is None or (
            child(properties, "del") is None and not is_on(child(properties, "hidden"))
        ):
            yield row


def _cells(row: Element) -> Iterator[Element]:
    for cell in _unwrapped(row, "tc"):
        if child(cell, "tcPr", "cellDel") is None:
            yield cell


def _is_covered(properties: Element | None) -> bool:
    for name in ("vMerge", "hMerge"):
        merge = None if properties is None else child(properties, name)
        if merge is not None and attribute(merge, "val", "continue") == "continue":
            return True
    return False


def _is_layout(cells: list[list[list[Block]]]) -> bool:
    """Whether a table only places blocks on the page: a frame around text, or columns of it."""
    filled = [[blocks for blocks in row if any(b.text or b.rows for b in blocks)] for row in cells]
    if max((len(row) for row in cells), default=0) < 2:
        return any(len(blocks) > 1 or blocks[0].rows for row in filled for blocks in row) or (
            len(filled) < 2
        )
    for row in filled:
        for blocks in row:
            if any(block.level or len(block.rows) > _ROWS_IN_A_CELL for block in blocks):
                return len(cells) < 2 or any(block.level for block in blocks)
            if sum(len(block.text) for block in blocks) > _LONGEST_CELL:
                return True
    return False


def _heading_rows(rows: list[Element]) -> int:
    """The rows marked as heading, else the first, with those that its merged cells reach into."""
    marked = 0
    for row in rows:
        if not is_on(child(row, "trPr", "tblHeader")):
            break
        marked += 1
    if 0 < marked < len(rows):
        return marked
    count = 1
    for row in rows[1:_MOST_HEADING_ROWS]:
        if not any(_is_covered(child(cell, "tcPr")) for cell in _cells(row)):
            break
        count += 1
    first_merges = any(
        child(cell, "tcPr", "vMerge") is not None for cell in (_cells(rows[0]) if rows else ())
    )
    return count if first_merges and count < len(rows) else 1


def _number(properties: Element | None, name: str, usual: int) -> int:
    inner = None if properties is None else child(properties, name)
    value = "" if inner is None else attribute(inner, "val")
    return min(int(value), 100) if value.isdecimal() and len(value) < 5 else usual
