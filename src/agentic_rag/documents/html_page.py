"""HTML: what a reader sees, block by block, through BeautifulSoup's `html.parser`.

Scripts, styles, navigation and hidden parts are left out. An abbreviation that says what it stands
for (`<span class="xref gxref" title="EN--中文">`) is followed by that. A block element is a line of
its own, a row of a table one line with its cells between ` | `, and `<pre>` keeps its spaces. The
tree is walked with a stack of our own: nesting is the page's choice and must not end in a
RecursionError.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from agentic_rag.documents.cleaning import is_cjk, one_line
from agentic_rag.documents.document import Document, Figure, Heading, Table
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name, split_title

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_DROPPED = _names(
    "script style nav noscript template svg math iframe object embed canvas audio video select "
    "button datalist dialog title rt rp"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# With an empty line around them, as paragraphs have.
_PARAGRAPHS = frozenset(_HEADINGS) | _names(
    "p table ul ol dl pre blockquote figure section article header footer main aside form "
    "fieldset details address hr"
)
_LINES = _names(
    "div li dt dd tr br caption legend summary figcaption option optgroup thead tbody tfoot "
    "body html center menu dir"
)
_CELLS = _names("td th")
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
# A table that holds these in its cells only places blocks on the page: its cells are no row.
_LAYOUT = frozenset(("table", "pre", *_HEADINGS))

_DECLARED = re.compile(
    rb"<meta[^>]{0,500}?charset[ \t]*=[ \t\"']*([-\w.:]+)"
    rb"|<\?xml[^>]{0,200}?encoding=[\"']([-\w.]+)",
    re.IGNORECASE,
)
# What looks like a tag inside a title is text to a browser, a tag to `html.parser`.
_TITLE = re.compile(r"(<title\b[^>]{0,500}>)(.{0,2000}?)(?=</title)", re.IGNORECASE | re.DOTALL)
_SOFT_HYPHEN = "\u00ad"
# Where pages keep the address of a picture; the first is a placeholder where there is another.
_SOURCES = ("data-src", "data-original", "src")
_ABBREVIATION = "gxref"


# A drawing with words in the page itself: a figure, though of a kind that is not read.
DRAWING = "data:image/svg+xml,<svg/>"


def declared_encoding(data: bytes) -> str | None:
    """The encoding a page says it has in its first 4 KB (browsers look at 1 KB)."""
    match = _DECLARED.search(data[:4_096])
    return (match[1] or match[2]).decode("ascii", "ignore") if match else None


def parse_html(uri: str, text: str, media_type: str) -> Document:
    """A document of clean HTML. Raises UnreadableDocument for markup beyond repair."""
    page = read_html(uri, text, media_type)
    title, headings = split_title(page.headings, page.title, file_name(uri))
    return replace(page, title=title, headings=headings)


def read_html(uri: str, text: str, media_type: str) -> Document:
    """The same as a part of something larger: every heading is one, and the title is what the
    page itself says it is, maybe nothing."""
    tree = _tree(uri, text.replace(_SOFT_HYPHEN, ""))
    lines = _Lines()
    dropped: Tag | None = None
    layouts = _layout_tables(tree)
    for event, node in _walk(tree):
        if dropped is not None:
            if event == "leave" and node is dropped:
                dropped = None
        elif event == "text":
            lines.add_text(str(node))
        elif event == "enter":
            tag: Tag = node  # type: ignore[assignment]
            if tag.name in _DROPPED or _is_hidden(tag):
                dropped = tag
                if tag.name == "svg" and tag.find("text") and not _is_hidden(tag):
                    lines.figure(DRAWING, _attribute(tag, "aria-label"))
            elif tag.name == "img":
                lines.figure(_attribute(tag, *_SOURCES), _attribute(tag, "alt", "title"))
            else:
                lines.enter(tag.name, id(tag) in layouts)
        else:
            lines.leave(node.name or "")  # type: ignore[attr-defined]
            if node.name == "span":  # type: ignore[attr-defined]
                lines.add_text(_meaning(node))  # type: ignore[arg-type]
    body, marked, tables = lines.finish()
    found = tree.find("title")
    return Document(
        uri=uri,
        title=one_line(found.get_text()) if found else "",
        media_type=media_type,
        text=body,
        headings=tuple(marked),
        tables=tuple(tables),
        figures=tuple(lines.figures),
    )


def _attribute(tag: "Tag", *names: str) -> str:
    """The first of these attributes that says anything."""
    values = (tag.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def _meaning(tag: "Tag") -> str:
    """What an abbreviation stands for, in brackets; "" for any other element."""
    if _ABBREVIATION not in tag.get_attribute_list("class"):
        return ""
    short, _, long = _attribute(tag, "title").partition("--")
    long = one_line(long)
    if not long or one_line(tag.get_text()).casefold() != one_line(short).casefold():
        return ""
    return f"（{long}）" if is_cjk(long[0]) else f" ({long})"


def _is_hidden(tag: "Tag") -> bool:
    """Whether an element's own attributes keep it from being seen."""
    return tag.has_attr("hidden") or bool(_HIDING.search(str(tag.get("style") or "")))


