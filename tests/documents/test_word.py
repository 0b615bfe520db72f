"""Word files: everything a reader sees, once, in its place."""

from pathlib import Path

import docx
import pytest

from agentic_rag.config import Settings
from agentic_rag.documents import Document, UnreadableDocument, UnsupportedDocument, parse
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.text.chunking import chunk_document
from tests.documents.office_writer import (
    NAMESPACES,
    paragraph,
    relations,
    replaced,
    run,
    write_docx,
    write_ole,
    zipped,
)
from tests.knowledge_base.embedders import HashEmbedder

_STYLES = """
<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="1"><w:name w:val="标题 1"/></w:style>
<w:style w:type="paragraph" w:styleId="2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="own"><w:name w:val="Chapter"/>
 <w:basedOn w:val="base"/></w:style>
<w:style w:type="paragraph" w:styleId="base"><w:name w:val="Mine"/>
 <w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="character" w:styleId="secret"><w:name w:val="secret"/>
 <w:rPr><w:vanish/></w:rPr></w:style>
"""


def _parse(body: str, title: str = "", **parts: str) -> Document:
    return parse("/docs/a.docx", write_docx(body, title, **{"styles": _STYLES, **parts}))


def _lines(body: str, **parts: str) -> list[str]:
    return [line for line in _parse(body, **parts).text.split("\n") if line]


def _cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def _row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def test_headings_are_known_by_style_name_in_any_language_and_by_outline_level() -> None:
    document = _parse(
        paragraph("泵站手册", "T")
        + paragraph("第一章", "1")
        + paragraph("运行", "2")
        + paragraph("Upkeep", "own")
        + paragraph("Direct", properties='<w:outlineLvl w:val="2"/>')
        + paragraph("Text.")
    )
    assert document.title == "泵站手册"
    assert [(h.level, h.text) for h in document.headings] == [
        (2, "第一章"),
        (3, "运行"),
        (3, "Upkeep"),
        (4, "Direct"),
    ]


@pytest.mark.parametrize(
    ("given", "title"),
    [("泵站年报", "泵站年报"), ("Word Document", "Heading"), ("Document1", "Heading"),
     ("report.docx", "Heading"), ("", "Heading"), ("Microsoft Word - Pumps", "Pumps")],
)  # fmt: skip
def test_the_title_is_the_one_a_person_gave(given: str, title: str) -> None:
    document = _parse(paragraph("Heading", "1") + paragraph("Text."), given)
    assert document.title == title
    assert document.metadata["author"] == "李华"


def test_tables_stand_between_the_paragraphs_and_merged_values_stand_once() -> None:
    table = (
        "<w:tbl>"
        + _row(_cell("Station"), _cell("Flow", '<w:gridSpan w:val="2"/>'))
        + _row(_cell("蓝桥", '<w:vMerge w:val="restart"/>'), _cell("1"), _cell("2"))
        + _row(_cell("gone", "<w:vMerge/>"), _cell("3"), _cell("4"))
        + "</w:tbl>"
    )
    document = _parse(paragraph("Before.") + table + paragraph("After."))
    assert document.text == "Before.\n\nStation | Flow\n蓝桥 | 1 | 2\n| 3 | 4\n\nAfter."
    (mark,) = document.tables
    assert document.text[mark.start : mark.body] == "Station | Flow\n"


def test_every_chunk_of_a_long_table_begins_with_its_heading_row() -> None:
    rows = "".join(_row(_cell(f"pump {n}"), _cell(f"{n * 7} litres")) for n in range(400))
    table = f"<w:tbl>{_row(_cell('Name'), _cell('Flow'))}{rows}</w:tbl>"
    drafts = chunk_document(_parse(paragraph("Pumps", "1") + table), size=300)
    assert len(drafts) > 3
    assert all("Name | Flow" in draft.text for draft in drafts)
    assert all(draft.title == "Pumps" for draft in drafts)


