"""Text of OpenDocument files (ODF 1.3 part 3, 5-6): paragraphs, headings, lists, tables, frames,
notes and comments, in their order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentic_rag.documents.lines import Block, flat
from agentic_rag.documents.safe_xml import Element, attribute, child, descendants, local
from agentic_rag.documents.word_styles import written

_MOST_REPEATED = 100  # of rows and cells in a text's table
_LONGEST_CHAIN = 20
_LONGEST_HEADING = 300
_DROPPED = frozenset(
    (
        "tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls",
        "title", "desc", "hidden-paragraph", "hidden-text", "table-of-content",
        "alphabetical-index", "page-number", "page-count", "ruby-text", "note-citation", "object",
        "object-ole", "image", "plugin", "event-listeners", "glue-point", "notes",
        "table-column", "table-columns", "shapes",
    )
)  # fmt: skip
_SHAPES = {
    "1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
    "一, 二, 三, ...": "chineseCounting",
}  # fmt: skip


@dataclass(slots=True)
class OpenStyles:
    """The styles and list styles of a file by their names."""

    styles: dict[str, Element] = field(default_factory=dict)
    lists: dict[str, dict[int, Element]] = field(default_factory=dict)

    def is_title(self, name: str) -> bool:
        """Whether a style is that of titles or made from it."""
        return "Title" in self._chain(name)

    def outline_level(self, name: str) -> int:
        """The level of a paragraph whose style is a heading's, 0 for none."""
        for link in self._chain(name):
            level = attribute(self.styles[link], "default-outline-level")
            if level.isdecimal():
                return min(int(level), 10)
        return 0

    def is_hidden(self, name: str) -> bool:
        """Whether text, a sheet or a slide of a style is not shown."""
        for link in self._chain(name):
            for properties in self.styles[link]:
                display = attribute(properties, "display")
                if display in ("none", "false") or attribute(properties, "visibility") == "hidden":
                    return True
        return False

    def _chain(self, name: str) -> list[str]:
        chain: list[str] = []
        while name in self.styles and len(chain) < _LONGEST_CHAIN:
            chain.append(name)
            name = attribute(self.styles[name], "parent-style-name")
        return chain


def read_styles(roots: Iterable[Element]) -> OpenStyles:
    """The styles in `styles.xml` and `content.xml`, the later the stronger."""
    styles = OpenStyles()
    for root in roots:
        for style in descendants(root, "style"):
            styles.styles[attribute(style, "name")] = style
        for style in descendants(root, "list-style"):
            levels = {}
            for level in style:
                if (number := attribute(level, "level")).isdecimal():
                    levels[int(number)] = level
            styles.lists[attribute(style, "name")] = levels
    return styles


