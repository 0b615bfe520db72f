"""The names that uploaded files are kept under."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag.server.upload_names import BadFolder, safe_folder, safe_name


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("fees.txt", "fees.txt"),
        ("年度 费用.docx", "年度 费用.docx"),
        ("../x.txt", "x.txt"),
        ("..\\..\\x.txt", "x.txt"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\plan.md", "plan.md"),
        ("a\0b.txt", "ab.txt"),
        ("..", "file"),
        ("\0", "file"),
        ("dots. . ", "dots"),
        (".bashrc", "_.bashrc"),
        ("con", "_con"),
        ("NUL.tar.gz", "_NUL.tar.gz"),
        ("why?.md", "why？.md"),
        ("notes.txt:hidden", "notes.txt：hidden"),
        ("cafe\u0301.md", "caf\u00e9.md"),
    ],
)
def test_a_name_is_its_last_part_without_what_no_file_may_be_called(
    given_name: str, kept: str
) -> None:
    assert safe_name(given_name) == kept


def test_a_long_chinese_name_is_cut_at_a_character_and_two_of_them_stay_two() -> None:
    one, other = safe_name("测" * 100 + "一.docx"), safe_name("测" * 100 + "二.docx")
    assert one != other
    assert one.startswith("测" * 70) and one.endswith(".docx")
    assert len(one.encode()) <= 255


@given(st.text(max_size=400))
@example("测" * 85)
@example("x" * 300)
@example("\ud800/")
@example("a." + "b" * 300)
def test_every_name_is_one_file_in_its_folder(name: str) -> None:
    kept = safe_name(name)
    assert 0 < len(kept.encode()) <= 255
    assert not set(kept) & set('/\\\0\n<>:"|?*')
    assert not kept.startswith(".") and not kept.endswith((".", " "))


@given(st.text(max_size=60))
def test_a_kept_name_stays_as_it_is(name: str) -> None:
    assert safe_name(safe_name(name)) == safe_name(name)


def test_a_folder_is_parts_of_safe_names() -> None:
    assert safe_folder("") == ""
    assert safe_folder("laws/2026") == "laws/2026"
    assert safe_folder("laws\\nul") == "laws/_nul"


@pytest.mark.parametrize(
    "folder", ["..", "a/../b", "/etc", "\\\\host\\share", "C:/x", "./x", "a/" * 11, "测" * 40]
)
def test_a_folder_that_leads_elsewhere_is_refused(folder: str) -> None:
    with pytest.raises(BadFolder):
        safe_folder(folder)


def test_marks_that_turn_the_way_of_reading_are_taken_out() -> None:
    assert safe_name("report\u202egnp.exe.md") == "reportgnp.exe.md"
    assert safe_name("\u2066a\u2069\u200f.txt") == "a.txt"
