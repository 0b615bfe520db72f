"""Spreadsheets: values as shown, each row standing by itself under its headings."""

import datetime
import io
import struct
from pathlib import Path

import openpyxl
import pytest
import xlwt
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet

from agentic_rag.config import Settings
from agentic_rag.documents import UnreadableDocument, parse
from agentic_rag.documents.number_format import shown_number
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.text.chunking import chunk_document
from tests.documents.office_writer import write_ole
from tests.knowledge_base.embedders import HashEmbedder


def _saved(book: openpyxl.Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _sheet(rows: list[list[object]]) -> tuple[openpyxl.Workbook, Worksheet]:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    return book, sheet


def _lines(book: openpyxl.Workbook) -> list[str]:
    return [line for line in parse("/b/a.xlsx", _saved(book)).text.split("\n") if line]


def test_each_row_repeats_its_headings_and_stands_by_itself() -> None:
    book, sheet = _sheet(
        [["姓名", "City", "Note"], ["张三", "Suzhou", None], ["李四", "Wuxi", "ok"]]
    )
    sheet.title = "人员"
    document = parse("/b/a.xlsx", _saved(book))
    assert document.text == "人员\n\n姓名: 张三; City: Suzhou\n姓名: 李四; City: Wuxi; Note: ok"
    (draft,) = chunk_document(document)
    sentences = [draft.text[s.start : s.end].strip() for s in draft.sentences]
    assert sentences[-2:] == ["姓名: 张三; City: Suzhou", "姓名: 李四; City: Wuxi; Note: ok"]
    assert draft.sentences[-1].section == "人员"


def test_dates_are_iso_and_numbers_as_shown() -> None:
    book, sheet = _sheet([["a", "b", "c", "d", "e"]])
    sheet.append(
        [datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 8, 30), 0.125, 1234.5, 3]
    )
    for cell, code in zip(
        sheet[2],
        ("d.m.yy", 'yyyy"年"m"月"d"日" h:mm', "0.0%", '"¥"#,##0.00', "General"),
        strict=True,
    ):
        cell.number_format = code
    line = "a: 2024-03-01; b: 2024-03-01 08:30; c: 12.5%; d: ¥1,234.50; e: 3"
    assert _lines(book)[-1] == line


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.125, "0%", "13%"),
        (-1234.5, '_("$"* #,##0.00_);_("$"* (#,##0.00)', "-$1,234.50"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (123, "00000", "00123"),
        (0.1 + 0.2, "General", "0.3"),
        (3.5, "0.##", "3.5"),
        (12, '0" kg"', "12 kg"),
        (1_500_000, '0.0,,"M"', "1500000"),
        (0.354, "h:mm", "08:29:46"),
        (1.5, "[h]:mm", "36:00"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-5, "yyyy-mm-dd", "-5"),
        (1e300, "0.00", "1e+300"),
    ],
)
def test_a_number_shows_as_its_format_says(value: float, code: str, shown: str) -> None:
    assert shown_number(value, code) == shown


def test_merged_headings_over_two_rows_are_joined_and_merged_values_stand_in_each_row() -> None:
    book, sheet = _sheet([[], [None, "Annual sales 年销售"], []])
    sheet.merge_cells("B2:F2")
    for place, value in {
        "B4": "Region", "C4": 2023, "E4": 2024, "C5": "Q1", "D5": "Q2", "E5": "Q1", "F5": "Q2",
        "B6": "East", "C6": 1, "D6": 2, "E6": 3, "F6": 4, "C7": 5, "D7": 6, "E7": 7, "F7": 8,
    }.items():  # fmt: skip
        sheet[place] = value
    for merged in ("B4:B5", "C4:D4", "E4:F4", "B6:B7"):
        sheet.merge_cells(merged)
    assert _lines(book)[1:] == [
        "Annual sales 年销售",
        "Region: East; 2023 Q1: 1; 2023 Q2: 2; 2024 Q1: 3; 2024 Q2: 4",
        "Region: East; 2023 Q1: 5; 2023 Q2: 6; 2024 Q1: 7; 2024 Q2: 8",
    ]


