"""Internet mail: headers, bodies in two forms, charsets that are wrong, attachments, mailboxes."""

import base64
import io
import quopri
import zipfile
from email.message import EmailMessage

import pytest

from agentic_rag.documents import Document, UnreadableDocument, parse
from agentic_rag.text.chunking import chunk_document
from tests.documents.pdf_writer import write_pdf


def _mail(header: str, body: bytes = b"Text.\r\n") -> Document:
    lines = "\r\n".join(line.strip() for line in header.strip().split("\n"))
    return parse("/mail/a.eml", lines.encode() + b"\r\n\r\n" + body)


def _with(*attachments: tuple[str, bytes], text: str = "See attached.\n") -> Document:
    message = EmailMessage()
    message["Subject"] = "Papers"
    message.set_content(text)
    for name, data in attachments:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return parse("/mail/a.eml", message.as_bytes())


def _section(document: Document, phrase: str) -> tuple[str, int | None]:
    """The section and page that a phrase is cited with."""
    for draft in chunk_document(document):
        for sentence in draft.sentences:
            if phrase in draft.text[sentence.start : sentence.end]:
                return sentence.section, sentence.page
    raise AssertionError(phrase)


def _word(text: str, charset: str, kind: str = "B") -> str:
    data = text.encode(charset)
    if kind == "B":
        return f"=?{charset}?B?{base64.b64encode(data).decode()}?="
    return f"=?{charset}?Q?{quopri.encodestring(data, header=True).decode()}?="


def test_the_header_stands_first_and_is_metadata() -> None:
    document = _mail(
        f"""From: {_word("王小明", "gbk")} <wang@example.cn>
        To: "{_word("Jörg", "iso-8859-1", "Q")}" <joerg@example.de>, b@example.com
        Cc: c@example.com
        Date: Wed, 1 May 2024 10:00:00 +0800
        Subject: {_word("ポンプ検査", "iso-2022-jp")}"""
    )
    assert document.title == "ポンプ検査"
    assert document.text == (
        "From: 王小明 <wang@example.cn>\n"
        'To: "Jörg" <joerg@example.de>, b@example.com\n'
        "Cc: c@example.com\n"
        "Date: 2024-05-01T10:00:00+08:00\n"
        "Subject: ポンプ検査\n\nText.\n"
    )
    assert document.metadata == {
        "from": "王小明 <wang@example.cn>",
        "to": '"Jörg" <joerg@example.de>, b@example.com',
        "cc": "c@example.com",
        "date": "2024-05-01T10:00:00+08:00",
    }


@pytest.mark.parametrize(
    ("written", "subject"),
    [
        # one character cut in two by the folding, each half in a word of its own
        ("=?gbk?B?1tC5?=\r\n =?gbk?B?+g==?=", "中国"),
        ("=?gb2312?B?6UY=?=", "镕"),  # only in GBK
        ("=?utf-8?b?5rO156uZ?= =?utf-8?q?_report?= x", "泵站 report x"),
        ("=?utf-8?B?5rO156uZ", "=?utf-8?B?5rO156uZ"),  # never closed: as written
        ("=?utf-8?B?5rO156uZ5Q?=", "泵站"),  # cut short
        ("=?x-nothing?B?5rO156uZ?=", "泵站"),
        ("=?utf-8?B?1tC5+g==?=", "中国"),  # says UTF-8, is GBK
        ("=?big5?Q?=B4=FA=B8=D5?=", "測試"),
        ("=?utf-8*en?Q?caf=C3=A9?=", "café"),
        ("Re: =?utf-8?B?5rO156uZ?=: plan", "Re: 泵站: plan"),
    ],
)
def test_encoded_subjects_are_read_whole_or_broken(written: str, subject: str) -> None:
    data = f"Subject: {written}\r\nFrom: a@b\r\n\r\nText.\r\n".encode()
    assert parse("/mail/a.eml", data).title == subject


