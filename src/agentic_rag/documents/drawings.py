"""DrawingML inside Word and PowerPoint files (ECMA-376 part 1, 20-21): shapes' text, tables,
charts (title, and the values they show as a table) and SmartArt."""

from collections.abc import Iterator

from agentic_rag.documents.lines import Block
from agentic_rag.documents.office_package import Package, Relation
from agentic_rag.documents.safe_xml import (
    Element,
    attribute,
    child,
    children,
    descendants,
    local,
)

# A chart of more points is a curve: its values are measured, not read.
_MOST_POINTS = 200
_FIELDS_LEFT_OUT = ("slidenum",)


def paragraph_text(paragraph: Element) -> str:
    """The text of an `a:p`, line breaks kept; slide numbers left out."""
    parts = []
    for inner in paragraph:
        name = local(inner)
        if name in ("r", "fld"):
            if attribute(inner, "type") not in _FIELDS_LEFT_OUT:
                parts += [run.text or "" for run in children(inner, "t")]
        elif name == "br":
            parts.append("\n")
        elif name == "m":  # a14:m, a formula
            parts += [run.text or "" for run in descendants(inner, "t")]
        elif name == "AlternateContent":
            chosen = inner[0] if len(inner) else inner
            parts += [run.text or "" for run in descendants(chosen, "t")]
    return "".join(parts)


def body_text(body: Element | None) -> str:
    """The text of a shape or a cell, a line each paragraph."""
    if body is None:
        return ""
    texts = (paragraph_text(paragraph) for paragraph in children(body, "p"))
    return "\n".join(text for text in texts if text.strip())


def table_block(table: Element) -> Block:
    """An `a:tbl`; the value of a merged cell stands once."""
    rows = []
    for row in children(table, "tr"):
        cells = []
        for cell in children(row, "tc"):
            covered = attribute(cell, "hMerge") in ("1", "true")
            covered = covered or attribute(cell, "vMerge") in ("1", "true")
            cells.append("" if covered else body_text(child(cell, "txBody")))
        rows.append(tuple(cells))
    return Block(rows=tuple(rows))


def graphic_blocks(
    package: Package, relations: dict[str, Relation], graphic: Element
) -> Iterator[Block]:
    """What stands in an `a:graphicData`: tables, charts and SmartArt."""
    for inner in graphic:
        name = local(inner)
        if name == "tbl":
            yield table_block(inner)
        elif name == "chart":
            relation = relations.get(attribute(inner, "id"))
            root = package.optional_xml(relation.target) if relation else None
            if root is not None:
                yield from chart_blocks(root)
        elif name == "relIds":
            relation = relations.get(attribute(inner, "dm"))
            root = package.optional_xml(relation.target) if relation else None
            if root is not None:
                yield from _smart_art(root)


def chart_blocks(root: Element) -> Iterator[Block]:
    """A chart's titles, then its series as a table: a row each category."""
    yield from map(Block, chart_titles(root))
    names: list[str] = []
    categories: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for series in descendants(root, "ser"):
        names.append(" ".join(_points(child(series, "tx")).values()))
        for name in ("cat", "xVal"):
            categories = categories or _points(child(series, name))
        columns.append(_points(child(series, "val")) or _points(child(series, "yVal")))
    indexes = sorted({index for column in columns for index in column} | set(categories))
    if 0 < len(indexes) * len(columns) <= _MOST_POINTS:
        rows = [("", *names)]
        rows += [
            (categories.get(i, str(i + 1)), *(column.get(i, "") for column in columns))
            for i in indexes
        ]
        yield Block(rows=tuple(rows))
    elif any(names):
        yield Block("; ".join(name for name in names if name))


def chart_titles(root: Element) -> Iterator[str]:
    """The titles of a chart and of its axes."""
    for title in descendants(root, "title"):
        rich = child(title, "tx", "rich")
        text = body_text(rich) if rich is not None else " ".join(_points(title).values())
        if text.strip():
            yield text


def _points(element: Element | None) -> dict[int, str]:
    """The values that a chart keeps of the cells it shows, by their index."""
    if element is None:
        return {}
    found: dict[int, str] = {}
    for point in descendants(element, "pt"):
        value = child(point, "v")
        index = attribute(point, "idx", "0")
        if value is not None and value.text and index.isdecimal() and len(index) < 8:
            found.setdefault(int(index), _number(value.text))
    if not found:
        value = child(element, "v")
        if value is not None and value.text:
            found[0] = value.text
    return found


def _number(text: str) -> str:
    """A number without the noise of binary fractions: `0.30000000000000004` gives `0.3`."""
    try:
        return f"{float(text):.12g}" if len(text) > 12 else text
    except ValueError:
        return text


def _smart_art(root: Element) -> Iterator[Block]:
    for point in descendants(root, "pt"):
        if attribute(point, "type", "node") in ("node", "asst"):
            text = body_text(child(point, "t"))
            if text.strip():
                yield Block("- " + text.replace("\n", " "), item=True)