def test_tables_parted_by_an_empty_row_have_their_own_headings() -> None:
    rows = [["Pump", "Flow"], ["A", 12], [], ["Valve", "Width"], ["V1", 80], [], ["a remark"]]
    assert _lines(_sheet(rows)[0])[1:] == ["Pump: A; Flow: 12", "Valve: V1; Width: 80", "a remark"]


def test_a_form_and_rows_of_numbers_have_no_headings() -> None:
    form = [["姓名：", "张三", "性别：", "男"], ["年龄：", 30, "城市：", "苏州"]]
    assert _lines(_sheet(form)[0])[1:] == [
        "姓名： | 张三 | 性别： | 男",
        "年龄： | 30 | 城市： | 苏州",
    ]
    assert _lines(_sheet([[1, 2], [3, 4]])[0])[1:] == ["1 | 2", "3 | 4"]


def test_headings_without_values_are_still_there() -> None:
    lines = _lines(_sheet([["Name", "Due", "Paid"], ["A", "x", None]])[0])
    assert lines[1:] == ["Name | Due | Paid", "Name: A; Due: x"]


def test_a_formula_that_was_never_calculated_is_reported() -> None:
    document = parse("/b/a.xlsx", _saved(_sheet([["Name", "Sum"], ["A", "=1+1"]])[0]))
    assert document.warnings == (
        "1 cell holds a formula that no program has calculated: "
        "open the file in Excel, save it and index it again",
    )


def test_hidden_sheets_are_read_and_called_hidden() -> None:
    book, _ = _sheet([["a", "b"], ["x", "y"]])
    other = book.create_sheet("价格表")
    other.append(["k", "v"])
    other.append(["fee", 12])
    other.sheet_state = "hidden"
    document = parse("/b/a.xlsx", _saved(book))
    assert "价格表 (hidden sheet)\n\nk: fee; v: 12" in document.text
    assert document.warnings == ("hidden sheet read as well: '价格表'",)


def test_comments_follow_their_sheet() -> None:
    book, sheet = _sheet([["a", "b"], ["x", "y"]])
    sheet["B2"].comment = Comment("not final 未定", "Ann")
    assert _lines(book)[-1] == "Comment (B2): not final 未定"


def test_one_value_in_the_last_corner_costs_nothing() -> None:
    book, sheet = _sheet([["first"]])
    sheet["XFD1048576"] = "last"
    assert _lines(book) == ["Sheet", "first", "last"]


def test_a_very_wide_sheet_keeps_every_column() -> None:
    book, _ = _sheet([[f"h{n}" for n in range(3_000)], [f"v{n}" for n in range(3_000)]])
    document = parse("/b/a.xlsx", _saved(book))
    assert "h2999: v2999" in document.text
    drafts = chunk_document(document, size=500)
    assert all(draft.tokens < 700 for draft in drafts)


def test_an_old_workbook_is_read_with_its_formats() -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("表一")
    for column, name in enumerate(("姓名", "比例", "日期")):
        sheet.write(0, column, name)
    sheet.write(1, 0, "张三")
    sheet.write(1, 1, 0.25, xlwt.easyxf(num_format_str="0%"))
    sheet.write(1, 2, datetime.date(2024, 3, 1), xlwt.easyxf(num_format_str="d/m/yy"))
    sheet.write_merge(3, 3, 0, 2, "remark 备注")
    buffer = io.BytesIO()
    book.save(buffer)
    expected = "表一\n\n姓名: 张三; 比例: 25%; 日期: 2024-03-01\n\nremark 备注"
    assert parse("/b/a.xls", buffer.getvalue()).text == expected
    assert parse("/b/a.xlsx", buffer.getvalue()).text == expected  # a wrong name


