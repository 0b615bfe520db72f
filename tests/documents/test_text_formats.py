"""Plain text, Markdown, reStructuredText, HTML and source code."""

import pytest

from agentic_rag.documents import Document, UnreadableDocument, UnsupportedDocument, parse


def _parse(uri: str, text: str) -> Document:
    return parse(uri, text.encode())


def _outline(document: Document) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in document.headings]


def _heading_lines(document: Document) -> list[str]:
    return [document.text[heading.start :].split("\n")[0] for heading in document.headings]


@pytest.mark.parametrize("suffix", ["txt", "md", "csv"])
def test_gbk_files_with_windows_line_ends_hold_their_phrase_exactly(suffix: str) -> None:
    text = "名称,地点\r\n蓝桥泵站,北京\r\n" if suffix == "csv" else "蓝桥泵站\r\n"
    document = parse(f"/docs/a.{suffix}", text.encode("gbk"))
    assert "蓝桥泵站" in document.text
    assert "\r" not in document.text
    assert "�" not in document.text


def test_folders_become_the_knowledge_path() -> None:
    document = parse("/docs/a/b/c.txt", b"x", ("a", "b"))
    assert document.knowledge_path == ("a", "b")
    assert document.title == "c.txt"


def test_an_empty_file_is_a_document_that_says_so() -> None:
    for name in ("a.txt", "a.pdf", "a.json", "a.html", "a.csv", "a"):
        document = parse(name, b"\r\n ")
        assert (document.text, document.warnings) == ("", ("the file is empty",))


def test_markdown_headings_of_both_kinds_and_no_others() -> None:
    document = _parse(
        "a.md",
        "# The *whole* `x_y`\n\nPart\n----\n\n## A [link](http://x) and \\#1 ##\n"
        "```\n# comment\n```\n~~~sh\n## comment\n~~~\n    # indented\n- item\n---\n"
        "two lines\nof words\n---\n<!--\n# hidden\n-->\n####### seven\n#hashtag\n### Last\n",
    )
    assert document.title == "The whole x_y"
    assert _outline(document) == [(2, "Part"), (2, "A link and #1"), (3, "Last")]
    assert _heading_lines(document)[0] == "Part"


def test_markdown_text_stays_as_written() -> None:
    text = "# A\n\n**bold**  \n| a | b |\n|---|---|\n"
    assert _parse("a.md", text).text == text


def test_front_matter_is_metadata_and_leaves_the_text() -> None:
    document = _parse(
        "a.md", "---\ntitle: 手册\nyear: 2024\ntags: [a, b]\nnested: {a: 1}\n---\n# 手册\n\n## B\n"
    )
    assert document.title == "手册"
    assert document.metadata == {"year": 2024, "tags": "a, b"}
    assert document.text == "# 手册\n\n## B\n"
    assert _outline(document) == [(2, "B")]


def test_a_line_drawn_at_the_start_is_no_front_matter() -> None:
    text = "---\nJust words.\n---\nMore.\n"
    assert _parse("a.md", text).text == text


def test_a_file_of_several_parts_is_not_named_after_the_first() -> None:
    document = _parse("a.md", "# One\n\n# Two\n")
    assert document.title == "a.md"
    assert _outline(document) == [(1, "One"), (1, "Two")]


def test_rst_levels_follow_the_order_of_appearance() -> None:
    document = _parse(
        "a.rst",
        "======\n泵站手册\n======\n\nFirst\n=====\n\ntext\n\nDeeper ``x``\n----------\n\n::\n\n"
        "   Code\n   ----\n\n----\n\nSecond\n======\n",
    )
    assert document.title == "泵站手册"
    assert _outline(document) == [(2, "First"), (3, "Deeper x"), (2, "Second")]


def test_html_is_what_a_reader_sees() -> None:
    document = _parse(
        "a.html",
        "<title>T &amp; U</title><style>p{}</style><nav>menu</nav><h1>Big <em>one</em></h1>"
        "<p>Hello\n world<br>again</p><ul><li>one<li>two</ul><p hidden>no</p><script>no()</script>"
        "<table><tr><th>a<th>b<tr><td>1<td><p>2</p></table><pre>\ndef f():\n    return 1\n</pre>"
        "<h2>中文\n标题</h2><!-- no --><p>最后</p>",
    )
    assert document.title == "T & U"
    assert document.text == (
        "Big one\n\nHello world\nagain\n\none\ntwo\n\na | b\n1 | 2\n\n"
        "def f():\n    return 1\n\n中文标题\n\n最后"
    )
    assert _outline(document) == [(1, "Big one"), (2, "中文标题")]
    assert _heading_lines(document) == ["Big one", "中文标题"]


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("My <Page>", "My <Page>"),
        ("a &lt; b <i>c</i>", "a < b <i>c</i>"),
        ("<!-- x --> y", "<!-- x --> y"),
    ],
)
def test_what_looks_like_a_tag_in_an_html_title_is_text(written: str, title: str) -> None:
    document = _parse("a.html", f"<title>{written}</title><p>Words</p>")
    assert (document.title, document.text) == (title, "Words")