@pytest.mark.parametrize("charset", ["utf-8", "gb18030", "iso-2022-jp"])
def test_a_subject_in_raw_bytes_is_read(charset: str) -> None:
    subject = "日本語の件名" if charset == "iso-2022-jp" else "关于蓝桥泵站检修的通知"
    data = b"Subject: " + subject.encode(charset) + b"\r\nFrom: a@b\r\n\r\nText."
    assert parse("/mail/a.eml", data).title == subject


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        ("", "gb18030"),
        ("; charset=gb2312", "gb18030"),
        ("; charset=us-ascii", "gb18030"),
        ("; charset=iso-8859-1", "gb18030"),
        ("; charset=utf-8", "gb18030"),
        ("; charset=x-unknown", "gb18030"),
        ("; charset=gb2312", "utf-8"),
        ('; charset="utf-8"', "utf-8"),
    ],
)
def test_a_body_is_read_whatever_its_charset_says(declared: str, written: str) -> None:
    text = "蓝桥泵站每天向城区供水一万吨，镕基大道停水两小时。"
    document = _mail(f"From: a@b\nContent-Type: text/plain{declared}", text.encode(written))
    assert text in document.text
    assert document.warnings == ()


def test_a_western_body_in_latin_1_keeps_its_letters() -> None:
    document = _mail(
        "From: a@b\nContent-Type: text/plain; charset=iso-8859-1", "Größe: fünf Meter.".encode("l1")
    )
    assert "Größe: fünf Meter." in document.text


@pytest.mark.parametrize("charset", ["iso-2022-jp", "hz", "utf-7", "euc-kr", "koi8-r"])
def test_other_charsets_are_obeyed(charset: str) -> None:
    text = {"hz": "蓝桥泵站", "utf-7": "蓝桥泵站", "euc-kr": "펌프장", "koi8-r": "Насос"}.get(
        charset, "ポンプ場"
    )
    body = f"{text} a.".encode(charset)
    document = _mail(f"From: a@b\nContent-Type: text/plain; charset={charset}", body)
    assert f"{text} a." in document.text


def test_quoted_printable_and_flowed_lines_are_whole_again() -> None:
    text = "The pump was \nreplaced =E2=80=94 twice.\n> quoted \n> too\n-- \nA"
    document = _mail(
        """From: a@b
        Content-Type: text/plain; charset=utf-8; format=flowed
        Content-Transfer-Encoding: quoted-printable""",
        text.replace("\n", "\r\n").encode(),
    )
    assert "The pump was replaced — twice.\n> quoted too\n--\nA" in document.text


def test_an_html_body_goes_through_the_reading_of_html_with_its_headings() -> None:
    document = _mail(
        "From: a@b\nSubject: S\nContent-Type: text/html; charset=gbk",
        "<style>p{}</style><h1>通知</h1><p>蓝桥\n泵站</p><h2>费用</h2>".encode("gbk"),
    )
    assert document.text.endswith("\n\n通知\n\n蓝桥泵站\n\n费用\n")
    assert [(h.level, h.text) for h in document.headings] == [(1, "通知"), (2, "费用")]


_LETTER = "<p>The fee is 40 euros a year, and it is to be paid by March.</p>" * 3


@pytest.mark.parametrize(
    ("plain", "html", "kept"),
    [
        ("The fee is 40 euros.", "<p>The fee is <b>40 euros</b>.</p>", "plain"),
        ("", _LETTER, "html"),
        ("Please view this e-mail in an HTML reader.", _LETTER, "html"),
        ("您的邮件客户端不支持显示此内容，请使用浏览器查看。", _LETTER, "html"),
        ("The HTML pages are attached.", "<p>The HTML pages are attached.</p>", "plain"),
        ("Name Fee\nA 1", "<table><tr><th>Name<th>Fee<tr><td>A<td>1</table>", "html"),
        ("Words only.", "<img src=x>", "plain"),
    ],
)
def test_of_two_forms_the_plain_one_is_read_unless_it_only_stands_in(
    plain: str, html: str, kept: str
) -> None:
    message = EmailMessage()
    message.set_content(plain)
    message.add_alternative(html, subtype="html")
    text = parse("/mail/a.eml", message.as_bytes()).text
    expected = {"plain": plain, "html": "| Fee" if "table" in html else "The fee is 40 euros a y"}
    assert expected[kept] in text
    assert kept == "plain" or not plain or plain not in text


