"""Rich text: paragraphs and tables, by its own name or a Word document's."""

import pytest

from agentic_rag.documents import parse

_RTF = (
    b"{\\rtf1\\ansi\\ansicpg936{\\fonttbl{\\f0\\fcharset134 SimSun;}}{\\info{\\title no text}}\\f0 "
    + "".join(f"\\'{byte:02x}" for byte in "蓝桥泵站".encode("gbk")).encode()
    + b"\\par The fee is \\u21313?\\u20108? euros.\\par "
    b"\\trowd Part\\cell Due\\cell\\row \\trowd gasket\\cell May\\cell\\row \\pard After.\\par}"
)


@pytest.mark.parametrize("name", ["a.rtf", "a.doc", "a.docx", "a.txt", "a"])
def test_rich_text_is_read_whatever_it_is_called(name: str) -> None:
    document = parse(f"/docs/{name}", _RTF)
    assert document.text == (
        "蓝桥泵站\n\nThe fee is 十二 euros.\n\nPart | Due\ngasket | May\n\nAfter."
    )
    (mark,) = document.tables
    assert document.text[mark.start : mark.body] == "Part | Due\n"
    assert document.media_type == "application/rtf"


def test_rich_text_cut_short_gives_what_is_there() -> None:
    assert "蓝桥泵站" in parse("/docs/a.rtf", _RTF[: _RTF.index(b"euros")]).text
