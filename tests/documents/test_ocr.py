"""Scanned pages and pictures: their text by OCR. The pictures are drawn here."""

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag.config import Ocr
from agentic_rag.documents import (
    Document,
    Reading,
    ReadingStopped,
    UnreadableDocument,
    UnsupportedDocument,
    ocr,
    parse,
)
from tests.documents.drawing import draw_on, drawn, encoded, image, need_ocr
from tests.documents.pdf_writer import Scan, write_pdf

need_ocr()

PUMP = "蓝桥泵站位于清河北岸，每天向城区供水一万吨。"
BUILT = "The pump station was built in 1906."


def _scan(lines: list[str], stamp: tuple[str, ...] = (), share: float = 1.0) -> Scan:
    picture = image(lines)
    return Scan(encoded(picture, "JPEG"), picture.width, picture.height, stamp, share)


def _page_of(document: Document, phrase: str) -> int | None:
    at = document.text.index(phrase)
    return [page.number for page in document.pages if page.start <= at][-1]


# -- the models -------------------------------------------------------------------------------


def test_chinese_and_english_are_read_letter_by_letter() -> None:
    found = ocr.read_pixels(drawn([PUMP, BUILT, "设备 QH-3072 额定功率 75 kW"]), 0.5)
    assert found.rows() == [PUMP, BUILT, "设备 QH-3072 额定功率 75 kW"]
    assert all(line.confidence > 0.8 for line in found.lines)
    (left, top), _, (right, bottom), _ = next(x for x in found.lines if x.text == PUMP).box
    assert (left, top, right, bottom) == pytest.approx((40, 43, 725, 80), abs=20)


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    ocr._model.cache_clear()
    assert ocr.read_pixels(drawn([BUILT]), 0.5).rows() == [BUILT]


def test_a_trial_reads_the_number_it_has_drawn() -> None:
    assert ocr.try_out() == "1906"


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_page_that_lies_on_its_side_or_head_is_read_upright(turns: int) -> None:
    lines = [PUMP, BUILT, "第三行写着检修日期：2023年5月。"]
    turned = np.ascontiguousarray(np.rot90(drawn(lines), turns))
    assert ocr.read_pixels(turned, 0.5).rows() == lines


def test_chinese_set_from_top_to_bottom_is_read_from_the_right() -> None:
    columns = ["蓝桥泵站位于清河北岸", "每天向城区供水一万吨", "由三台水泵轮流运行"]
    pixels = drawn([], width=400, height=600)
    for number, column in enumerate(columns):
        for place, character in enumerate(column):
            draw_on(pixels, [character], 300 - 90 * number, 80 + 44 * place, 36)
    assert ocr.read_pixels(pixels, 0.5).rows() == columns


def test_a_long_screenshot_is_read_from_its_first_line_to_its_last() -> None:
    lines = [f"第{n}条 记录编号 {4700 + n}" if n % 12 == 5 else "" for n in range(96)]
    pixels = drawn(lines, width=420)
    assert pixels.shape[0] > 11 * pixels.shape[1]
    assert [row for row in ocr.read_pixels(pixels, 0.5).rows() if row] == list(filter(None, lines))


def test_small_letters_in_a_very_wide_picture_are_read() -> None:
    from PIL import Image

    pixels = np.full((300, 6_500, 3), 255, np.uint8)
    said = [f"Station {n} opens at {40 + n} bar" for n in range(5)]
    for n, line in enumerate(said):
        draw_on(pixels, [line], 100 + 1_280 * n, 150, 20)
    picture = encoded(Image.fromarray(pixels), "PNG")
    assert parse("/docs/line.png", picture).text == " ".join(said)


def test_several_threads_may_read_at_once() -> None:
    pages = [drawn([f"The valve has the number {n}."]) for n in (4711, 5822, 6933)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda page: ocr.read_pixels(page, 0.5).rows(), pages))
    assert found == [[f"The valve has the number {n}."] for n in (4711, 5822, 6933)]


# -- pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.bmp", "BMP"), ("a.webp", "WEBP"), ("a.gif", "GIF")],
)
def test_a_picture_is_a_document_named_by_its_file(name: str, kind: str) -> None:
    document = parse(f"/docs/{name}", encoded(image([BUILT], height=120), kind))
    assert document.text == BUILT
    assert document.title == name
    assert document.media_type == f"image/{kind.lower()}"
    assert document.pages == ()
    assert document.metadata == {"ocr_pages": 1}
    assert document.warnings == ()


