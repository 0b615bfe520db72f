"""Outlook messages: properties, bodies in three forms, code pages, attachments."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag.documents import Document, UnreadableDocument, parse
from agentic_rag.documents.rtf import DamagedRtf, html_or_text, unpacked
from agentic_rag.errors import AragError
from agentic_rag.text.chunking import chunk_document
from tests.documents.msg_writer import Attached, message_tree, packed_rtf, write_msg
from tests.documents.pdf_writer import write_pdf

SUBJECT, BODY, HTML, RTF, SENT = 0x0037, 0x1000, 0x1013, 0x1009, 0x0039
SENDER, SENDER_SMTP = 0x0C1A, 0x5D01
NAME, SMTP, KIND = 0x3001, 0x39FE, 0x0C15


def _section(document: Document, phrase: str) -> tuple[str, int | None]:
    for draft in chunk_document(document):
        for sentence in draft.sentences:
            if phrase in draft.text[sentence.start : sentence.end]:
                return sentence.section, sentence.page
    raise AssertionError(phrase)


def test_a_message_is_read_with_its_people_and_date() -> None:
    data = write_msg(
        {
            SUBJECT: "蓝桥泵站检修",
            SENDER: "王小明",
            SENDER_SMTP: "wang@example.cn",
            BODY: "周三停水两小时。\r\n",
            SENT: datetime(2024, 5, 1, 2, 0, tzinfo=UTC),
        },
        [
            {NAME: "Ann", SMTP: "ann@example.com", KIND: 1},
            {NAME: "李四", KIND: 2},
            {NAME: "'bob@example.com'", SMTP: "bob@example.com", KIND: 1},
        ],
    )
    document = parse("/mail/a.msg", data)
    assert document.title == "蓝桥泵站检修"
    assert document.text == (
        "From: 王小明 <wang@example.cn>\nTo: Ann <ann@example.com>, bob@example.com\nCc: 李四\n"
        "Date: 2024-05-01T02:00:00+00:00\nSubject: 蓝桥泵站检修\n\n周三停水两小时。\n"
    )
    assert document.metadata["to"] == "Ann <ann@example.com>, bob@example.com"
    assert document.metadata["date"] == "2024-05-01T02:00:00+00:00"


def test_texts_in_a_chinese_code_page_are_read() -> None:
    data = write_msg({SUBJECT: "检修通知", BODY: "蓝桥泵站周三停水。"}, code_page=936)
    document = parse("/mail/a.msg", data)
    assert document.title == "检修通知"
    assert "蓝桥泵站周三停水。" in document.text
    wrong = write_msg({SUBJECT: "检修通知", BODY: "蓝桥泵站周三停水。"}, code_page=936).replace(
        (936).to_bytes(4, "little"), (1252).to_bytes(4, "little")
    )
    assert "蓝桥泵站周三停水。" in parse("/mail/a.msg", wrong).text


@pytest.mark.parametrize("code_page", [0, 936, 65001])
def test_an_html_body_alone_is_read_with_its_headings(code_page: int) -> None:
    charset = {0: "gb18030", 936: "gb18030", 65001: "utf-8"}[code_page]
    html = '<meta charset="gb2312"><h1>通知</h1><p>镕基大道停水</p>'.encode(charset)
    given = {0x3FDE: code_page} if code_page else {}
    document = parse("/mail/a.msg", write_msg({SUBJECT: "S", HTML: html, **given}))
    assert "通知\n\n镕基大道停水" in document.text
    assert [h.text for h in document.headings] == ["通知"]


_WRAPPED_HTML = (
    rb"{\rtf1\ansi\ansicpg936\fromhtml1 \deff0{\fonttbl{\f0\fswiss Arial;}"
    rb"{\f1\fnil\fcharset134 SimSun;}}{\*\generator x;}"
    rb"{\*\htmltag19 <html>}{\*\htmltag64 <h1>}\htmlrtf {\b\htmlrtf0 "
    rb"{\f1 \'cd\'a8\'d6\'aa}\htmlrtf }\htmlrtf0 {\*\htmltag72 </h1>}"
    rb"{\*\htmltag64 <p>}\htmlrtf\par\htmlrtf0 caf\'e9 \u27893?\u31449?"
    rb"{\*\htmltag84 &nbsp;}\htmlrtf \'a0\htmlrtf0 {\*\mhtmltag <img src=x>}end"
    rb"{\*\htmltag72 </p>}{\*\htmltag27 </html>}}"
)


def test_html_that_is_wrapped_into_rtf_is_html_again() -> None:
    document = parse("/mail/a.msg", write_msg({SUBJECT: "S", RTF: packed_rtf(_WRAPPED_HTML)}))
    assert "通知" in document.text
    assert "泵站 end" in document.text
    assert "htmlrtf" not in document.text
    assert [h.text for h in document.headings] == ["通知"]


def test_plain_rtf_is_text_with_its_paragraphs_and_cells() -> None:
    rtf = (
        rb"{\rtf1\ansi\ansicpg1252\uc2{\fonttbl{\f0 Arial;}{\f1\fcharset134 SimSun;}}"
        rb"{\*\unknown hidden}{\info{\title no}}First \u8212\'97\'97 one\par "
        rb"{\f1\'c0\'b6\'c7\'c5}\tab x\line {\v secret}a\cell b\cell\row \{ok\}\bin3 }}}after}"
    )
    assert html_or_text(rtf) == ("text", "First — one\n蓝桥\tx\na | b\n{ok}after")
    document = parse("/mail/a.msg", write_msg({SUBJECT: "S", RTF: packed_rtf(rtf)}))
    assert "First — one\n蓝桥" in document.text


@pytest.mark.parametrize(
    ("packed", "rtf"),
    [  # the examples of [MS-OXRTFCP]
        (
            "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c"
            "647d0a800fa0",
            b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n",
        ),
        (
            "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0",
            b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}",
        ),
    ],
)
def test_packed_rtf_is_unpacked_as_its_description_says(packed: str, rtf: bytes) -> None:
    assert unpacked(bytes.fromhex(packed), 1_000) == rtf
    with pytest.raises(DamagedRtf, match="more than"):
        unpacked(bytes.fromhex(packed), 10)


def test_a_body_that_cannot_be_unpacked_is_said() -> None:
    document = parse("/mail/a.msg", write_msg({SUBJECT: "S", RTF: b"\0" * 20}))
    assert document.warnings == (
        "its text cannot be read (it is packed in an unknown way); save it as plain text or .eml",
    )


def test_attachments_and_messages_in_a_message_keep_their_place() -> None:
    inner = message_tree(
        {SUBJECT: "Inner", BODY: "Deep text."}, attachments=[Attached("n.txt", b"Deepest note.")]
    )
    data = write_msg(
        {SUBJECT: "Outer", BODY: "See below."},
        attachments=[
            Attached("报告.pdf", write_pdf([["One."], ["The pump is on page two."]])),
            Attached("", inner),
            Attached("logo.png", b"\x89PNG\r\n\x1a\n", {0x370E: "image/png", 0x3712: "logo@1"}),
            Attached("a.exe", b"MZ\x90\x00\x03"),
            Attached("far.docx", None, {0x3705: 7}),
            Attached("big.txt", b"A large note. " * 400),
        ],
    )
    document = parse("/mail/a.msg", data)
    assert _section(document, "on page two") == ("Attachment: 报告.pdf", 2)
    assert _section(document, "Deep text") == ("Attachment: Inner", None)
    assert _section(document, "Deepest note") == ("Attachment: Inner › Attachment: n.txt", None)
    assert _section(document, "A large note") == ("Attachment: big.txt", None)
    assert document.warnings == (
        "'far.docx' in it is not read: it is a link to a file that is kept elsewhere; fetch and "
        "index that",
        "1 file of a type not supported in it: a.exe",
    )


def test_damaged_and_foreign_files_are_named() -> None:
    data = write_msg({SUBJECT: "S", BODY: "Text."})
    with pytest.raises(UnreadableDocument, match=r"'a\.msg' is damaged or was cut short"):
        parse("/mail/a.msg", data[:600])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4_000), st.binary(min_size=1, max_size=8)), max_size=6))
def test_any_damage_ends_in_a_document_or_an_error_of_ours(
    damages: list[tuple[int, bytes]],
) -> None:
    data = bytearray(
        write_msg({SUBJECT: "S", RTF: packed_rtf(_WRAPPED_HTML)}, [{NAME: "A", KIND: 1}])
    )
    for at, damage in damages:
        data[at : at + len(damage)] = damage
    try:
        document = parse("/mail/a.msg", bytes(data))
    except AragError as error:
        assert "a.msg" in str(error)
    else:
        assert document.text or document.warnings