def test_rows_marked_as_heading_are_repeated_together() -> None:
    marked = "<w:tblHeader/>"
    document = _parse(
        "<w:tbl>"
        + _row(_cell("2024", '<w:gridSpan w:val="2"/>'), properties=marked)
        + _row(_cell("Q1"), _cell("Q2"), properties=marked)
        + _row(_cell("1"), _cell("2"))
        + "</w:tbl>"
    )
    (mark,) = document.tables
    assert document.text[mark.start : mark.body] == "2024\nQ1 | Q2\n"


def test_a_nested_table_stays_in_its_cell_and_a_frame_is_no_table() -> None:
    inner = f"<w:tbl>{_row(_cell('bolt'), _cell('4'))}{_row(_cell('nut'), _cell('8'))}</w:tbl>"
    outer = (
        "<w:tbl>"
        + _row(_cell("Name"), _cell("Parts"))
        + _row(_cell("P1"), f"<w:tc>{inner}<w:p/></w:tc>")
        + "</w:tbl>"
    )
    frame = f"<w:tbl>{_row('<w:tc>' + paragraph('Note.') + outer + '</w:tc>')}</w:tbl>"
    assert _lines(outer) == ["Name | Parts", "P1 | bolt, 4; nut, 8"]
    assert _lines(frame) == ["Note.", "Name | Parts", "P1 | bolt, 4; nut, 8"]


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('In the box 框内')}</w:txbxContent>"
    body = (
        f"<w:p>{run('Around it.')}<w:r><mc:AlternateContent>"
        f'<mc:Choice Requires="wps"><w:drawing><wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp>'
        "</w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict>"
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>" + paragraph("Next.")
    )
    assert _lines(body) == ["Around it.", "In the box 框内", "Next."]
    old = f"<w:p><w:r><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></w:r></w:p>"
    assert _lines(old) == ["In the box 框内"]


def test_changes_are_read_as_accepted() -> None:
    body = (
        f"<w:p>{run('The fee is ')}<w:del>{run('ten').replace('w:t', 'w:delText')}</w:del>"
        f"<w:ins>{run('twelve')}</w:ins>{run(' euros.')}</w:p>"
        + "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
        + run("One sent")
        + "</w:p>"
        + paragraph("ence.")
        + f"<w:moveFrom>{paragraph('moved')}</w:moveFrom><w:moveTo>{paragraph('moved')}</w:moveTo>"
        + f"<w:tbl>{_row(_cell('a'), _cell('b'))}"
        + f"{_row(_cell('cut'), _cell('cut'), properties='<w:del/>')}</w:tbl>"
    )
    assert _lines(body) == ["The fee is twelve euros.", "One sentence.", "moved", "a | b"]


def test_links_controls_fields_symbols_and_breaks_read_as_they_show() -> None:
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        + run("Table 4")
        + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    body = (
        f'<w:p><w:hyperlink r:id="x">{run("our site")}</w:hyperlink>{run(", see ")}{field}</w:p>'
        + f"<w:sdt><w:sdtContent>{paragraph('In a control.')}</w:sdtContent></w:sdt>"
        + f"<w:p><w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{run('Click here')}"
        "</w:sdtContent></w:sdt>" + run("filled") + "</w:p>"
        + '<w:p><w:r><w:sym w:font="Symbol" w:char="F06D"/><w:t>m, </w:t>'
        '<w:sym w:font="Wingdings" w:char="F0FE"/><w:t> done, co</w:t><w:softHyphen/>'
        "<w:t>op\u00aderate, F</w:t><w:noBreakHyphen/><w:t>16</w:t><w:br/><w:t>new line</w:t>"
        "</w:r></w:p>"
        + "<w:p>" + run("hidden", "<w:vanish/>") + run("style", '<w:rStyle w:val="secret"/>')
        + run("shown", '<w:vanish w:val="0"/>') + "</w:p>"
        + f"<w:p><w:ruby><w:rt>{run('pumpu')}</w:rt><w:rubyBase>{run('泵')}</w:rubyBase>"
        "</w:ruby></w:p>"
        + "<w:p><m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num>"
        "<m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath></w:p>"
    )  # fmt: skip
    assert _lines(body) == [
        "our site, see Table 4",
        "In a control.",
        "filled",
        "μm, ☑ done, cooperate, F-16",
        "new line",
        "shown",
        "泵",
        "(a+b)/2",
    ]


