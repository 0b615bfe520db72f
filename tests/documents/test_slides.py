"""PowerPoint files: slides in the order shown, each a place that can be cited."""

import io
from pathlib import Path

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from agentic_rag.config import Settings
from agentic_rag.documents import Document, UnsupportedDocument, parse
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.text.chunking import chunk_document
from tests.documents.office_writer import replaced, write_ole
from tests.knowledge_base.embedders import HashEmbedder


def _saved(presentation: Presentation) -> bytes:
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def _deck() -> Presentation:
    deck = Presentation()
    opening = deck.slides.add_slide(deck.slide_layouts[0])
    opening.shapes.title.text = "泵站年报"
    opening.placeholders[1].text = "2024"
    points = deck.slides.add_slide(deck.slide_layouts[1])
    points.shapes.title.text = "Pumps\vof Blue Bridge"
    points.placeholders[1].text = "first point\nsecond point"
    points.notes_slide.notes_text_frame.text = "Tell of the flood 洪水."
    inner = points.shapes.add_group_shape().shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "deep in groups"
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Salaries"
    hidden._element.set("show", "0")
    last = deck.slides.add_slide(deck.slide_layouts[6])
    table = last.shapes.add_table(3, 2, 0, 0, 99, 99).table
    for index, text in enumerate(("Pump", "Flow", "A", "12", "", "13")):
        table.cell(*divmod(index, 2)).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("Flow", (1.5, 0.1 + 0.2))
    chart = last.shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, 99, 99, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Flow by quarter"
    return deck


def _section(document: Document, phrase: str) -> str:
    (found,) = (
        sentence.section
        for draft in chunk_document(document)
        for sentence in draft.sentences
        if phrase in draft.text[sentence.start : sentence.end] and not sentence.is_heading
    )
    return found


def test_each_slide_is_a_heading_with_its_number_and_title() -> None:
    document = parse("/decks/report.pptx", _saved(_deck()))
    assert document.title == "泵站年报"
    assert document.metadata["slides"] == 3
    assert [heading.text for heading in document.headings] == [
        "Slide 1: 泵站年报",
        "Slide 2: Pumps of Blue Bridge",
        "Notes",
        "Slide 4",
    ]
    assert _section(document, "second point") == "Slide 2: Pumps of Blue Bridge"
    assert _section(document, "deep in groups") == "Slide 2: Pumps of Blue Bridge"
    assert _section(document, "洪水") == "Slide 2: Pumps of Blue Bridge › Notes"


def test_hidden_slides_are_left_out_and_said() -> None:
    document = parse("/decks/report.pptx", _saved(_deck()))
    assert "Salaries" not in document.text
    assert document.warnings == ("hidden slide left out: 3",)


def test_tables_and_charts_are_rows() -> None:
    text = parse("/decks/report.pptx", _saved(_deck())).text
    assert "Pump | Flow\nA | 12\n| 13\n" in text
    assert "Flow by quarter\n\n| Flow\nQ1 | 1.5\nQ2 | 0.3" in text


def test_slides_come_in_the_order_shown_not_in_that_of_their_files() -> None:
    deck = _deck()
    entries = deck.slides._sldIdLst
    entries.insert(0, entries[3])
    headings = [heading.text for heading in parse("a.pptx", _saved(deck)).headings]
    assert headings[:2] == ["Slide 1", "Slide 2: 泵站年报"]


def test_a_footer_stands_once_and_slide_numbers_nowhere() -> None:
    data = _saved(_deck())
    footer = (
        b'<p:sp><p:nvSpPr><p:cNvPr id="90" name="f"/><p:cNvSpPr/><p:nvPr><p:ph type="%s"/></p:nvPr>'
        b"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p>%s</a:p></p:txBody></p:sp>"
    )
    words = footer % (b"ftr", b"<a:r><a:t>Blue Bridge Water</a:t></a:r>")
    number = footer % (b"sldNum", b'<a:fld id="{1}" type="slidenum"><a:t>77</a:t></a:fld>')
    for slide in (1, 2, 4):
        data = replaced(
            data,
            f"ppt/slides/slide{slide}.xml",
            lambda xml: xml.replace(b"</p:spTree>", words + number + b"</p:spTree>"),
        )
    text = parse("a.pptx", data).text
    assert text.startswith("Blue Bridge Water\n\nSlide 1")
    assert text.count("Blue Bridge Water") == 1
    assert "77" not in text


def test_a_shape_with_a_fallback_is_read_once() -> None:
    shape = (
        b'<p:sp><p:nvSpPr><p:cNvPr id="91" name="s"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
        b"<p:txBody><a:bodyPr/><a:p><a:r><a:t>only once</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    alternate = (
        b'<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        b'<mc:Choice Requires="a14">' + shape + b"</mc:Choice><mc:Fallback>" + shape
        + b"</mc:Fallback></mc:AlternateContent></p:spTree>"
    )  # fmt: skip
    data = replaced(
        _saved(_deck()),
        "ppt/slides/slide4.xml",
        lambda xml: xml.replace(b"</p:spTree>", alternate),
    )
    assert parse("a.pptx", data).text.count("only once") == 1


def test_an_old_presentation_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedDocument, match=r"'old\.ppt' is .* save it as \.pptx"):
        parse("/decks/old.ppt", write_ole({"PowerPoint Document": b"x"}))


def test_a_hit_names_its_slide(tmp_path: Path) -> None:
    (tmp_path / "年报.pptx").write_bytes(_saved(_deck()))
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    kb.add([tmp_path / "年报.pptx"])
    (hit,) = kb.keyword_search(["洪水"]).hits
    assert (hit.title, hit.section) == ("泵站年报", "Slide 2: Pumps of Blue Bridge › Notes")
    (hit,) = kb.keyword_search(["Flow by quarter"]).hits
    assert hit.section == "Slide 4"