def _tree(uri: str, text: str) -> "BeautifulSoup":
    import warnings

    from bs4 import BeautifulSoup
    from bs4.exceptions import ParserRejectedMarkup

    text = _TITLE.sub(lambda found: found[1] + found[2].replace("<", "&lt;"), text)
    text = _without_unclosed(text)
    with warnings.catch_warnings():
        # "Looks like XML", "looks like a file name": hints for a programmer.
        warnings.simplefilter("ignore")
        try:
            return BeautifulSoup(text, "html.parser")
        except (ParserRejectedMarkup, AssertionError):
            pass
        try:  # html.parser gives up on declarations it does not know, such as <![x
            return BeautifulSoup(text.replace("<![", "&lt;!["), "html.parser")
        except (ParserRejectedMarkup, AssertionError, RecursionError) as error:
            raise UnreadableDocument(
                f"'{file_name(uri)}' holds markup that cannot be read as HTML; "
                "save it again from a browser"
            ) from error


def _without_unclosed(text: str) -> str:
    """The page with its last, unclosed tag or comment made text: `html.parser` would look for the
    end again at each `<`, in quadratic time."""
    comments = text.rfind("-->") + 1
    text = text[:comments] + text[comments:].replace("<!--", "&lt;!--")
    tags = text.rfind(">") + 1
    return text[:tags] + text[tags:].replace("<", "&lt;")


def _walk(tree: "BeautifulSoup") -> Iterator[tuple[Literal["enter", "leave", "text"], object]]:
    """The tree in reading order, without recursion; comments and declarations left out."""
    from bs4 import CData, Tag
    from bs4.element import NavigableString, PreformattedString

    stack: list[tuple[object, Iterator[object]]] = [(tree, iter(tree.contents))]
    while stack:
        parent, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            if stack:
                yield "leave", parent
        elif isinstance(child, Tag):
            yield "enter", child
            stack.append((child, iter(child.contents)))
        elif isinstance(child, NavigableString) and (
            isinstance(child, CData) or not isinstance(child, PreformattedString)
        ):
            yield "text", child


def _layout_tables(tree: "BeautifulSoup") -> set[int]:
    """Identities of the tables that place blocks rather than hold data."""
    found: set[int] = set()
    tables: list[int] = []
    for event, node in _walk(tree):
        if event == "text":
            continue
        name = node.name  # type: ignore[attr-defined]
        if event == "enter":
            if tables and name in _LAYOUT:
                found.add(tables[-1])
            if name == "table":
                tables.append(id(node))
        elif name == "table":
            tables.pop()
    return found