def test_lists_keep_their_numbers() -> None:
    numbering = """
    <w:abstractNum w:abstractNumId="0">
     <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>
      <w:lvlText w:val="%1."/></w:lvl>
     <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>
      <w:lvlText w:val="%1.%2)"/></w:lvl>
    </w:abstractNum>
    <w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/>
     <w:numFmt w:val="chineseCountingThousand"/><w:lvlText w:val="第%1条"/></w:lvl></w:abstractNum>
    <w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
    </w:abstractNum>
    <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
    <w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
    <w:num w:numId="3"><w:abstractNumId w:val="0"/>
     <w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
    <w:num w:numId="4"><w:abstractNumId w:val="2"/></w:num>"""

    def item(text: str, number: int, level: int = 0, style: str = "") -> str:
        properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
        return paragraph(text, style, properties)

    body = (
        item("one", 1) + item("sub", 1, 1) + item("sub", 1, 1) + item("two", 1) + item("sub", 1, 1)
        + item("总则", 2, style="1") + "".join(item("款", 2) for _ in range(10))
        + item("again", 3) + item("point", 4)
    )  # fmt: skip
    lines = _lines(body, numbering=numbering)
    assert lines[:6] == ["1. one", "1.a) sub", "1.b) sub", "2. two", "2.a) sub", "第一条 总则"]
    assert lines[-3:] == ["第十一条 款", "1. again", "- point"]
    assert _parse(body, numbering=numbering).title == "第一条 总则"


def test_headers_and_footers_stand_once_without_page_numbers() -> None:
    def section(**kinds: str) -> str:
        inner = "".join(
            f'<w:{name[:6]}Reference r:id="{name}" w:type="{kind}"/>'
            for name, kind in kinds.items()
        )
        return f"<w:sectPr>{inner}</w:sectPr>"

    body = (
        f"<w:p><w:pPr>{section(header1='default', footer1='default')}</w:pPr>{run('Body.')}</w:p>"
        + section(header2="default", footer1="default", header3="first")
    )
    lines = _lines(
        body,
        header1=paragraph("蓝桥水务"),
        header2=paragraph("蓝桥水务") + paragraph("Part II"),
        header3=paragraph("never shown"),
        footer1=paragraph("第 3 页 共 12 页") + paragraph("Confidential"),
    )
    assert lines == ["蓝桥水务", "Part II", "Confidential", "Body."]


def test_notes_and_comments_follow_the_paragraph_that_refers_to_them() -> None:
    body = (
        f'<w:p>{run("Claim")}<w:r><w:footnoteReference w:id="2"/></w:r>{run(" goes on.")}'
        '<w:r><w:commentReference w:id="0"/></w:r></w:p>' + paragraph("Next.")
        + f'<w:p>{run("End")}<w:r><w:endnoteReference w:id="1"/></w:r></w:p>'
    )  # fmt: skip
    lines = _lines(
        body,
        footnotes=f'<w:footnote w:id="2">{paragraph("A source 出处.")}</w:footnote>',
        endnotes=f'<w:endnote w:id="1">{paragraph("The end.")}</w:endnote>',
        comments=f'<w:comment w:id="0" w:author="王芳">{paragraph("Really?")}</w:comment>',
    )
    assert lines == [
        "Claim goes on.",
        "(1) A source 出处.",
        "Comment (王芳): Really?",
        "Next.",
        "End",
        "(1) The end.",
    ]


def test_a_table_of_contents_is_left_out() -> None:
    contents = (
        '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/>'
        f"</w:docPartObj></w:sdtPr><w:sdtContent>{paragraph('Intro 3')}</w:sdtContent></w:sdt>"
    )
    assert _lines(contents + paragraph("Intro 3", "TOC1") + paragraph("Text.")) == ["Text."]