def _biff5(rows: list[list[str]], encoding: str, code_page: int | None) -> bytes:
    """A workbook as Excel 5 wrote it, without the OLE2 file around it."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    globals_ = record(0x0809, struct.pack("<HHHH", 0x0500, 0x0005, 0, 0))
    if code_page:
        globals_ += record(0x0042, struct.pack("<H", code_page))
    name = "Sheet1".encode(encoding)
    offset = len(globals_) + 4 + 6 + 1 + len(name) + 4
    globals_ += record(0x0085, struct.pack("<LHB", offset, 0, len(name)) + name) + record(0x0A, b"")
    sheet = record(0x0809, struct.pack("<HHHH", 0x0500, 0x0010, 0, 0))
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            raw = text.encode(encoding)
            sheet += record(0x0204, struct.pack("<HHHH", y, x, 0, len(raw)) + raw)
    return globals_ + sheet + record(0x0A, b"")


@pytest.mark.parametrize(
    ("encoding", "code_page"), [("gbk", 936), ("gbk", None), ("big5", 950), ("cp1252", 1252)]
)
def test_a_workbook_of_before_unicode_is_read_in_its_encoding(
    encoding: str, code_page: int | None
) -> None:
    words = {
        "gbk": ["设备名称", "安装地点", "蓝桥泵站离心泵", "清河北岸机房"],
        "big5": ["設備名稱", "安裝地點", "藍橋泵站離心泵", "清河北岸機房"],
        "cp1252": ["Größe", "Straße", "drei Mühlen", "Äußere Gasse"],
    }[encoding]
    data = _biff5([words[:2], words[2:]], encoding, code_page)
    line = f"{words[0]}: {words[2]}; {words[1]}: {words[3]}"
    assert line in parse("/b/old.xls", data).text


def test_files_that_are_only_called_xls_are_read_as_what_they_are() -> None:
    page = (
        "<html><body><table><tr><td>姓名</td><td>City</td></tr><tr><td>张三</td><td>Wuxi</td></tr>"
    )
    assert "张三 | Wuxi" in parse("/b/a.xls", page.encode("gbk")).text
    assert (
        "姓名: 张三; City: Wuxi" in parse("/b/a.xls", "姓名\tCity\n张三\tWuxi\n".encode("gbk")).text
    )
    utf16 = "姓名\tCity\n张三\tWuxi\n".encode("utf-16")
    assert "姓名: 张三; City: Wuxi" in parse("/b/a.xls", utf16).text
    space = "urn:schemas-microsoft-com:office:spreadsheet"
    xml = (
        f'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?><Workbook xmlns="{space}" '
        f'xmlns:ss="{space}"><Styles><Style ss:ID="p"><NumberFormat ss:Format="Percent"/></Style>'
        '</Styles><Worksheet ss:Name="表"><Table><Row><Cell><Data ss:Type="String">名</Data></Cell>'
        '<Cell ss:Index="3"><Data ss:Type="String">Share</Data></Cell></Row><Row><Cell>'
        '<Data ss:Type="String">甲</Data></Cell><Cell ss:Index="3" ss:StyleID="p">'
        '<Data ss:Type="Number">0.25</Data></Cell></Row></Table></Worksheet></Workbook>'
    )
    assert parse("/b/a.xls", xml.encode()).text == "表\n\n名: 甲; Share: 25.00%"


def test_locked_and_damaged_files_are_refused_in_one_sentence() -> None:
    whole = _saved(_sheet([["a"]])[0])
    for name, data, reason in (
        ("a.xlsx", write_ole({"EncryptedPackage": b"x"}), "password"),
        ("a.xlsx", whole[:-200], "damaged"),
        ("a.xls", write_ole({"Workbook": b"\x09\x08nonsense"}), "damaged"),
    ):
        with pytest.raises(UnreadableDocument, match=reason) as caught:
            parse(f"/b/{name}", data)
        assert f"'{name}'" in str(caught.value)


def test_a_hit_names_its_sheet(tmp_path: Path) -> None:
    book, sheet = _sheet([["设备", "Interval"], ["离心泵", "18 months"]])
    sheet.title = "检修计划"
    second = book.create_sheet("Prices")
    second.append(["Part", "Price"])
    second.append(["gasket", 12])
    (tmp_path / "plan.xlsx").write_bytes(_saved(book))
    kb = KnowledgeBase.open(tmp_path / "kb", settings=Settings(), embedder=HashEmbedder())
    kb.add([tmp_path / "plan.xlsx"])
    (hit,) = kb.keyword_search(["离心泵"]).hits
    assert (hit.title, hit.section) == ("plan.xlsx", "检修计划")
    (hit,) = kb.keyword_search(["gasket"]).hits
    assert hit.section == "Prices"
    assert hit.snippet == "Part: gasket; Price: 12"
