"""Styles and numbering of Word files (ECMA-376 part 1, 17.7 and 17.9): which paragraphs are
headings, what is hidden, and the numbers that Word writes before paragraphs."""

import re
from dataclasses import dataclass, field

from agentic_rag.documents.safe_xml import Element, attribute, child, children, is_on

TITLE = 0
_BODY_LEVEL = 9
_HEADING_NAME = re.compile(
    r"(?:heading|标题|標題|überschrift|titre|título|titolo|kop|rubrik|nagłówek|заголовок|見出し|제목)"
    r"\s*([1-9])\Z",
    re.IGNORECASE,
)
_TITLE_NAME = re.compile(r"(?:title|文档标题|标题|標題|表題|titel|제목)\Z", re.IGNORECASE)
_CONTENTS_NAME = re.compile(r"(?:toc|目录|目錄|contents)\s*(?:\d|heading|标题)\Z", re.IGNORECASE)
_LONGEST_CHAIN = 20  # of styles based on each other


@dataclass(slots=True)
class Styles:
    """The styles of a file by their ids."""

    found: dict[str, Element] = field(default_factory=dict)

    def heading_level(self, properties: Element | None) -> int | None:
        """0 for a paragraph with the style of titles, 1-9 for a heading, None for other text.

        The name decides before the outline level: programs other than Word write only the name.
        """
        own = self._outline(properties)
        if own is not None:
            return own if own <= _BODY_LEVEL else None
        for style_id, style in self._chain(style_of(properties)):
            name = attribute(child(style, "name"), "val") if _has(style, "name") else style_id
            if match := _HEADING_NAME.match(name):
                return int(match[1])
            if _TITLE_NAME.match(name):
                return TITLE
            outline = self._outline(child(style, "pPr"))
            if outline is not None:
                return outline if outline <= _BODY_LEVEL else None
        return None

    def in_contents(self, properties: Element | None) -> bool:
        """Whether a paragraph is an entry of a table of contents."""
        return any(
            _CONTENTS_NAME.match(attribute(child(style, "name"), "val"))
            for _, style in self._chain(style_of(properties))
            if _has(style, "name")
        )

    def is_hidden(self, style_id: str) -> bool:
        """Whether text of a style is hidden."""
        for _, style in self._chain(style_id):
            vanish = child(style, "rPr", "vanish")
            if vanish is not None:
                return is_on(vanish)
        return False

    def numbering(self, style_id: str) -> Element | None:
        """The `w:numPr` that a style gives its paragraphs."""
        for _, style in self._chain(style_id):
            properties = child(style, "pPr", "numPr")
            if properties is not None:
                return properties
        return None

    def _chain(self, style_id: str) -> list[tuple[str, Element]]:
        chain: list[tuple[str, Element]] = []
        while style_id in self.found and len(chain) < _LONGEST_CHAIN:
            style = self.found[style_id]
            chain.append((style_id, style))
            based = child(style, "basedOn")
            style_id = "" if based is None else attribute(based, "val")
        return chain

    @staticmethod
    def _outline(properties: Element | None) -> int | None:
        """The outline level counted from 1; 10 is that of body text."""
        outline = None if properties is None else child(properties, "outlineLvl")
        value = "" if outline is None else attribute(outline, "val")
        return int(value) + 1 if value.isdecimal() else None


def read_styles(root: Element | None) -> Styles:
    """The styles in `word/styles.xml`."""
    styles = Styles()
    for style in () if root is None else children(root, "style"):
        styles.found[attribute(style, "styleId")] = style
    return styles


def style_of(properties: Element | None, name: str = "pStyle") -> str:
    """The style that a `w:pPr` or `w:rPr` names."""
    style = None if properties is None else child(properties, name)
    return "" if style is None else attribute(style, "val")


def _has(element: Element, name: str) -> bool:
    return child(element, name) is not None