@dataclass(slots=True)
class TextReading:
    """One text being read: how far its lists and notes have counted. Its headings are a level
    deeper than they say, level 1 being the style of titles (see `lines.below_title`)."""

    styles: OpenStyles
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)
    _notes: int = 0

    def blocks(self, container: Iterable[Element]) -> Iterator[Block]:
        """The blocks of a body, cell, frame or note."""
        for element in container:
            name = local(element)
            if name in ("p", "h"):
                yield from self._paragraph(element, "")
            elif name == "list":
                yield from self._list(element, attribute(element, "style-name"), 1)
            elif name == "table":
                yield from self._table(element)
            elif name == "annotation":
                yield from self.comment(element)
            elif name not in _DROPPED:
                yield from self.blocks(element)

    def comment(self, element: Element) -> Iterator[Block]:
        """A comment as a paragraph."""
        paragraphs = (inner for inner in element if local(inner) in ("p", "list"))
        text = " ".join(filter(None, map(flat, self.blocks(paragraphs))))
        creator = child(element, "creator")
        author = "" if creator is None else creator.text or ""
        if text:
            yield Block(f"Comment ({author}): {text}" if author else f"Comment: {text}")

    def _paragraph(self, element: Element, label: str) -> Iterator[Block]:
        style = attribute(element, "style-name")
        if self.styles.is_hidden(style):
            return
        parts: list[str] = []
        apart: list[Element] = []
        self._inline(element, parts, apart)
        text = "".join(parts)
        level = 0
        if local(element) == "h":
            given = attribute(element, "outline-level", "1")
            level = 1 + (int(given) if given.isdecimal() and len(given) < 3 else 1)
        elif self.styles.is_title(style):
            level = 1
        elif outline := self.styles.outline_level(style):
            level = 1 + outline
        if level and text.strip() and len(text) <= _LONGEST_HEADING:
            yield Block(("" if label == "- " else label) + text, level=level)
        elif text.strip():
            yield Block(label + text, item=bool(label))
        for inner in apart:
            if local(inner) == "note":
                yield from self._note(inner)
            else:
                yield from self.blocks([inner])

    def _inline(self, element: Element, parts: list[str], apart: list[Element]) -> None:
        parts.append(_unfolded(element.text))
        for inner in element:
            name = local(inner)
            if name == "s":
                count = attribute(inner, "c", "1")
                parts.append(" " * (int(count) if count.isdecimal() and len(count) < 4 else 1))
            elif name == "tab":
                parts.append("\t")
            elif name == "line-break":
                parts.append("\n")
            elif name in ("note", "annotation", "frame", "custom-shape", "g", "text-box", "rect"):
                apart.append(inner)
            elif name in _DROPPED or (
                name == "span" and self.styles.is_hidden(attribute(inner, "style-name"))
            ):
                pass
            else:
                self._inline(inner, parts, apart)
            parts.append(_unfolded(inner.tail))

    def _note(self, element: Element) -> Iterator[Block]:
        body = child(element, "note-body")
        text = "" if body is None else " ".join(filter(None, map(flat, self.blocks(body))))
        if text:
            self._notes += 1
            yield Block(f"({self._notes}) {text}")

    def _list(self, element: Element, style: str, level: int) -> Iterator[Block]:
        if level == 1 and attribute(element, "continue-numbering") != "true":
            self._counts.pop((style, 1), None)
        for item in element:
            if local(item) not in ("list-item", "list-header"):
                continue
            label = self._label(style, level) if local(item) == "list-item" else ""
            for inner in item:
                if local(inner) == "list":
                    own = attribute(inner, "style-name") or style
                    self._counts.pop((own, level + 1), None)
                    yield from self._list(inner, own, level + 1)
                elif local(inner) in ("p", "h"):
                    yield from self._paragraph(inner, label)
                    label = ""
                else:
                    yield from self.blocks([inner])

    def _label(self, style: str, level: int) -> str:
        definition = self.styles.lists.get(style, {}).get(level)
        shape = "" if definition is None else attribute(definition, "num-format")
        if definition is None or local(definition) != "list-level-style-number" or not shape:
            return "- "
        start = attribute(definition, "start-value", "1")
        first = int(start) if start.isdecimal() and len(start) < 7 else 1
        count = self._counts.get((style, level), first - 1) + 1
        self._counts[style, level] = count
        before, after = attribute(definition, "num-prefix"), attribute(definition, "num-suffix")
        return f"{before}{written(count, _SHAPES.get(shape, 'decimal'))}{after or '.'} "

    def _table(self, element: Element) -> Iterator[Block]:
        heading, rows = self._rows(element)
        cells = [[list(blocks) for blocks in row] for row in rows]
        widest = max((len(row) for row in cells), default=0)
        framed = widest < 2 and len(cells) < 2
        if framed or any(block.level for row in cells for blocks in row for block in blocks):
            for row in cells:
                for blocks in row:
                    yield from blocks
            return
        shown = tuple(
            tuple(" ".join(filter(None, map(flat, blocks))) for blocks in row) for row in cells
        )
        yield Block(rows=shown, heading_rows=heading if 0 < heading < len(shown) else 1)

    def _rows(self, element: Element) -> tuple[int, list[list[list[Block]]]]:
        """The rows of a table as blocks of their cells, and how many are marked as heading."""
        heading = 0
        rows: list[list[list[Block]]] = []
        for inner in element:
            name = local(inner)
            if name in ("table-header-rows", "table-rows", "table-row-group"):
                _, found = self._rows(inner)
                heading = len(rows) + len(found) if name == "table-header-rows" else heading
                rows += found
            elif name == "table-row":
                row: list[list[Block]] = []
                for cell in inner:
                    if local(cell) == "table-cell":
                        row += [list(self.blocks(cell))] * _times(cell, "number-columns-repeated")
                    elif local(cell) == "covered-table-cell":
                        row += [[]] * _times(cell, "number-columns-repeated")
                rows += [row] * _times(inner, "number-rows-repeated")
        return heading, rows


def _times(element: Element, name: str) -> int:
    value = attribute(element, name, "1")
    return min(int(value), _MOST_REPEATED) if value.isdecimal() and len(value) < 9 else 1


def _unfolded(text: str | None) -> str:
    """Text with the line breaks of the XML as the spaces they stand for."""
    return (text or "").replace("\n", " ").replace("\r", "")
