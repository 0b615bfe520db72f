"""EPUB books, made by hand: order, titles, what is missing, what is locked."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentic_rag.documents import Document, UnreadableDocument, parse
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.text.chunking import chunk_document
from tests.knowledge_base.embedders import HashEmbedder

_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)
_METADATA = (
    '<dc:title>泵站之书</dc:title><dc:creator id="a">王小明</dc:creator>'
    "<dc:creator>Ann Lee</dc:creator><dc:language>zh</dc:language>"
)


def _book(
    chapters: Mapping[str, str | bytes | None],
    *,
    nav: str = "",
    ncx: str = "",
    extra: Mapping[str, str] | None = None,
    metadata: str = _METADATA,
) -> bytes:
    """A book of chapters by file name, in the order given; None leaves the file out."""
    manifest = [
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(chapters)
    ]
    files: dict[str, str | bytes] = {"META-INF/container.xml": _CONTAINER, **(extra or {})}
    if nav:
        manifest.append(
            '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        )
        files["OEBPS/nav.xhtml"] = (
            '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
            f'<body><nav epub:type="toc">{nav}</nav></body></html>'
        )
    if ncx:
        manifest.append('<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>')
        files["OEBPS/toc.ncx"] = (
            '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" '
            '"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
            f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{ncx}</navMap></ncx>'
        )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    files["OEBPS/book.opf"] = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{metadata}</metadata>'
        f'<manifest>{"".join(manifest)}</manifest><spine toc="ncx">{spine}</spine></package>'
    )
    for name, text in chapters.items():
        if text is not None:
            files[f"OEBPS/{name.replace('%20', ' ')}"] = text
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def _page(body: str, title: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head>'
        f"<body>{body}</body></html>"
    )


def _sections(document: Document) -> dict[str, str]:
    return {
        draft.text[s.start : s.end].strip(): s.section
        for draft in chunk_document(document)
        for s in draft.sentences
    }


def test_chapters_come_in_reading_order_with_their_own_headings() -> None:
    data = _book(
        {
            "z.xhtml": _page("<h1>第一章 水源</h1><p>水来自清河。</p>", "第一章 水源"),
            "a%20b.xhtml": _page("<h1>Two</h1><h2>Pumps</h2><p>Three pumps run.</p>", "Two"),
        },
        nav='<ol><li><a href="z.xhtml">第一章 水源</a></li><li><a href="a%20b.xhtml">Two</a></ol>',
    )
    document = parse("/b/book.epub", data)
    assert document.title == "泵站之书"
    assert document.metadata == {"author": "王小明, Ann Lee", "language": "zh"}
    assert document.text == ("第一章 水源\n\n水来自清河。\n\nTwo\n\nPumps\n\nThree pumps run.\n")
    sections = _sections(document)
    assert sections["水来自清河。"] == "第一章 水源"
    assert sections["Three pumps run."] == "Two › Pumps"
    assert document.warnings == ()


def test_titles_of_the_table_of_contents_stand_where_a_chapter_marks_none() -> None:
    ncx = (
        '<navPoint><navLabel><text>Part One</text></navLabel><content src="part.xhtml"/>'
        '<navPoint><navLabel><text>第一章　起点</text></navLabel><content src="one.xhtml"/>'
        "</navPoint>"
        '<navPoint><navLabel><text>第二章</text></navLabel><content src="one.xhtml#b"/></navPoint>'
        "</navPoint>"
    )
    data = _book(
        {
            "part.xhtml": _page("<p>Words of the part.</p>"),
            "one.xhtml": _page(
                '<p class="t">第一章 起点</p><p>水从山来。</p><p id="b">第二章</p><p>水到城里。</p>'
            ),
        },
        ncx=ncx,
    )
    document = parse("/b/book.epub", data)
    assert [(h.level, h.text) for h in document.headings] == [
        (1, "Part One"),
        (2, "第一章 起点"),
        (2, "第二章"),
    ]
    sections = _sections(document)
    assert sections["Words of the part."] == "Part One"
    assert sections["水从山来。"] == "Part One › 第一章 起点"
    assert sections["水到城里。"] == "Part One › 第二章"
    assert document.text.count("第一章") == 1


def test_missing_and_damaged_chapters_are_named_and_the_rest_is_read() -> None:
    data = _book(
        {
            "one.xhtml": _page("<p>One.</p>"),
            "two.xhtml": None,
            "three.xhtml": b"\x00\x01\x02" * 30,
            "four.xhtml": "<p>Unclosed <b>four.",
        }
    )
    document = parse("/b/book.epub", data)
    assert document.text == "One.\n\nUnclosed four.\n"
    assert document.warnings == (
        "a chapter is damaged and left out: OEBPS/three.xhtml",
        "chapters missing in the file: OEBPS/two.xhtml",
    )


def _encryption(*references: tuple[str, str]) -> dict[str, str]:
    entries = "".join(
        f'<enc:EncryptedData><enc:EncryptionMethod Algorithm="{algorithm}"/><enc:CipherData>'
        f'<enc:CipherReference URI="{uri}"/></enc:CipherData></enc:EncryptedData>'
        for uri, algorithm in references
    )
    return {
        "META-INF/encryption.xml": '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        f'container" xmlns:enc="http://www.w3.org/2001/04/xmlenc#">{entries}</encryption>'
    }


def test_a_locked_book_says_so_and_scrambled_fonts_do_no_harm() -> None:
    chapters = {"one.xhtml": _page("<p>One.</p>")}
    aes = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    locked = _book(chapters, extra=_encryption(("OEBPS/one.xhtml", aes)))
    with pytest.raises(UnreadableDocument, match=r"'book\.epub' is locked .*DRM"):
        parse("/b/book.epub", locked)
    font = _encryption(("OEBPS/a.ttf", "http://www.idpf.org/2008/embedding"))
    assert parse("/b/book.epub", _book(chapters, extra=font)).text == "One.\n"


def test_a_book_of_pictures_has_no_text_and_says_so() -> None:
    data = _book({"one.xhtml": _page('<img src="1.jpg" alt=""/>')})
    assert parse("/b/comic.epub", data).warnings == ("no text in it: its pages are pictures",)


def test_damaged_books_are_named() -> None:
    data = _book({"one.xhtml": _page("<p>One.</p>")})
    for broken in (data[:-30], b"no zip at all", data.replace(b"book.opf", b"look.txt")):
        with pytest.raises(UnreadableDocument, match=r"book\.epub"):
            parse("/b/book.epub", broken)


def test_entities_of_the_package_are_not_expanded() -> None:
    data = _book({"one.xhtml": _page("<p>One.</p>")}, metadata="<dc:title>&x;Book</dc:title>")
    bomb = '<!DOCTYPE package [<!ENTITY x SYSTEM "file:///etc/passwd">]><package '
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            new.writestr(name, text.replace("<package ", bomb))
    document = parse("/b/book.epub", packed.getvalue())
    assert "root:" not in document.title
    assert document.text == "One.\n"


def test_a_book_under_another_name_is_a_book() -> None:
    data = _book({"one.xhtml": _page("<p>One.</p>")})
    assert parse("/b/book.zip", data).title == "泵站之书"
    assert parse("/b/book", data).title == "泵站之书"


def test_a_book_is_found_by_its_chapter(tmp_path: Path) -> None:
    book = tmp_path / "docs" / "book.epub"
    book.parent.mkdir()
    book.write_bytes(_book({"one.xhtml": _page("<h1>Water</h1><p>The river is clear.</p>")}))
    kb = KnowledgeBase.open(tmp_path / "kb", embedder=HashEmbedder())
    kb.add(book.parent)
    (hit,) = kb.keyword_search("river").hits
    assert (hit.title, hit.section, hit.uri) == ("泵站之书", "Water", book.as_posix())
