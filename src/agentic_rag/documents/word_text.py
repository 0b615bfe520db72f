"""One paragraph of a Word file (ECMA-376 part 1, 17.3): its text as shown, and what hangs on it.

Kept: inserted text, fields' results, hyperlinks' text, content controls, symbols, formulas on one
line. Dropped: deleted and hidden text, fields' codes, soft hyphens, readings over characters
(ruby), the prompt of a content control that nobody filled in.
"""

from dataclasses import dataclass, field

from agentic_rag.documents.office_package import relation_id
from agentic_rag.documents.safe_xml import Element, attribute, child, is_on, local
from agentic_rag.documents.word_styles import Styles, style_of

_PLAIN = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_DROPPED = frozenset(("del", "moveFrom", "pPr", "rPr", "instrText", "delText", "rt", "rubyPr"))
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_COMMENT = "commentReference"
_DRAWN = ("drawing", "pict", "object")
_MATH = ("oMath", "oMathPara")

# The places of characters in the fonts Symbol and Wingdings, from F020 on (they are no Unicode).
_SYMBOL = dict(
    zip(
        "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcywVJj",
        "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψωςϑϕ",
        strict=True,
    )
) | dict(
    zip(
        "\xa3\xb3\xb1\xb4\xb8\xb9\xbb\xb0\xa5\xb7\xae\xac\xd6\xb6\xf2\xe5\xce\xa2\xa9\xd2",
        "≤≥±×÷≠≈°∞•→←√∂∫∑∈′♥®",
        strict=True,
    )
)
_WINGDINGS = dict(
    zip(
        "\xfe\xfd\xa8\x6f\x71\x72\xfc\xfb\xe0\xdf\xe8\x6c\x6e\xa7\x77\x75\xd8\x9f\x28\x2a\x4a\x4c",
        "☑☒☐☐❑❒✓✗→←➔●■▪◆◆➢•☎✉☺☹",
        strict=True,
    )
)
_UNKNOWN_SYMBOL = "▪"


@dataclass(slots=True)
class Paragraph:
    """A paragraph's text, and in their order what is shown apart from it: `boxes` are the
    contents of text boxes, `graphics` charts and SmartArt, `notes` pairs of kind and id,
    `pictures` pairs of a relation's id and what the picture is said to show."""

    text: str = ""
    boxes: list[Element] = field(default_factory=list)
    graphics: list[Element] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)


def read_paragraph(element: Element, styles: Styles) -> Paragraph:
    """What a `w:p` shows."""
    reading = _Reading(styles)
    if styles.is_hidden(style_of(child(element, "pPr"))):
        return reading.found
    reading.children(element)
    reading.found.text = "".join(reading.parts)
    return reading.found


def mark_is_deleted(properties: Element | None) -> bool:
    """Whether a paragraph goes on in the next one, its mark being deleted (tracked changes) or
    hidden, or its text being a drop cap."""
    if properties is None:
        return False
    frame = child(properties, "framePr")
    if frame is not None and attribute(frame, "dropCap") in ("drop", "margin"):
        return True
    mark = child(properties, "rPr")
    return mark is not None and (child(mark, "del") is not None or is_on(child(mark, "specVanish")))


