"""PDF: pages, headings, warnings and paragraphs; the files are written by `pdf_writer`."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag.config import Ocr
from agentic_rag.documents import Document, Reading, UnreadableDocument, parse
from agentic_rag.documents.paragraphs import flow
from tests.documents.pdf_writer import Outline, write_pdf

WITHOUT_OCR = Reading(Ocr(enabled=False))


def _page_of(document: Document, phrase: str) -> int:
    at = document.text.index(phrase)
    return max(page.number for page in document.pages if page.start <= at)


def test_pages_without_text_are_named_and_the_others_keep_their_numbers() -> None:
    pages = [[f"Words of page {n} here."] if n in (1, 5, 10) else None for n in range(1, 11)]
    document = parse("/docs/scan.pdf", write_pdf(pages), reading=WITHOUT_OCR)
    assert document.warnings == (
        "no text on pages 2-4, 6-9; OCR is off, ocr.enabled = true has it on",
    )
    assert [_page_of(document, f"page {n} here") for n in (1, 5, 10)] == [1, 5, 10]
    assert document.metadata["pages"] == 10


def test_a_pdf_of_pictures_has_no_text_and_says_so() -> None:
    document = parse("/docs/photo.pdf", write_pdf([None]), reading=WITHOUT_OCR)
    assert document.text == ""
    assert document.pages == ()
    assert document.warnings == ("no text on page 1; OCR is off, ocr.enabled = true has it on",)


def test_chinese_lines_are_joined_without_a_space_and_western_ones_with_one() -> None:
    document = parse(
        "a.pdf",
        write_pdf(
            [
                ["蓝桥泵站位于清河北岸，每天向城区供水一", "万吨，由三台水泵轮流运行。"],
                ["The pump station at Blue Bridge was built in", "nineteen hundred and six."],
            ]
        ),
    )
    assert "每天向城区供水一万吨，由三台水泵" in document.text
    assert "was built in nineteen hundred" in document.text


def test_a_word_broken_at_a_line_end_is_whole_again_only_before_lower_case() -> None:
    document = parse(
        "a.pdf",
        write_pdf(
            [["This long line ends in an exam-", "ple, and this one in Baden-", "Baden town."]]
        ),
    )
    assert "an example, and" in document.text
    assert "Baden-Baden" in document.text


def test_short_lines_list_items_and_headings_stay_lines_of_their_own() -> None:
    lines = [
        "Safety",
        "Before any work on the pump begins the main switch must be locked by two",
        "people, each with a key of their own, and the log must be signed by them.",
        "1. Lock the switch.",
        "2. Sign the log.",
        "a closing remark",
    ]
    assert flow(lines, (), 70).text.split("\n") == [
        "Safety",
        f"{lines[1]} {lines[2]}",
        *lines[3:],
    ]


def test_outline_entries_become_headings_where_they_stand_on_their_page() -> None:
    document = parse(
        "a.pdf",
        write_pdf(
            [["1 Introduction", "Some words."], ["第二章 检修", "水泵。"], ["Other words."]],
            title="泵站手册",
            outline=[Outline("Introduction", 1), Outline("第二章 检修", 2), Outline("Gone", 3)],
        ),
    )
    assert document.title == "泵站手册"
    assert [(h.text, document.text[h.start :].split("\n")[0]) for h in document.headings] == [
        ("Introduction", "1 Introduction"),
        ("第二章 检修", "第二章 检修"),
    ]


def test_the_file_name_is_the_title_where_a_program_wrote_one() -> None:
    for title in ("", "Untitled", "Document1"):
        assert parse("/a/pump.pdf", write_pdf([["x"]], title=title)).title == "pump.pdf"
    titled = write_pdf([["x"]], title="Microsoft Word - Pumps")
    assert parse("/a/pump.pdf", titled).title == "Pumps"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (write_pdf([["x"]], encrypted=True), "password"),
        (write_pdf([["x"]])[:150], "damaged"),
        (b"<html>not found</html>", "damaged or no PDF"),
    ],
)
def test_a_locked_or_damaged_pdf_is_refused_in_one_sentence(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason) as caught:
        parse("/docs/a.pdf", data)
    assert "'a.pdf'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pdf_is_known_by_its_content_whatever_it_is_called() -> None:
    assert parse("/docs/download", write_pdf([["Words."]])).text == "Words."


def test_a_damaged_title_is_no_reason_to_refuse_the_pages() -> None:
    data = write_pdf([["Words."]], title="泵站")
    broken = data.replace("泵站".encode("utf-16-be").hex().encode(), b"6cf5d8")
    assert broken != data
    assert parse("/a/pump.pdf", broken).text == "Words."


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_pdf_with_bytes_changed_gives_a_document_or_an_error_of_ours(data: st.DataObject) -> None:
    whole = write_pdf([["Part", "Words."], None], title="泵站", outline=[Outline("Part", 1)])
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse("a.pdf", bytes(changed), reading=WITHOUT_OCR).text.encode()
    except UnreadableDocument as error:
        assert "'a.pdf'" in str(error)


def test_several_threads_may_parse_pdfs() -> None:
    files = [write_pdf([[f"Words of file {n}."]] * 20) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        documents = list(pool.map(lambda data: parse("a.pdf", data), files))
    assert all(f"file {n}." in document.text for n, document in enumerate(documents))