def test_attachments_of_every_kind_stand_under_their_names_with_headings_below() -> None:
    pdf = write_pdf([["First page of it."], ["The pump is on page two."]])
    document = _with(
        ("费用.md", b"# Fees\n\nIntro.\n\n## Pump\n\nThe fee is 12."),
        ("report.pdf", pdf),
        ("rows.csv", b"name,fee\nA,1\nB,2\n"),
        ("说明.txt", "蓝桥泵站说明。".encode("gbk")),
    )
    assert "Attachments: 费用.md, report.pdf, rows.csv, 说明.txt" in document.text
    assert _section(document, "The fee is 12") == ("Attachment: 费用.md › Fees › Pump", None)
    assert _section(document, "on page two") == ("Attachment: report.pdf", 2)
    assert _section(document, "name: B; fee: 2") == ("Attachment: rows.csv", None)
    assert _section(document, "蓝桥泵站说明") == ("Attachment: 说明.txt", None)
    assert _section(document, "See attached") == ("", None)
    assert document.warnings == ()


def test_what_cannot_be_read_is_named_and_the_rest_is_there() -> None:
    document = _with(
        ("photo.bin", b"\x00\x01\x02\x03"),
        ("broken.pdf", b"%PDF-1.4 nothing more"),
        ("winmail.dat", b"\x78\x9f\x3e\x22 data"),
        ("good.txt", b"The good text."),
    )
    assert "The good text." in document.text
    tnef, pdf, unknown = document.warnings
    assert tnef.startswith("'winmail.dat' in it holds text and attachments in a form of Outlook's")
    assert pdf == (
        "in it: 'broken.pdf' is damaged or no PDF; open it in a PDF viewer and save it again"
    )
    assert unknown == "1 file of a type not supported in it: photo.bin"


@pytest.mark.parametrize(
    "header",
    [
        "filename*=utf-8''%E6%8A%A5%E5%91%8A.txt",
        "filename*0*=utf-8''%E6%8A%A5;\r\n filename*1*=%E5%91%8A.txt",
        'filename="=?gbk?B?sai45i50eHQ=?="',
        'filename="%E6%8A%A5%E5%91%8A.txt"',
        "filename=报告.txt",
    ],
)
def test_attachment_names_are_read_however_they_are_written(header: str) -> None:
    data = (
        "From: a@b\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Disposition: attachment; {header}\r\n\r\nInside."
    ).encode()
    document = parse("/mail/a.eml", data)
    assert [h.text for h in document.headings] == ["Attachment: 报告.txt"]


def test_a_mail_in_a_mail_and_an_archive_in_it_are_read_with_their_place() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("plans/pump.md", "# Plan\n\nThe pump stands in hall five.")
    inner = EmailMessage()
    inner["Subject"] = "Inner subject"
    inner["From"] = "deep@example.com"
    inner.set_content("Deep text.\n")
    inner.add_attachment(
        packed.getvalue(), maintype="application", subtype="zip", filename="plans.zip"
    )
    outer = EmailMessage()
    outer["Subject"] = "Outer"
    outer.set_content("Forwarded.\n")
    outer.add_attachment(inner)
    document = parse("/mail/a.eml", outer.as_bytes())
    place = "Attachment: Inner subject"
    assert _section(document, "Deep text") == (place, None)
    assert _section(document, "hall five") == (
        f"{place} › Attachment: plans.zip › plans/pump.md › Plan",
        None,
    )


