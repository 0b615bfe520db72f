"""Figures inside documents: read, kept or dropped by the rules, woven in where they are meant."""

import base64
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agentic_rag.config import Images, Ocr
from agentic_rag.documents import Document, Problem, Reading, Source, find_sources, ocr, parse
from agentic_rag.documents.figure_rules import BadRules, read_rules
from agentic_rag.documents.reading import ImageCounts
from agentic_rag.text.chunking import chunk_document
from tests.documents.drawing import encoded, image, need_ocr
from tests.documents.pdf_writer import Scan, write_pdf
from tests.documents.zedx_writer import Node, page, write_zedx

need_ocr()

LIMIT = "The relay opens at 47 bar"
PUMP = "蓝桥泵站每天供水一万吨"


def _png(*lines: str, **kind: int) -> bytes:
    return encoded(image(list(lines), **kind), "PNG")


class _Counted:
    """What was told of figures."""

    def __init__(self) -> None:
        self.counts = ImageCounts()

    def add(self, counts: ImageCounts) -> None:
        self.counts += counts


@pytest.fixture
def counted() -> _Counted:
    return _Counted()


def _reading(counted: _Counted, **images: object) -> Reading:
    return Reading(images=Images(read=True, **images), on_images=counted.add)  # type: ignore[arg-type]


def _parsed(path: Path, reading: Reading) -> Document:
    """A file as a run of indexing reads it."""
    from dataclasses import replace

    (source,) = (s for s in find_sources([path]) if isinstance(s, Source))
    reading = replace(reading, beside=source.beside)
    return source.finish(parse(source.uri, source.read(10**9).data, source.folders, "", reading))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


Write = Callable[..., Path]


def test_markdown_has_the_text_of_the_figure_behind_the_paragraph_that_points_to_it(
    write: Write, counted: _Counted
) -> None:
    write("img/limits.png", _png(LIMIT))
    text = (
        "# Pump\n\nThe limits are\nin Figure 1.\n\nMore.\n\n![Figure 1: Limits](img/limits.png)\n"
    )
    found = _parsed(write("a.md", text), _reading(counted))
    assert found.text == (
        "# Pump\n\nThe limits are\nin Figure 1.\n\n"
        f"[Figure 1: Limits. {LIMIT}]\n\nMore.\n\n![Figure 1: Limits](img/limits.png)\n"
    )
    assert counted.counts == ImageCounts(seen=1, read=1, kept=1)
    assert found.metadata["images"] == 1
    assert found.figures == ()
    (chunk,) = chunk_document(found)
    assert LIMIT in chunk.text


def test_html_has_a_chinese_figure_with_its_number_and_caption(
    write: Write, counted: _Counted
) -> None:
    write("图/泵站.png", _png(PUMP))
    body = (
        "<h1>供水</h1><h2>泵站</h2><p>供水能力如图1-1所示。</p><p>其他内容在后面。</p>"
        '<figure><img src="%E5%9B%BE/%E6%B3%B5%E7%AB%99.png">'
        "<figcaption>图1-1 供水能力</figcaption></figure>"
    )
    found = _parsed(write("a.html", page(body)), _reading(counted))
    assert f"供水能力如图1-1所示。\n\n[图1-1：供水能力。{PUMP}]\n\n其他" in found.text
    assert counted.counts.kept == 1


def test_a_picture_in_the_page_itself_and_a_pointer_without_number(
    write: Write, counted: _Counted
) -> None:
    data = base64.b64encode(_png(LIMIT)).decode()
    body = f'<p>The limits are shown below.</p><img src="data:image/png;base64,{data}"><p>End.</p>'
    found = _parsed(write("a.html", page(body)), _reading(counted))
    assert found.text == f"The limits are shown below.\n\n[Figure: {LIMIT}]\n\nEnd."


def test_a_figure_in_a_table_stands_behind_the_table(write: Write, counted: _Counted) -> None:
    write("a.png", _png(LIMIT))
    body = (
        "<p>See Figure 1.</p><table><tr><th>a</th><th>b</th></tr>"
        '<tr><td>1</td><td>See Figure 1.<img src="a.png" alt="Figure 1 Limits"></td></tr>'
        "<tr><td>2</td><td>3</td></tr></table><p>End.</p>"
    )
    found = _parsed(write("a.html", page(body)), _reading(counted))
    (table,) = found.tables
    assert found.text[table.start : table.end].strip().endswith("2 | 3")
    assert f"2 | 3\n\n[Figure 1: Limits. {LIMIT}]\n\nEnd." in found.text


