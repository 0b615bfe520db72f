"""PowerPoint (pptx, pptm, ppsx, potx; ECMA-376 part 1, 19): a heading "Slide N: title" for each
slide, in the order in which they are shown.

Read: text in shapes and groups, tables, charts, SmartArt, notes, comments; footers, and what a
layout writes on its slides, stand once before the first slide. Left out: hidden slides (said in a
warning) and hidden shapes, slide numbers, pictures, embedded files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agentic_rag.documents.cleaning import number_ranges
from agentic_rag.documents.document import Document
from agentic_rag.documents.drawings import body_text, graphic_blocks, paragraph_text
from agentic_rag.documents.headings import file_name
from agentic_rag.documents.lines import Block, Lines, shown_line
from agentic_rag.documents.office_package import Package, Relation, open_package, relation_id
from agentic_rag.documents.safe_xml import Element, attribute, child, children, descendants, local

_TITLES = ("title", "ctrTitle")
_FOOTERS = ("ftr", "hdr")
_NUMBERS = ("sldNum", "dt", "sldImg")
# Placeholders whose paragraphs are points.
_POINTS = ("", "body", "obj")
_NOTES_LEVEL = 3  # not one that ends a chunk (see `text.chunking`): notes belong to their slide


@dataclass(frozen=True, slots=True)
class _Slide:
    """A slide as it is shown: `once` is text that it shares with others."""

    number: int
    title: str
    blocks: tuple[Block, ...]
    once: tuple[str, ...]


def parse_slides(uri: str, data: bytes, media_type: str) -> Document:
    """A document of a presentation's bytes. Raises UnreadableDocument."""
    package = open_package(uri, data)
    main = package.main_part()
    root = package.xml(main)
    slides, hidden = _slides(package, main, root)
    lines = Lines()
    for text in dict.fromkeys(text for slide in slides for text in slide.once):
        lines.paragraph(text)
    for slide in slides:
        title = f": {slide.title}" if slide.title else ""
        lines.heading(1, f"Slide {slide.number}{title}")
        lines.add(slide.blocks)
    warnings = list(package.damage_warnings())
    if hidden:
        plural = "s" * (len(hidden) > 1)
        warnings.append(f"hidden slide{plural} left out: {number_ranges(hidden)}")
    given, metadata = package.properties()
    first_title = next((slide.title for slide in slides if slide.title), "")
    text, headings, tables = lines.finish()
    return Document(
        uri=uri,
        title=given or first_title or file_name(uri),
        media_type=media_type,
        text=text,
        headings=headings,
        tables=tables,
        metadata={"slides": len(slides), **metadata},
        warnings=tuple(warnings),
    )


def _slides(package: Package, main: str, root: Element) -> tuple[list[_Slide], list[int]]:
    """The slides that are shown, and the numbers of those that are hidden."""
    relations = package.relations(main)
    authors = _comment_authors(package, main)
    first = attribute(root, "firstSlideNum", "1")
    start = int(first) if first.isdecimal() and len(first) < 6 else 1
    slides: list[_Slide] = []
    hidden: list[int] = []
    listed = child(root, "sldIdLst")
    for number, entry in enumerate(() if listed is None else listed, start):
        relation = relations.get(relation_id(entry))
        slide = package.optional_xml(relation.target) if relation else None
        if relation is None or slide is None:
            package.damaged.append(f"slide {number}")
        elif attribute(slide, "show", "1") in ("0", "false"):
            hidden.append(number)
        else:
            slides.append(_slide(package, relation.target, slide, number, authors))
    return slides, hidden


def _slide(
    package: Package, part: str, root: Element, number: int, authors: dict[str, str]
) -> _Slide:
    relations = package.relations(part)
    title = ""
    blocks: list[Block] = []
    once: list[str] = _layout_texts(package, relations)
    for shape in _shapes(child(root, "cSld", "spTree")):
        kind = _placeholder(shape)
        if kind in _TITLES and not title:
            title = shown_line(body_text(child(shape, "txBody")))
        elif kind in _FOOTERS:
            once.append(body_text(child(shape, "txBody")))
        elif kind not in _NUMBERS:
            blocks += _shape_blocks(package, relations, shape, kind)
    blocks += _notes(package, relations)
    blocks += _comments(package, relations, authors)
    return _Slide(number, title, tuple(blocks), tuple(text for text in once if text.strip()))


