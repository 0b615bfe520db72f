"""A text changed here and there: every mark still means the same words."""

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.documents.document import Code, Document, Heading, Page, Table
from agentic_rag.documents.edits import Edit, edited

LINES = "# A\none\n# B\na | b\n1 | 2\ncode\ntwo\n"


def _document() -> Document:
    at = LINES.index
    return Document(
        "a",
        "A",
        "text/plain",
        LINES,
        headings=(Heading(0, 1, "# A"), Heading(at("# B"), 1, "# B")),
        pages=(Page(0, 1), Page(at("# B"), 2)),
        tables=(Table(at("a |"), at("1 |"), at("code")),),
        code=(Code(at("code"), at("two")),),
    )


def test_what_is_put_in_stands_behind_what_ends_and_before_what_begins() -> None:
    at = LINES.index("code")
    found = edited(_document(), [Edit(at, at, "NEW\n")])
    (table,), (code,) = found.tables, found.code
    assert found.text[table.start : table.end] == "a | b\n1 | 2\n"
    assert found.text[code.start : code.end] == "code\n"
    assert "1 | 2\nNEW\ncode\n" in found.text


def test_a_heading_goes_with_its_line() -> None:
    at = LINES.index("# B")
    found = edited(_document(), [Edit(at, at + 4)])
    assert [h.text for h in found.headings] == ["# A"]
    assert found.text[found.pages[1].start :].startswith("a | b")


@given(st.lists(st.sampled_from(range(7)), unique=True), st.booleans())
def test_headings_tables_and_pages_keep_their_words(lines: list[int], put_in: bool) -> None:
    starts = [0]
    for line in LINES.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits = [
        Edit(starts[n], starts[n], "new\n") if put_in else Edit(starts[n], starts[n + 1])
        for n in sorted(lines)
    ]
    found = edited(_document(), edits)
    for heading in found.headings:
        assert found.text[heading.start :].startswith(heading.text + "\n")
    for table in found.tables:
        assert "new" not in found.text[table.start :].partition("\n")[0]
        assert found.text[table.start : table.end].count("\n") >= 1
    if put_in or 2 not in lines:
        assert found.text[found.pages[1].start :].startswith("# B")