def test_word_files_have_their_figures(write: Write, counted: _Counted) -> None:
    docx = pytest.importorskip("docx")
    made = docx.Document()
    made.add_heading("Pump", 1)
    made.add_paragraph("The limits are in Figure 3.")
    made.add_picture(io.BytesIO(_png(LIMIT)))
    made.add_paragraph("Figure 3: Limits")
    made.add_paragraph("The end.")
    data = io.BytesIO()
    made.save(data)
    found = _parsed(write("a.docx", data.getvalue()), _reading(counted))
    assert f"in Figure 3.\n\n[Figure 3: Limits. {LIMIT}]\n\nFigure 3: Limits" in found.text
    assert counted.counts == ImageCounts(1, 1, 1)


def test_a_picture_on_a_page_of_a_pdf_is_a_figure_of_that_page(
    write: Write, counted: _Counted
) -> None:
    picture = image([LIMIT], width=600)
    lines = (
        "The limits are in Figure 2.",
        "Figure 2: Limits of the relay",
        "That is all there is.",
    )
    drawn = Scan(encoded(picture, "JPEG"), picture.width, picture.height, lines, share=0.6)
    data = write_pdf([["Contents of the book."], drawn, ["Last page."]])
    found = _parsed(write("a.pdf", data), _reading(counted))
    assert f"[Figure 2: Limits of the relay. {LIMIT}]" in found.text
    at = found.text.index(LIMIT)
    assert [p.number for p in found.pages if p.start <= at][-1] == 2
    assert counted.counts.kept == 1


def test_figures_of_a_zedx_are_cited_with_their_node_path(
    tmp_path: Path, counted: _Counted
) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {
            "docs/a.html": page(
                '<p>See Figure 1.</p><img src="../img/A.PNG"><p>Figure 1 Limits</p>'
            ),
            "img/a.png": _png(LIMIT),
        },
        Node("Relays", inner=[Node("Limits of relays", "docs/a.html")]),
    )
    found = _parsed(zedx, _reading(counted))
    (chunk,) = chunk_document(found)
    assert LIMIT in chunk.text
    assert (chunk.title, chunk.section) == ("Limits of relays", "m.zedx › Relays")


# -- what is not read -------------------------------------------------------------------------


def test_by_default_figures_are_only_counted(write: Write, counted: _Counted) -> None:
    write("a.png", _png(LIMIT))
    path = write("a.md", "See Figure 1.\n\n![Figure 1: L](a.png)\n")
    found = _parsed(path, Reading(on_images=counted.add))
    assert "\n[Figure" not in found.text
    assert counted.counts == ImageCounts(seen=1, cure="images.read = true reads them")
    assert found.warnings == ()