def _shapes(tree: Element | None) -> Iterator[Element]:
    """The shapes that are shown, those in groups too, in document order."""
    stack = [] if tree is None else [iter(tree)]
    while stack:
        shape = next(stack[-1], None)
        if shape is None:
            stack.pop()
            continue
        name = local(shape)
        if name == "AlternateContent":
            choice = child(shape, "Choice")
            kept = choice if choice is not None and len(choice) else child(shape, "Fallback")
            if kept is not None:
                stack.append(iter(kept))
        elif _is_hidden(shape):
            continue
        elif name == "grpSp":
            stack.append(iter(shape))
        elif name in ("sp", "graphicFrame", "cxnSp"):
            yield shape


def _is_hidden(shape: Element) -> bool:
    if not len(shape):
        return False
    properties = child(shape[0], "cNvPr")
    return properties is not None and attribute(properties, "hidden") in ("1", "true")


def _placeholder(shape: Element) -> str | None:
    """The kind of a placeholder ("" for one of no kind), None for any other shape."""
    properties = child(shape[0], "nvPr", "ph") if len(shape) else None
    return None if properties is None else attribute(properties, "type")


def _shape_blocks(
    package: Package, relations: dict[str, Relation], shape: Element, kind: str | None
) -> Iterator[Block]:
    if local(shape) == "graphicFrame":
        graphic = child(shape, "graphic", "graphicData")
        if graphic is not None:
            yield from graphic_blocks(package, relations, graphic)
        return
    body = child(shape, "txBody")
    texts = [] if body is None else [paragraph_text(p) for p in children(body, "p")]
    texts = [text for text in texts if text.strip()]
    points = kind in _POINTS and len(texts) > 1
    for text in texts:
        yield Block(f"- {text}", item=True) if points else Block(text)


def _layout_texts(package: Package, relations: dict[str, Relation]) -> list[str]:
    """What the slide's layout and master write themselves, outside their placeholders."""
    texts = []
    for part in _targets(relations, "slideLayout"):
        for drawn in (part, *package.related(part, "slideMaster")):
            if drawn not in package.known:
                root = package.optional_xml(drawn)
                tree = None if root is None else child(root, "cSld", "spTree")
                package.known[drawn] = [
                    body_text(child(shape, "txBody"))
                    for shape in _shapes(tree)
                    if _placeholder(shape) is None
                ]
            texts += package.known[drawn]
    return texts


def _notes(package: Package, relations: dict[str, Relation]) -> Iterator[Block]:
    for part in _targets(relations, "notesSlide"):
        root = package.optional_xml(part)
        tree = None if root is None else child(root, "cSld", "spTree")
        texts = [
            body_text(child(shape, "txBody"))
            for shape in _shapes(tree)
            if _placeholder(shape) not in (*_NUMBERS, *_FOOTERS)
        ]
        if any(text.strip() for text in texts):
            yield Block("Notes", level=_NOTES_LEVEL)
            for text in texts:
                yield from (Block(line) for line in text.split("\n"))


def _comments(
    package: Package, relations: dict[str, Relation], authors: dict[str, str]
) -> Iterator[Block]:
    for part in _targets(relations, "comments"):
        root = package.optional_xml(part)
        for comment in () if root is None else root.iter("{*}cm", "{*}reply"):
            text = child(comment, "text")
            shown = body_text(child(comment, "txBody")) if text is None else text.text or ""
            if shown := shown_line(shown):
                author = authors.get(attribute(comment, "authorId"), "")
                yield Block(f"Comment ({author}): {shown}" if author else f"Comment: {shown}")


def _comment_authors(package: Package, main: str) -> dict[str, str]:
    authors = {}
    for kind in ("commentAuthors", "authors"):
        for part in package.related(main, kind):
            root = package.optional_xml(part)
            for name in ("cmAuthor", "author"):
                for author in () if root is None else descendants(root, name):
                    authors[attribute(author, "id")] = attribute(author, "name")
    return authors


def _targets(relations: dict[str, Relation], kind: str) -> list[str]:
    return [found.target for found in relations.values() if found.kind == kind and found.target]
