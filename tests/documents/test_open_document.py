"""OpenDocument files: texts, spreadsheets and presentations as LibreOffice writes them."""

from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.documents import Document, UnreadableDocument, parse
from agentic_rag.knowledge_base import KnowledgeBase
from tests.documents.office_writer import zipped
from tests.knowledge_base.embedders import HashEmbedder

_NAMES = ("office", "text", "table", "draw", "style", "presentation", "fo", "meta")
_SPACES = (
    " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _NAMES)
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:svg="s" xmlns:xlink="x"'
)
_STYLES = """
<style:style style:name="Title"/>
<style:style style:name="P1" style:parent-style-name="Title"/>
<style:style style:name="hidden"><style:text-properties text:display="none"/></style:style>
<style:style style:name="off"><style:table-properties table:display="false"/></style:style>
<style:style style:name="skip">
 <style:drawing-page-properties presentation:visibility="hidden"/></style:style>
<text:list-style style:name="L1">
 <text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
 <text:list-level-style-bullet text:level="2"/></text:list-style>
"""


def _write(kind: str, body: str, title: str = "", masters: str = "", manifest: str = "") -> bytes:
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": (
                f"<office:document-content {_SPACES}><office:automatic-styles>{_STYLES}"
                f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
                "</office:body></office:document-content>"
            ),
            "styles.xml": f"<office:document-styles {_SPACES}><office:master-styles>{masters}"
            "</office:master-styles></office:document-styles>",
            "meta.xml": f"<office:document-meta {_SPACES}><dc:title>{title}</dc:title>"
            "<meta:initial-creator>李华</meta:initial-creator></office:document-meta>",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        },
        method=0,
    )


def _text(body: str, **more: str) -> Document:
    return parse("/docs/a.odt", _write("text", body, **more))


def _p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def _lines(body: str, **more: str) -> list[str]:
    return [line for line in _text(body, **more).text.split("\n") if line]


def test_headings_title_and_author() -> None:
    document = _text(
        _p("泵站手册", "P1")
        + '<text:h text:outline-level="1">运行</text:h>'
        + '<text:h text:outline-level="2">Daily</text:h>'
        + _p("Text.")
    )
    assert document.title == "泵站手册"
    assert [(h.level, h.text) for h in document.headings] == [(2, "运行"), (3, "Daily")]
    assert document.metadata == {"author": "李华"}
    assert document.media_type == "application/vnd.oasis.opendocument.text"
    assert _text(_p("x"), title="Given").title == "Given"


def test_text_is_read_as_it_shows() -> None:
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        + _p('a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>new line')
        + _p("shown<text:span text:style-name='hidden'>secret</text:span> "
             "<text:a xlink:href='x'>link</text:a>")
        + _p("never", "hidden")
        + _p("Claim<text:note><text:note-citation>1</text:note-citation><text:note-body>"
             "<text:p>出处 source</text:p></text:note-body></text:note> goes on.")
        + _p("Box:<draw:frame><svg:title>alt</svg:title><draw:text-box><text:p>In the box</text:p>"
             "</draw:text-box></draw:frame>")
        + _p("Noted<office:annotation><dc:creator>王芳</dc:creator><text:p>Really?</text:p>"
             "</office:annotation>.")
        + "<text:table-of-content><text:index-body><text:p>Intro 3</text:p></text:index-body>"
        "</text:table-of-content>"
    )  # fmt: skip
    assert _lines(body) == [
        "a b c",
        "new line",
        "shown link",
        "Claim goes on.",
        "(1) 出处 source",
        "Box:",
        "In the box",
        "Noted.",
        "Comment (王芳): Really?",
    ]


def test_lists_keep_their_numbers() -> None:
    inner = "<text:list><text:list-item><text:p>sub</text:p></text:list-item></text:list>"
    item = "<text:list-item><text:p>one</text:p>{}</text:list-item>"
    body = f'<text:list text:style-name="L1">{item.format(inner)}{item.format("")}</text:list>'
    assert _lines(body + _p("x") + body)[:5] == ["1. one", "- sub", "2. one", "x", "1. one"]