def test_without_the_extra_figures_are_only_counted(
    write: Write, counted: _Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    path = write("a.md", "See Figure 1.\n\n![Figure 1: L](a.png)\n")
    assert "\n[Figure" not in _parsed(path, _reading(counted)).text
    assert counted.counts == ImageCounts(seen=1, cure=f"for OCR: {ocr.INSTALL}")


def test_nothing_is_fetched_and_nothing_outside_is_read(
    write: Write, counted: _Counted, tmp_path: Path
) -> None:
    (tmp_path / "secret.png").write_bytes(_png("SECRET 1234"))
    inside = write("sub/in.txt", "x").parent
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    names = [
        "https://example.com/a.png", "//example.com/a.png", "file:///etc/passwd", "cid:part1",
        "../../secret.png", str(tmp_path / "secret.png"), "link.png",
    ]  # fmt: skip
    body = "".join(f'<p>Shown below.</p><img src="{name}">' for name in names)
    write("sub/a.html", page(body))
    root = inside.parent
    sources = {s.name: s for s in find_sources([root]) if isinstance(s, Source)}
    reading = Reading(
        images=Images(read=True), on_images=counted.add, beside=sources["a.html"].beside
    )
    found = parse("a.html", page(body), (), "", reading)
    assert "SECRET" not in found.text
    assert counted.counts == ImageCounts(seen=3, dropped={"missing": 3})
    (warning,) = found.warnings
    assert warning.startswith("3 images not read, not where the document says: ../../secret.png")


def test_a_picture_in_another_folder_of_what_was_named_is_read(
    write: Write, counted: _Counted
) -> None:
    write("img/a.png", _png(LIMIT))
    path = write("sub/a.md", "See Figure 1.\n\n![Figure 1: L](../img/a.png)\n")
    sources = {s.name: s for s in find_sources([path.parent.parent]) if isinstance(s, Source)}
    reading = Reading(images=Images(read=True), beside=sources["a.md"].beside)
    assert LIMIT in parse("a.md", path.read_bytes(), (), "", reading).text


def test_tiny_huge_damaged_and_foreign_pictures_are_told_and_the_rest_is_read(
    write: Write, counted: _Counted
) -> None:
    from PIL import Image

    write("one.png", encoded(Image.new("RGB", (1, 1)), "PNG"))
    write("huge.png", encoded(Image.new("1", (20_000, 20_000)), "PNG"))
    write("cut.png", _png(LIMIT)[:200])
    write("drawn.svg", "<svg/>")
    wide = np.full((300, 20_000, 3), 255, np.uint8)
    write("wide.png", encoded(Image.fromarray(wide), "PNG"))
    write("good.png", _png(LIMIT))
    names = ("one.png", "huge.png", "cut.png", "drawn.svg", "wide.png", "good.png", "gone.png")
    body = "".join(f'<p>Shown below.</p><img src="{name}">' for name in names)
    found = _parsed(write("a.html", page(body)), _reading(counted))
    assert found.text.count("[Figure") == 1
    assert LIMIT in found.text
    assert set(found.warnings) == {
        "in it: 'huge.png' has more than 150 million pixels; save it smaller",
        "in it: 'cut.png' is a damaged picture; open it in an image viewer and save it again",
        "1 image not read, of a kind that is not read: drawn.svg",
        "1 image not read, not where the document says: gone.png",
    }
    assert counted.counts == ImageCounts(7, 2, 1, counted.counts.dropped)
    assert counted.counts.dropped["icons"] == 1
    assert counted.counts.dropped["without text"] == 1
    assert counted.counts.dropped["unreadable"] == 2
    assert counted.counts.kept + sum(counted.counts.dropped.values()) == counted.counts.seen


def test_a_picture_shown_again_is_read_once_and_each_is_counted(
    write: Write, counted: _Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def nothing(*given: object) -> ocr.PictureText:
        asked.append(given)
        return ocr.PictureText()

    monkeypatch.setattr(ocr, "read_pixels", nothing)
    write("a.png", _png(LIMIT))
    body = "".join('<p>Shown below.</p><img src="a.png">' for _ in range(3))
    _parsed(write("a.html", page(body)), _reading(counted))
    assert len(asked) == 1
    assert counted.counts == ImageCounts(3, 1, 0, {"without text": 3})


def test_what_is_missing_or_drawn_in_the_page_is_named(write: Write, counted: _Counted) -> None:
    found = _parsed(write("a.md", "Text.\n\n![A pump](gone.png)\n"), _reading(counted))
    assert found.warnings == ("1 image not read, not where the document says: gone.png",)
    svg = "<p>Shown below.</p><svg><text>47 bar</text></svg><svg><path/></svg>"
    found = _parsed(write("a.html", page(svg)), _reading(counted))
    assert found.warnings == (
        "1 image not read, of a kind that is not read: a drawing in the page itself",
    )
    assert counted.counts == ImageCounts(2, 0, 0, {"missing": 1, "of other kinds": 1})


def test_how_small_a_figure_is_counts_before_it_is_scaled_down(
    write: Write, counted: _Counted
) -> None:
    from PIL import Image

    write("band.png", encoded(Image.new("1", (8_000, 4_500), 1), "PNG"))  # scaled to 4,000
    text = "See Figure 1.\n\n![Figure 1: L](band.png)\n"
    _parsed(write("a.md", text), _reading(counted, min_side=3_000))
    assert counted.counts.dropped == {"without text": 1}


def test_lines_of_a_figure_that_are_not_sure_enough_are_told(
    write: Write, counted: _Counted
) -> None:
    write("a.png", _png(LIMIT))
    reading = Reading(images=Images(read=True), ocr=Ocr(min_confidence=1.0), on_images=counted.add)
    found = _parsed(write("a.md", "See Figure 1.\n\n![Figure 1: L](a.png)\n"), reading)
    assert found.warnings == ("1 line below confidence 1 left out in images: a.png",)


def test_no_more_figures_than_the_setting_says_are_read(write: Write, counted: _Counted) -> None:
    write("a.png", _png(LIMIT))
    body = "".join('<p>Shown below.</p><img src="a.png">' for _ in range(5))
    found = _parsed(write("a.html", page(body)), _reading(counted, most=2))
    assert found.text.count(LIMIT) == 2
    assert found.warnings == (
        "3 images not read, beyond the first 2 of a document, which images.most raises: "
        "a.png, a.png, a.png",
    )
    assert counted.counts == ImageCounts(5, 1, 2, {"beyond images.most": 3})


# -- the rules --------------------------------------------------------------------------------


def test_what_the_text_does_not_point_to_is_not_even_read(
    write: Write, counted: _Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a figure was read")

    monkeypatch.setattr(ocr, "read_pixels", refuse)
    write("a.png", _png(LIMIT))
    path = write("a.md", "Text.\n\n![Figure 1: Limits](a.png)\n")
    assert LIMIT not in _parsed(path, _reading(counted)).text
    assert counted.counts == ImageCounts(1, 0, 0, {"not pointed to": 1})


@pytest.mark.parametrize(
    ("caption", "dropped"),
    [
        ("组网架构", True), ("配置对话框", True), ("业务流程", True), ("Network topology", True),
        ("Configuration dialog", True), ("水位曲线", False), ("Limits of the relay", False),
        ("Reflow oven", False), ("Examples of faults", True),
    ],
)  # fmt: skip
def test_figures_that_are_called_a_drawing_or_a_dialog_are_dropped(
    caption: str, dropped: bool
) -> None:
    assert read_rules().refuse_caption(caption) is dropped


def test_in_a_chinese_document_the_text_of_a_figure_must_hold_chinese(
    write: Write, counted: _Counted
) -> None:
    write("a.png", _png(LIMIT))
    path = write("a.md", "水位的变化过程如图1所示。\n\n![图1 水位](a.png)\n")
    assert LIMIT not in _parsed(path, _reading(counted)).text
    assert counted.counts == ImageCounts(1, 1, 0, {"by the rules": 1})


def test_what_stands_in_the_text_already_is_not_said_twice(write: Write, counted: _Counted) -> None:
    write("a.png", _png("Relay opening pressure", LIMIT))
    body = f"<p>{LIMIT}, see Figure 1.</p><img src='a.png' alt='Figure 1 Limits'>"
    found = _parsed(write("a.html", page(body)), _reading(counted))
    assert found.text.count(LIMIT) == 1
    assert "[Figure 1: Limits. Relay opening pressure]" in found.text


def test_rules_of_ones_own_take_the_place_of_those_shipped(write: Write, counted: _Counted) -> None:
    rules = write("rules.toml", "pointed_to = false\nchinese_in_chinese = false\n")
    write("a.png", _png(LIMIT))
    path = write("a.md", "水位。\n\n![图1 架构](a.png)\n")
    assert LIMIT in _parsed(path, _reading(counted, rules=str(rules))).text


@pytest.mark.parametrize(
    ("text", "said"),
    [("pointed_to = 1", "'pointed_to' in "), ("x", "not valid TOML"), ("other = 1", "'other' in ")],
)
def test_rules_that_cannot_be_used_are_one_sentence(write: Write, text: str, said: str) -> None:
    with pytest.raises(BadRules, match=said):
        read_rules(str(write(f"{hash(text)}.toml", text)))
    with pytest.raises(BadRules, match="cannot be read"):
        read_rules("/nowhere/rules.toml")


def test_what_a_figure_is_said_to_show_is_woven_in_and_judged(
    write: Write, counted: _Counted
) -> None:
    said = ["A photograph of a pump. It is red.", "This is an architecture diagram. It has boxes."]
    asked: list[tuple[str, str]] = []

    def describe(pixels: object, language: str, caption: str) -> str:
        asked.append((language, caption))
        return said[len(asked) - 1]

    write("a.png", _png(LIMIT))
    write("b.png", _png("Some other words"))
    body = (
        '<p>Figure 1 and Figure 2 tell.</p><img src="a.png" alt="Figure 1 Pump"><hr>'
        '<img src="b.png" alt="Figure 2 Boxes">'
    )
    reading = Reading(images=Images(read=True), on_images=counted.add, describe=describe)
    found = _parsed(write("a.html", page(body)), reading)
    assert f"[Figure 1: Pump. {LIMIT}. A photograph of a pump. It is red.]" in found.text
    assert "boxes" not in found.text
    assert asked == [("en", "Pump"), ("en", "Boxes")]
    assert counted.counts == ImageCounts(2, 2, 1, {"by the rules": 1})


def test_a_reading_is_recorded_so_that_other_settings_read_again() -> None:
    from agentic_rag.documents import is_current, parser_version

    off, on = Reading(ocr=Ocr()), Reading(images=Images(read=True))
    plain, woven = parser_version("text/html", off), parser_version("text/html", on)
    assert plain != woven
    assert ":" not in woven
    assert not is_current(plain, "text/html", on)
    assert is_current(woven, "text/html", on)
    assert is_current(woven, "text/html", off)  # what was read stays
    assert parser_version("text/plain", on) == parser_version("text/plain", off)


def test_problems_of_a_folder_do_not_come_from_its_figures(write: Write) -> None:
    write("a.md", "![x](gone.png)")
    found = list(find_sources([write("b.md", "x").parent]))
    assert [item for item in found if isinstance(item, Problem)] == []