def test_a_table_that_lays_out_the_page_is_no_row() -> None:
    document = _parse(
        "a.html", "<table><tr><td><h2>Part</h2><p>a</p><p>b</p></td><td>side</td></tr></table>"
    )
    assert document.text == "Part\n\na\n\nb\n\nside"


@pytest.mark.parametrize("charset", ["gb2312", "GBK", "big5", "iso-8859-1"])
def test_the_charset_of_a_page_is_obeyed(charset: str) -> None:
    text = {"big5": "藍橋", "iso-8859-1": "é"}.get(charset, "镕㐂")
    written = {"big5": "big5", "iso-8859-1": "cp1252"}.get(charset, "gb18030")
    page = f'<html><head><meta charset="{charset}"></head><body>{text}</body></html>'
    assert parse("a.htm", page.encode(written)).text == text


def test_a_page_nested_very_deeply_is_read() -> None:
    assert _parse("a.html", "<div>" * 5_000 + "deep").text == "deep"


def test_unclosed_markup_takes_no_quadratic_time() -> None:
    assert parse("a.html", b"words" + b"<a " * 50_000).text.startswith("words")
    assert parse("a.html", b"words" + b"<!--" * 50_000).text.startswith("words")


def test_python_classes_and_functions_are_headings() -> None:
    document = _parse(
        "a.py",
        "class A:\n    async def f(self):\n        def inner(): ...\n\n    def g(self): ...\n\n"
        "def h():\n    def inner(): ...\n",
    )
    assert document.title == "a.py"
    assert _outline(document) == [(1, "class A"), (2, "def f"), (2, "def g"), (1, "def h")]


def test_other_code_is_taken_as_it_is() -> None:
    for name in ("a.go", "a.ts", "a.sql", "a.yaml", "a.R", "Makefile", "a.unknown"):
        document = _parse(name, "x = 1\n\ty\n")
        assert document.text == "x = 1\n\ty\n"
        assert document.headings == ()


def test_a_coding_cookie_is_obeyed() -> None:
    data = "# -*- coding: gbk -*-\n# 是\n".encode("gbk")
    assert parse("a.py", data).text.endswith("是\n")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pages", b"PK\x03\x04\x00\x00"),
        ("a.ogg", b"OggS\x00\x02\x00\x00"),
        ("a.ps", b"%!PS-Adobe"),
    ],
)
def test_an_unknown_binary_type_is_unsupported_and_named(name: str, data: bytes) -> None:
    with pytest.raises(UnsupportedDocument) as caught:
        parse(f"/docs/{name}", data)
    assert str(caught.value).startswith(
        f"'{name[1:]}' files are not supported; supported are text (.txt), Markdown"
    )


def test_a_binary_file_without_a_suffix_is_named_by_its_content() -> None:
    with pytest.raises(UnsupportedDocument, match="'song' is an Ogg recording"):
        parse("/docs/song", b"OggS\x00\x02\x00\x00")


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02" * 9, b"\x80\x81\xff\xfe\xfa", b"GIF89a\x00\x00\x01"]
)
def test_a_binary_file_with_a_text_suffix_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableDocument, match=r"'a\.txt'"):
        parse("/docs/a.txt", data)


def test_damaged_places_in_a_long_file_are_reported() -> None:
    document = parse("a.txt", ("蓝桥泵站。" * 1_000).encode() + b"\xff")
    assert document.text == "蓝桥泵站。" * 1_000
    assert document.warnings == ("1 damaged place left out: invalid in utf-8",)


@pytest.mark.parametrize(
    "attribute", ["hidden", 'style="display: none"', 'style="color:red;VISIBILITY:hidden"']
)
def test_what_an_html_page_hides_is_left_out(attribute: str) -> None:
    page = f"<p>Seen.</p><p {attribute}>Unseen <b>word</b>.</p><p style='color:red'>Red.</p>"
    text = parse("a.html", page.encode()).text
    assert "Unseen" not in text and "word" not in text
    assert "Seen." in text and "Red." in text