def test_mails_nested_without_end_are_read_to_a_depth_and_end_well() -> None:
    data = b"Subject: core\r\nFrom: a@b\r\n\r\nThe core.\r\n"
    for level in range(60):
        data = b"Subject: level %d\r\nContent-Type: message/rfc822\r\n\r\n" % level + data
    document = parse("/mail/a.eml", data)
    assert "Subject: level 59" in document.text
    assert any("lies too deep" in warning for warning in document.warnings)
    deep = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" * 2_000
    try:
        parse("/mail/b.eml", b"From: a@b\r\n" + deep + b"text")
    except UnreadableDocument as error:
        assert "'b.eml' is damaged" in str(error)


def test_pictures_of_the_layout_are_left_out_and_others_are_named() -> None:
    message = EmailMessage()
    message.set_content("<p>Hello <img src='cid:logo'></p>", subtype="html")
    message.add_related(b"\x89PNG\r\n\x1a\n..", "image", "png", cid="<logo>")
    message.add_attachment(b"MZ\x90\x00\x03", "application", "x-msdownload", filename="a.exe")
    document = parse("/mail/a.eml", message.as_bytes())
    assert document.warnings == ("1 file of a type not supported in it: a.exe",)


def test_a_part_without_its_end_and_a_border_that_is_missing_lose_no_text() -> None:
    cut = _mail(
        "From: a@b\nContent-Type: multipart/mixed; boundary=b",
        b"--b\r\nContent-Type: text/plain\r\n\r\nStarts here",
    )
    assert "Starts here" in cut.text
    borderless = _mail("From: a@b\nContent-Type: multipart/mixed", b"Only text.")
    assert "Only text." in borderless.text


def test_encrypted_mail_says_so() -> None:
    document = _mail("From: a@b\nSubject: S\nContent-Type: application/pkcs7-mime", b"MIAG")
    assert document.warnings == (
        "a part of it is encrypted, or wrapped by its signature, and is not read; save it from the "
        "mail program without encryption",
    )


def test_a_date_that_cannot_be_read_stays_as_it_is_written() -> None:
    assert "Date: 昨天下午\n" in _mail("From: a@b\nDate: 昨天下午").text


def test_a_mailbox_has_a_heading_for_each_message() -> None:
    data = (
        b"From a@b Wed May  1 10:00:00 2024\nSubject: First\nFrom: a@b\n\nOne.\n>From here on.\n\n"
        b"From b@c Thu May  2 10:00:00 2024\nSubject: Second\nFrom: b@c\n\nTwo.\n"
    )
    document = parse("/mail/in.mbox", data)
    assert [h.text for h in document.headings] == ["First", "Second"]
    assert "One.\nFrom here on." in document.text
    assert _section(document, "Two.") == ("Second", None)
    assert document.metadata == {"messages": 2}


def test_mail_without_a_suffix_or_under_outlooks_is_mail() -> None:
    data = b"Return-Path: <a@b>\nMessage-ID: <1@b>\nSubject: Kept\n\nText."
    assert parse("/maildir/cur/1700.M1.host", data).title == "Kept"
    assert parse("/mail/a.msg", data).title == "Kept"
    assert parse("/mail/Inbox", b"From a@b Wed May  1 10:00:00 2024\n" + data).text.startswith(
        "Kept"
    )
    assert parse("/tcl/de.msg", b'::msgcat::mcset de "Open" "Offen"').title == "de.msg"


def test_a_file_that_is_no_mail_is_named() -> None:
    with pytest.raises(UnreadableDocument, match=r"'a\.eml' is no mail"):
        parse("/mail/a.eml", b"just some words\n\nof text")
    with pytest.raises(UnreadableDocument, match=r"'a\.mbox' is no mailbox"):
        parse("/mail/a.mbox", b"just some words")