class _Lines:
    """Lines under construction: the state of one walk."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._length = 0
        self._line: list[str] = []
        self._gap = False  # an empty line is due before the next line
        self._headings: list[Heading] = []
        self._heading: int | None = None
        self._pre = 0
        self._tables: list[bool] = []  # whether each open table is one of rows
        self._cells = 0  # cells begun in the row at hand; 0 outside a row
        self._rows: list[int] = []  # where the rows of the open table begin
        self._found: list[Table] = []
        self._waiting: list[tuple[str, str]] = []  # figures of the line or table at hand
        self.figures: list[Figure] = []

    def figure(self, name: str, caption: str) -> None:
        """A picture, whose place is after the line or table at hand."""
        if name:
            self._waiting.append((name, one_line(caption)))

    def enter(self, name: str, layout: bool) -> None:
        """Open an element. `layout` says of a table that it only places blocks."""
        if name == "table":
            self._break(gap=True)
            self._tables.append(not layout)
            self._rows = []
        elif name in _CELLS:
            if not self._in_rows():
                self._break()
            else:
                if self._cells:
                    self._line.append(" | ")
                self._cells += 1
        else:
            self._block(name)
            if name in _HEADINGS:
                self._heading = _HEADINGS[name]
            elif name == "pre":
                self._pre += 1

    def leave(self, name: str) -> None:
        """Close an element."""
        if name == "table":
            self._break(gap=True)
            if self._tables and not self._tables.pop():
                return
            if len(self._rows) > 1:
                self._found.append(Table(self._rows[0], self._rows[1], self._length))
            self._rows = []
            self._place_figures()
        elif name in _CELLS:
            if not self._in_rows():
                self._break()
        elif name != "br":
            self._block(name)
            if name == "pre":
                self._pre = max(0, self._pre - 1)
            elif name in _HEADINGS:
                self._heading = None

    def add_text(self, text: str) -> None:
        """Text inside the element at hand."""
        if self._pre and not self._cells:
            first, *rest = text.split("\n")
            self._line.append(first)
            for line in rest:
                self._break(keep=True)
                self._line.append(line)
        else:
            self._line.append(text)

    def finish(self) -> tuple[str, list[Heading], list[Table]]:
        """The text, its headings and its tables."""
        self._break()
        self._tables.clear()
        self._place_figures()
        text = "\n".join(self._lines)
        tables = [Table(t.start, t.body, min(t.end, len(text))) for t in self._found]
        return text, self._headings, tables

    def _in_rows(self) -> bool:
        return bool(self._tables) and self._tables[-1]

    def _block(self, name: str) -> None:
        if name not in _PARAGRAPHS and name not in _LINES:
            return
        in_cell = self._in_rows() and self._cells and name != "tr"
        if in_cell or (name == "br" and self._heading is not None):
            self._line.append(" ")  # a paragraph in a cell stays in its row
        else:
            self._break(gap=name in _PARAGRAPHS)

    def _break(self, gap: bool = False, keep: bool = False) -> None:
        """End the line at hand. `keep` keeps its spaces, and an empty line too."""
        joined = "".join(self._line)
        self._line.clear()
        if keep or self._pre:
            line = joined.rstrip()
        else:
            line = one_line(joined)
            if self._cells and not line.strip("| "):
                line = ""
        in_row = bool(self._cells) and self._in_rows()
        self._cells = 0
        if line or (keep and self._lines and not self._gap):
            if self._gap and self._lines:
                self._append("")
            self._gap = False
            if in_row:
                self._rows.append(self._length)
            if self._heading is not None and line:
                text = one_line(line)
                if text:
                    self._headings.append(Heading(self._length, self._heading, text))
            self._append(line)
        self._heading = None if line else self._heading
        self._gap = self._gap or gap
        self._place_figures()

    def _place_figures(self) -> None:
        if not any(self._tables):
            self.figures += [Figure(self._length, *figure) for figure in self._waiting]
            self._waiting.clear()

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._length += len(line) + 1