@dataclass(slots=True)
class Numbering:
    """The lists of a file, and how far each has counted. Lists made from one abstract list count
    on together, as in Word."""

    styles: Styles
    lists: dict[str, Element] = field(default_factory=dict)
    abstract: dict[str, Element] = field(default_factory=dict)
    _counts: dict[str, list[int | None]] = field(default_factory=dict)
    _restarted: set[tuple[str, int]] = field(default_factory=set)

    def label(self, properties: Element | None) -> str:
        """The number or mark before the next paragraph of those properties, with the space after
        it; "" for a paragraph outside any list. Counts on."""
        style_id = style_of(properties)
        given = None if properties is None else child(properties, "numPr")
        inherited = self.styles.numbering(style_id)
        list_id = _value(given, "numId") or _value(inherited, "numId")
        entry = self.lists.get(list_id)
        if entry is None:
            return ""
        abstract_id, levels = self._levels(entry)
        level_text = _value(given, "ilvl") or _value(inherited, "ilvl")
        if level_text:
            level = int(level_text) if level_text.isdecimal() else 0
        else:
            level = next((n for n, one in levels.items() if _value(one, "pStyle") == style_id), 0)
        if level not in levels or level > 8:
            return ""
        self._count(entry, list_id, abstract_id, levels, level)
        return self._written(abstract_id, levels, level)

    def _levels(self, entry: Element) -> tuple[str, dict[int, Element]]:
        abstract_id = _value(entry, "abstractNumId")
        abstract = self.abstract.get(abstract_id)
        link = "" if abstract is None else _value(abstract, "numStyleLink")
        if link:
            linked = self.lists.get(_value(self.styles.numbering(link), "numId"))
            if linked is not None:
                abstract_id = _value(linked, "abstractNumId")
                abstract = self.abstract.get(abstract_id)
        found = [] if abstract is None else children(abstract, "lvl")
        for override in children(entry, "lvlOverride"):
            found += children(override, "lvl")
        levels = {}
        for level in found:
            if (number := attribute(level, "ilvl")).isdecimal():
                levels[int(number)] = level
        return abstract_id, levels

    def _count(
        self,
        entry: Element,
        list_id: str,
        abstract_id: str,
        levels: dict[int, Element],
        level: int,
    ) -> None:
        counts = self._counts.setdefault(abstract_id, [None] * 9)
        for override in children(entry, "lvlOverride"):
            start = _value(override, "startOverride")
            at = attribute(override, "ilvl", "0")
            if start.isdecimal() and at.isdecimal() and int(at) < 9:
                key = (list_id, int(at))
                if key not in self._restarted and int(at) <= level:
                    self._restarted.add(key)
                    counts[int(at)] = int(start) - 1
        for above in range(level):
            if counts[above] is None:
                counts[above] = _start(levels.get(above))
        now = counts[level]
        counts[level] = _start(levels[level]) if now is None else now + 1
        for below in range(level + 1, 9):
            if _value(levels.get(below), "lvlRestart") != "0":
                counts[below] = None

    def _written(self, abstract_id: str, levels: dict[int, Element], level: int) -> str:
        shape = _value(levels[level], "numFmt") or "decimal"
        if shape == "bullet":
            return "- "
        counts = self._counts[abstract_id]

        def number(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            value = counts[at]
            return "" if value is None else written(value, _value(levels.get(at), "numFmt"))

        label = re.sub("%([1-9])", number, _value(levels[level], "lvlText")).strip()
        tight = _value(levels[level], "suff") == "nothing"
        return label + ("" if tight or not label else " ")


def read_numbering(root: Element | None, styles: Styles) -> Numbering:
    """The lists in `word/numbering.xml`."""
    numbering = Numbering(styles)
    if root is not None:
        for entry in children(root, "num"):
            numbering.lists[attribute(entry, "numId")] = entry
        for entry in children(root, "abstractNum"):
            numbering.abstract[attribute(entry, "abstractNumId")] = entry
    return numbering


def written(number: int, shape: str) -> str:
    """A number in one of the shapes of `w:numFmt`; in Arabic figures where the shape is rare."""
    if shape == "none":
        return ""
    if shape == "decimalZero":
        return f"{number:02}"
    if shape in ("lowerLetter", "upperLetter") and number > 0:
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if shape == "upperLetter" else letters
    if shape in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        return _roman(number).lower() if shape == "lowerRoman" else _roman(number)
    if shape.startswith("decimalEnclosedCircle") and 0 < number <= 20:
        return chr(ord("①") + number - 1)
    if shape == "ideographTraditional" and 0 < number <= 10:
        return "甲乙丙丁戊己庚辛壬癸"[number - 1]
    if shape in _HAN_SHAPES and 0 < number < 100:
        return _han(number)
    return str(number)


_HAN_SHAPES = (
    "chineseCounting", "chineseCountingThousand", "taiwaneseCounting", "taiwaneseCountingThousand",
    "japaneseCounting", "ideographDigital", "taiwaneseDigital", "japaneseDigitalTenThousand",
)  # fmt: skip
_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def _roman(number: int) -> str:
    out = ""
    for size, letters in _ROMAN:
        out += letters * (number // size)
        number %= size
    return out


def _han(number: int) -> str:
    tens, ones = divmod(number, 10)
    digits = "〇一二三四五六七八九"
    if not tens:
        return digits[ones]
    return ("" if tens == 1 else digits[tens]) + "十" + (digits[ones] if ones else "")


def _start(level: Element | None) -> int:
    value = _value(level, "start")
    return int(value) if value.isdecimal() else 1


def _value(element: Element | None, name: str) -> str:
    inner = None if element is None else child(element, name)
    return "" if inner is None else attribute(inner, "val")