def test_tables_stand_in_their_place_with_spanned_values_once() -> None:
    def cell(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}>{_p(text)}</table:table-cell>"

    covered = "<table:covered-table-cell/>"
    table = (
        "<table:table><table:table-column/><table:table-header-rows><table:table-row>"
        + cell("Station") + cell("Flow", 'table:number-columns-spanned="2"') + covered
        + "</table:table-row></table:table-header-rows><table:table-row>"
        + cell("蓝桥", 'table:number-rows-spanned="2"') + cell("1") + cell("2")
        + "</table:table-row><table:table-row>" + covered + cell("3") + cell("4")
        + "</table:table-row></table:table>"
    )  # fmt: skip
    document = _text(_p("Before.") + table + _p("After."))
    assert document.text == "Before.\n\nStation | Flow\n蓝桥 | 1 | 2\n| 3 | 4\n\nAfter."
    (mark,) = document.tables
    assert document.text[mark.start : mark.body] == "Station | Flow\n"


def test_headers_and_footers_stand_once() -> None:
    masters = (
        f"<style:master-page><style:header>{_p('蓝桥水务')}</style:header><style:footer>"
        f"{_p('Page <text:page-number>3</text:page-number>')}</style:footer></style:master-page>"
    ) * 2
    assert _lines(_p("Body."), masters=masters) == ["蓝桥水务", "Body."]


def test_a_spreadsheet_is_read_row_by_row() -> None:
    def cell(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}>{_p(text)}</table:table-cell>"

    sheet = (
        '<table:table table:name="检修"><table:table-row>'
        + cell("Part") + cell("Share") + cell("Due")
        + "</table:table-row><table:table-row>"
        + cell("gasket 垫片") + cell("25%", 'office:value-type="percentage" office:value="0.25"')
        + cell("01.03.24", 'office:value-type="date" office:date-value="2024-03-01"')
        + '</table:table-row><table:table-row table:number-rows-repeated="1048573">'
        '<table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>'
        '<table:table table:name="old" table:style-name="off"><table:table-row>'
        + cell("x") + "</table:table-row></table:table>"
    )  # fmt: skip
    document = parse("/docs/a.ods", _write("spreadsheet", sheet))
    assert document.text == (
        "检修\n\nPart: gasket 垫片; Share: 25%; Due: 2024-03-01\n\nold (hidden sheet)\n\nx"
    )
    assert document.warnings == ("hidden sheet read as well: 'old'",)


def test_repeated_cells_of_a_hostile_sheet_stay_few() -> None:
    row = (
        '<table:table-row table:number-rows-repeated="99999999"><table:table-cell '
        f'table:number-columns-repeated="99999999">{_p("x")}</table:table-cell></table:table-row>'
    )
    sheet = f'<table:table table:name="s">{row}</table:table>'
    assert len(parse("/docs/a.ods", _write("spreadsheet", sheet)).text) < 50_000_000


def test_a_presentation_is_read_slide_by_slide() -> None:
    def page(title: str, text: str, style: str = "") -> str:
        return (
            f'<draw:page draw:style-name="{style}"><draw:frame presentation:class="title">'
            f"<draw:text-box>{_p(title)}</draw:text-box></draw:frame><draw:g><draw:custom-shape>"
            f"{_p(text)}</draw:custom-shape></draw:g><presentation:notes><draw:frame>"
            f"<draw:text-box>{_p('note ' + text)}</draw:text-box></draw:frame>"
            "</presentation:notes></draw:page>"
        )

    body = page("年报", "first") + page("Salaries", "secret", "skip") + page("End", "last")
    document = parse("/docs/a.odp", _write("presentation", body))
    assert document.title == "年报"
    assert "secret" not in document.text
    assert document.warnings == ("hidden slide left out: 2",)
    assert [heading.text for heading in document.headings] == [
        "Slide 1: 年报", "Notes", "Slide 3: End", "Notes",
    ]  # fmt: skip
    assert document.text.startswith("Slide 1: 年报\n\nfirst\n\nNotes\n\nnote first\n\nSlide 3")


def test_a_file_with_a_password_is_refused() -> None:
    data = _write("text", _p("x"), manifest="<encryption-data/>")
    with pytest.raises(UnreadableDocument, match=r"'a\.odt' is protected by a password"):
        parse("/docs/a.odt", data)


def test_a_hit_names_its_section(tmp_path: Path) -> None:
    body = '<text:h text:outline-level="1">检修</text:h>' + _p("每十八个月更换垫片。")
    body = '<text:h text:outline-level="1">Intro</text:h>' + _p("Words.") + body
    (tmp_path / "手册.odt").write_bytes(_write("text", body))
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    kb.add([tmp_path / "手册.odt"])
    (hit,) = kb.keyword_search(["垫片"]).hits
    assert (hit.title, hit.section) == ("手册.odt", "检修")