def test_html_that_a_program_put_in_whole_is_read() -> None:
    body = '<w:altChunk r:id="c1"/>'
    page = "<html><body><h1>Report</h1><p>The fee is twelve.</p></body></html>"
    data = zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations({"c1": ("aFChunk", "chunk.html")}),
            "word/chunk.html": page,
        }
    )
    assert "The fee is twelve." in parse("a.docx", data).text


def test_a_file_of_another_library_is_read_and_found_with_its_section(tmp_path: Path) -> None:
    made = docx.Document()
    made.add_heading("泵站手册", 0)
    made.add_heading("Upkeep", 1)
    made.add_paragraph("The valve must be oiled in Marchweek.")
    table = made.add_table(2, 2)
    for index, text in enumerate(("Part", "Interval", "gasket", "18 months")):
        table.cell(*divmod(index, 2)).text = text
    made.add_heading("Safety", 1)
    made.add_paragraph("Lock the switch.")
    made.save(tmp_path / "manual.docx")
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    kb.add([tmp_path / "manual.docx"])
    (hit,) = kb.keyword_search(["Marchweek"]).hits
    assert (hit.title, hit.section) == ("泵站手册", "Upkeep")
    (hit,) = kb.keyword_search(["18 months"]).hits
    assert "gasket | 18 months" in hit.snippet
    assert hit.section == "Upkeep"


def test_a_file_is_read_as_what_it_is_whatever_its_name_says() -> None:
    data = write_docx(paragraph("Words 词."))
    for name in ("a.doc", "a.txt", "a.pdf", "a", "a.xlsx"):
        assert parse(f"/docs/{name}", data).text == "Words 词."
    page = b"<html><body><p>A page.</p></body></html>"
    assert parse("a.doc", page).text == "A page."
    assert parse("a.doc", "只是文字。".encode("gbk")).text == "只是文字。"
    assert parse("a.doc", page).media_type == "text/html"


def test_old_locked_and_damaged_files_are_refused_in_one_sentence() -> None:
    cases = [
        ("a.doc", write_ole({"WordDocument": b"x"}), UnsupportedDocument, "save it as .docx"),
        ("a.docx", write_ole({"EncryptedPackage": b"x"}), UnreadableDocument, "password"),
        ("a.docx", write_docx(paragraph("x"))[:300], UnreadableDocument, "damaged"),
        ("a.docx", zipped({"a.txt": "x"}), UnreadableDocument, "main part is missing"),
        ("a.docx", b"\x00\x01\x02" * 100, UnreadableDocument, "damaged"),
    ]
    for name, data, kind, reason in cases:
        with pytest.raises(kind, match=reason) as caught:
            parse(f"/docs/{name}", data)
        assert f"'{name}'" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_part_cut_in_the_middle_gives_what_stands_before_and_says_so() -> None:
    data = write_docx(paragraph("Kept words.") + paragraph("Lost."))
    cut = replaced(data, "word/document.xml", lambda xml: xml[: xml.index(b"Lost")])
    document = parse("a.docx", cut)
    assert "Kept words." in document.text
    assert "damaged" in document.warnings[0]


def test_deep_nesting_is_read_or_refused_but_never_a_crash() -> None:
    def nested(depth: int) -> Document:
        opened, closed = "<w:tbl><w:tr><w:tc>" * depth, "</w:tc></w:tr></w:tbl>" * depth
        return _parse(paragraph("above") + opened + paragraph("core") + closed)

    assert "core" in nested(80).text
    deeper = nested(5_000)
    assert "above" in deeper.text
    assert "damaged" in deeper.warnings[0]


def test_entities_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    body = paragraph("before &e; after")
    data = write_docx(body)
    kind = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>'.encode()
    text = parse("a.docx", replaced(data, "word/document.xml", lambda xml: kind + xml)).text
    assert "before" in text
    assert "SECRET" not in text