@dataclass(slots=True)
class _Reading:
    styles: Styles
    found: Paragraph = field(default_factory=Paragraph)
    parts: list[str] = field(default_factory=list)
    codes: list[bool] = field(default_factory=list)  # of each open field: in its code still
    shows: str = ""  # what the drawing at hand is said to show

    def children(self, element: Element) -> None:
        for inner in element:
            self.element(inner)

    def element(self, element: Element) -> None:
        name = local(element)
        if name in _DROPPED:
            return
        if name == "fldChar":
            self.field(attribute(element, "fldCharType"))
        elif any(self.codes):
            if name == "r":  # an end may stand beside text in one run
                self.children(element)
        elif name == "t":
            self.parts.append(element.text or "")
        elif name in _PLAIN:
            self.parts.append(_PLAIN[name])
        elif name == "sym":
            self.parts.append(_symbol(element))
        elif name in _NOTES:
            self.found.notes.append((_NOTES[name], attribute(element, "id")))
        elif name == _COMMENT:
            self.found.comments.append(attribute(element, "id"))
        elif name == "r":
            if not self.is_hidden(child(element, "rPr")):
                self.children(element)
        elif name == "sdt":
            content = child(element, "sdtContent")
            if content is not None and not is_on(child(element, "sdtPr", "showingPlcHdr")):
                self.children(content)
        elif name == "AlternateContent":
            self.alternate(element)
        elif name in _DRAWN:
            self.drawn(element)
        elif name in _MATH:
            self.parts.append(formula(element))
        else:  # ins, moveTo, hyperlink, smartTag, fldSimple, ruby, ...
            self.children(element)

    def field(self, kind: str) -> None:
        if kind == "begin":
            self.codes.append(True)
        elif self.codes and kind == "separate":
            self.codes[-1] = False
        elif self.codes and kind == "end":
            self.codes.pop()

    def is_hidden(self, properties: Element | None) -> bool:
        if properties is None:
            return False
        vanish = child(properties, "vanish")
        if vanish is not None:
            return is_on(vanish)
        style = style_of(properties, "rStyle")
        return bool(style) and self.styles.is_hidden(style)

    def alternate(self, element: Element) -> None:
        """The first choice that shows anything: the others repeat it for older programs."""
        before = self.amount()
        for branch in element:
            self.children(branch)
            if self.amount() != before:
                return

    def amount(self) -> tuple[int, ...]:
        found = self.found
        return len(self.parts), len(found.boxes), len(found.graphics), len(found.pictures)

    def drawn(self, element: Element) -> None:
        """The text boxes, charts, SmartArt and pictures in a drawing."""
        for inner in element:
            name = local(inner)
            if name == "txbxContent":
                self.found.boxes.append(inner)
            elif name == "graphicData" and local(next(iter(inner), inner)) in ("chart", "relIds"):
                self.found.graphics.append(inner)
            elif name == "AlternateContent":
                before = self.amount()
                for branch in inner:
                    self.drawn(branch)
                    if self.amount() != before:
                        break
            elif name in ("docPr", "shape"):
                self.shows = attribute(inner, "descr") or attribute(inner, "alt")
                self.drawn(inner)
            elif name in ("blip", "imagedata"):
                named = attribute(inner, "embed") or relation_id(inner)
                self.found.pictures.append((named, self.shows))
            elif name == "textpath":
                self.parts.append(attribute(inner, "string"))
            else:
                self.drawn(inner)


def formula(element: Element) -> str:
    """A formula of Office Math on one line: `(a+b)/2`, `x^2`, `√(x)`."""
    name = local(element)
    if name == "t":
        return element.text or ""
    if name == "f":
        return f"{_grouped(element, 'num')}/{_grouped(element, 'den')}"
    if name in ("sSup", "sSub", "sSubSup"):
        below = f"_{_grouped(element, 'sub')}" if name != "sSup" else ""
        above = f"^{_grouped(element, 'sup')}" if name != "sSub" else ""
        return _grouped(element, "e") + below + above
    if name == "rad":
        degree = child(element, "deg")
        root = formula(degree) if degree is not None else ""
        return f"{root}√{_grouped(element, 'e')}"
    if name == "d":
        return "(" + ", ".join(formula(inner) for inner in element if local(inner) == "e") + ")"
    if name == "nary":
        sign = child(element, "naryPr", "chr")
        shown = "∫" if sign is None else attribute(sign, "val")
        limits = f"_{_grouped(element, 'sub')}^{_grouped(element, 'sup')} "
        return shown + limits + _grouped(element, "e")
    if name in _DROPPED or name.endswith("Pr"):
        return ""
    return "".join(formula(inner) for inner in element)


def _grouped(element: Element, name: str) -> str:
    inner = child(element, name)
    text = "" if inner is None else formula(inner)
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _symbol(element: Element) -> str:
    code = attribute(element, "char")
    try:
        value = int(code, 16)
    except ValueError:
        return ""
    font = attribute(element, "font").lower()
    place = chr(value - 0xF000) if 0xF020 <= value <= 0xF0FF else chr(value & 0xFFFF)
    if font == "symbol":
        return _SYMBOL.get(place, place if place.isascii() else _UNKNOWN_SYMBOL)
    if font.startswith("wingdings"):
        return _WINGDINGS.get(place, _UNKNOWN_SYMBOL)
    return place if value < 0xE000 else _UNKNOWN_SYMBOL