def test_a_tiff_has_pages_and_a_damaged_one_among_them_is_named() -> None:
    first, third = image([PUMP], height=120), image([BUILT], height=120)
    data = encoded(first, "TIFF", save_all=True, append_images=[third.resize((1, 1)), third])
    document = parse("/docs/fax.tif", data)
    assert _page_of(document, PUMP) == 1
    assert _page_of(document, BUILT) == 3
    assert document.metadata == {"pages": 3, "ocr_pages": 2}
    assert document.warnings == ("no text on page 2; OCR finds none",)


def test_an_animation_is_read_by_its_first_frame() -> None:
    frames = [image(["First frame 4711"], height=120), image(["Second frame 5822"], height=120)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert parse("/docs/a.gif", data).text == "First frame 4711"


def test_however_a_picture_stores_its_pixels_it_is_read() -> None:
    from PIL import Image

    black_on_white = image([BUILT], height=120)
    ink = Image.eval(black_on_white.convert("L"), lambda value: 255 - value)
    transparent = Image.new("RGBA", black_on_white.size, (0, 0, 0, 0))
    transparent.putalpha(ink)
    grey = (255 - np.asarray(ink)).astype(np.uint16) * 40 + 9000
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    files = {
        "transparent": encoded(transparent, "PNG"),
        "16 bits": encoded(Image.fromarray(grey), "PNG"),
        "1 bit": encoded(
            black_on_white.convert("1", dither=Image.Dither.NONE), "TIFF", compression="group4"
        ),
        "palette": encoded(black_on_white.convert("P"), "PNG"),
        "inks": encoded(black_on_white.convert("CMYK"), "JPEG"),
        "turned": encoded(black_on_white.rotate(90, expand=True), "JPEG", exif=exif),
        "white on black": encoded(Image.eval(black_on_white, lambda value: 255 - value), "PNG"),
    }
    assert {name: parse("/docs/a.png", data).text for name, data in files.items()} == {
        name: BUILT for name in files
    }


def test_a_picture_with_another_kinds_suffix_is_read_as_what_it_is() -> None:
    document = parse("/docs/notes.txt", encoded(image([BUILT], height=120), "PNG"))
    assert (document.text, document.media_type) == (BUILT, "image/png")


@pytest.mark.parametrize("size", [(1, 1), (300, 200)])
def test_a_picture_without_text_says_so(size: tuple[int, int]) -> None:
    from PIL import Image

    document = parse("/docs/a.png", encoded(Image.new("RGB", size, "red"), "PNG"))
    assert document.text == ""
    assert document.warnings == ("no text; OCR finds none",)


def test_letters_as_high_as_a_very_wide_picture_are_read_scaled_down() -> None:
    wide = encoded(image([BUILT], width=7_000, height=700, size=250), "PNG")
    assert parse("/docs/wide.png", wide).text == BUILT


def test_a_picture_with_too_many_pixels_is_refused_before_it_is_unpacked() -> None:
    from PIL import Image

    data = encoded(Image.new("1", (20_000, 20_000)), "PNG")
    assert len(data) < 100_000
    with pytest.raises(UnreadableDocument, match=r"'huge\.png' has more than 150 million pixels"):
        parse("/docs/huge.png", data)


def test_a_damaged_picture_is_named() -> None:
    data = encoded(image([BUILT], height=120), "PNG")
    for broken in (data[:200], data[:8] + b"\0" * 100, b"no picture at all"):
        with pytest.raises(UnreadableDocument, match=r"'a\.png' is a damaged picture"):
            parse("/docs/a.png", broken)


def test_lines_that_are_not_sure_enough_are_left_out_and_counted() -> None:
    data = encoded(image([PUMP, BUILT]), "PNG")
    document = parse("/docs/a.png", data, reading=Reading(Ocr(min_confidence=1.0)))
    assert document.text == ""
    assert document.warnings == ("2 lines below confidence 1 left out",)


def test_without_the_extra_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    with pytest.raises(UnsupportedDocument, match=r"for OCR: pip install 'agentic-rag\[ocr\]'"):
        parse("/docs/a.png", encoded(image([BUILT]), "PNG"))
    document = parse("/docs/a.pdf", write_pdf([_scan([BUILT]), ["Text."]]))
    assert document.text == "Text."
    assert document.warnings == ("no text on page 1; for OCR: pip install 'agentic-rag[ocr]'",)


def test_an_extra_that_does_not_work_costs_only_the_scanned_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import rapidocr

    def broken(**settings: object) -> None:
        raise ImportError("libsomething.so: cannot open shared object file")

    monkeypatch.setattr(rapidocr, "RapidOCR", broken)
    ocr._model.cache_clear()
    document = parse("/docs/a.pdf", write_pdf([_scan([BUILT]), ["Text."]]))
    assert document.text == "Text."
    (warning,) = document.warnings
    assert warning.startswith("no text on page 1; the ocr extra does not work here (ImportError")
    assert warning.endswith("install it anew: pip install 'agentic-rag[ocr]'")


# -- pdf --------------------------------------------------------------------------------------


def test_a_pdf_of_scans_is_read_and_its_lines_are_joined_to_paragraphs() -> None:
    lines = ["蓝桥泵站位于清河北岸，每天向城区供水一", "万吨，由三台水泵轮流运行。"]
    document = parse("/docs/scan.pdf", write_pdf([_scan(lines)]))
    assert document.text == "".join(lines)
    assert document.metadata == {"pages": 1, "ocr_pages": 1}
    assert document.warnings == ()


def test_in_a_partly_scanned_pdf_every_page_is_read_and_keeps_its_number() -> None:
    text = (1, 5, 10)
    pages = [
        [f"Words of page {n} here."] if n in text else _scan([f"Scan number {4700 + n}."])
        for n in range(1, 11)
    ]
    told: list[tuple[int, int]] = []
    reading = Reading(on_page=lambda done, total: told.append((done, total)))
    document = parse("/docs/partly.pdf", write_pdf(pages), reading=reading)
    for number in range(1, 11):
        phrase = f"page {number} here" if number in text else f"number {4700 + number}"
        assert _page_of(document, phrase) == number
    assert document.metadata == {"pages": 10, "ocr_pages": 7}
    assert told == [(done, 7) for done in range(8)]


def test_a_scan_with_a_line_that_a_program_stamped_on_it_is_read() -> None:
    scan = _scan(["", "", BUILT, *[""] * 18], ("Scanned by a program",))
    document = parse("/docs/a.pdf", write_pdf([scan]))
    assert BUILT in document.text
    assert "Scanned by a program" in document.text
    assert document.metadata["ocr_pages"] == 1


def test_a_page_of_few_words_beside_a_small_picture_is_left_as_it_is() -> None:
    document = parse("/docs/a.pdf", write_pdf([_scan(["LOGO 4711"], ("Annual report",), 0.3)]))
    assert document.text == "Annual report"
    assert "ocr_pages" not in document.metadata


def test_reading_stops_between_two_pages() -> None:
    read: list[int] = []
    reading = Reading(on_page=lambda done, total: read.append(done), stopped=lambda: read == [0, 1])
    with pytest.raises(ReadingStopped):
        parse("/docs/a.pdf", write_pdf([_scan([BUILT])] * 3), reading=reading)
    assert read == [0, 1]
    assert parse("/docs/b.pdf", write_pdf([["Text."]])).text == "Text."  # PDFium's lock is free


def test_a_huge_page_is_rendered_in_bearable_size() -> None:
    from agentic_rag.documents.pdfium import rendered

    data = write_pdf([None]).replace(b"/MediaBox[0 0 595 842]", b"/MediaBox[0 0 14400 14400]")
    (pixels,) = rendered(data, [0], 600)
    assert pixels is not None
    assert pixels.size <= 3 * 41_000_000


def test_chinese_drawn_beside_english_columns_is_read_in_order() -> None:
    pixels = drawn(["泵站运行手册与检修规程（试行）"], width=1300, height=560)
    left = ["左栏第一行说明水泵的启动步骤", "左栏第二行说明阀门的开启顺序"] * 2
    right = ["右栏第一行说明停机之后的检查", "右栏第二行说明记录表的填写法"] * 2
    draw_on(pixels, left, 40, 200)
    draw_on(pixels, right, 700, 200)
    assert [row for row in ocr.read_pixels(pixels, 0.5).rows() if row] == [
        "泵站运行手册与检修规程（试行）", *left, *right,
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF"]), st.data())
def test_a_picture_with_bytes_changed_gives_a_document_or_an_error_of_ours(
    kind: str, data: st.DataObject
) -> None:
    from PIL import Image

    whole = encoded(Image.new("RGB", (20, 20), "white"), kind)
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse("a.png", bytes(changed)).text.encode()
    except UnreadableDocument as error:
        assert "'a.png'" in str(error)
