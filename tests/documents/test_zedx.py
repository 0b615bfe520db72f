"""A zedx: its pages in the order and under the names of its tree; what is wrong with it is told."""

import zipfile
from pathlib import Path

import pytest

from agentic_rag.documents import Document, Problem, Source, find_sources, parse
from agentic_rag.documents.nodetree import MOST_NODES, read_nodetree
from agentic_rag.text.chunking import chunk_document
from tests.documents.zedx_writer import Node, nodetree, page, write_zedx

_MOST = 200_000_000


def _sources(*paths: Path, exclude: tuple[str, ...] = ()) -> list[Source]:
    return [item for item in find_sources(paths, exclude) if isinstance(item, Source)]


def _problems(path: Path) -> list[str]:
    return [item.reason for item in find_sources([path]) if isinstance(item, Problem)]


def _document(source: Source) -> Document:
    return source.finish(parse(source.uri, source.read(_MOST).data, source.folders))


def _inside(zedx: Path) -> list[str]:
    return [source.uri.removeprefix(f"{zedx.as_posix()}/") for source in _sources(zedx)]


def test_pages_stand_below_the_names_of_the_nodes_above_them(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "泵站手册.zedx",
        {
            "documents/b.html": page("<p>The valve opens at 6.1 bar.</p>"),
            "documents/a.html": page("<h1>安装</h1><p>先断电。</p>"),
            "style.css": "body {}",
            "script.js": "1",
            "images/a.png": b"x",
        },
        Node("维护", inner=[Node("安装", "documents/a.html"), Node("Valve", "documents/b.html")]),
    )
    first, second = map(_document, _sources(zedx))
    assert (first.title, first.knowledge_path) == ("安装", ("泵站手册.zedx", "维护"))
    assert first.uri == f"{zedx.as_posix()}/documents/a.html"
    assert (second.title, second.knowledge_path) == ("Valve", ("泵站手册.zedx", "维护"))
    (chunk,) = chunk_document(second)
    assert chunk.section == "泵站手册.zedx › 维护"
    assert _problems(zedx) == []


def test_a_node_whose_page_calls_itself_otherwise_is_part_of_the_path(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"a.html": page("<p>Text.</p>", title="Alarm 4711")},
        Node("Alarms", inner=[Node("Pump stopped", "a.html")]),
    )
    (found,) = map(_document, _sources(zedx))
    assert found.title == "Alarm 4711"
    assert found.knowledge_path == ("m.zedx", "Alarms", "Pump stopped")


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "gbk"])
def test_pages_and_trees_in_chinese_encodings_are_read(tmp_path: Path, charset: str) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {
            "a.html": page("<p>蓝桥泵站每天供水一万吨。</p>", charset=charset),
            "nodetree.xml": nodetree(Node("供水系统", "a.html"), charset=charset),
        },
    )
    (found,) = map(_document, _sources(zedx))
    assert (found.title, found.text.strip()) == ("供水系统", "蓝桥泵站每天供水一万吨。")


@pytest.mark.parametrize(
    "url",
    [
        "documents/Start%20here.html", "documents\\Start here.html", "./documents/start HERE.html",
        "documents/Start here.html#top", "/documents/Start here.html?lang=en",
        "documents/x/../Start here.html", "../../documents/Start here.html",
    ],
)  # fmt: skip
def test_a_url_is_understood_however_it_is_written(tmp_path: Path, url: str) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"documents/Start here.html": page("<p>Text.</p>")},
        Node("Top", inner=[Node("Start", url)]),
    )
    assert [_document(source).title for source in _sources(zedx)] == ["Start"]
    assert _problems(zedx) == []


def test_a_tree_in_a_folder_names_files_from_there(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"book/a.html": page("<p>A.</p>"), "book/NodeTree.xml": nodetree(Node("Alpha", "a.html"))},
    )
    assert [_document(source).title for source in _sources(zedx)] == ["Alpha"]


def test_documents_named_and_missing_are_told_and_others_are_still_read(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"a.html": page("<p>A.</p>"), "more/b.html": page("<p>B.</p>")},
        Node("A", "a.html"),
        Node("Gone", "gone.html"),
        Node("Also gone", "more/gone too.html#x"),
        Node("Only a place", "#here"),
    )
    assert _problems(zedx) == [
        "2 documents that its nodetree.xml names are not in it: gone.html, more/gone too.html"
    ]
    assert [(_document(s).title, s.folders) for s in _sources(zedx)] == [
        ("A", ("m.zedx",)),
        ("b.html", ("m.zedx", "more")),
    ]


def test_names_that_lead_outside_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("<p>secret</p>")
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"../x.html": page("<p>X.</p>"), "/etc/y.html": page("<p>Y.</p>")},
        Node("Out", "../secret.html"),
        Node("Up", "../x.html"),
    )
    before = set(tmp_path.rglob("*"))
    assert _inside(zedx) == ["x.html", "etc/y.html"]
    assert all("secret" not in _document(source).text for source in _sources(zedx))
    assert _problems(zedx) == ["1 document that its nodetree.xml names is not in it: secret.html"]
    assert set(tmp_path.rglob("*")) == before


def test_without_a_tree_pages_are_filed_by_their_folders(tmp_path: Path) -> None:
    zedx = write_zedx(tmp_path / "m.zedx", {"part/a.html": page("<p>A.</p>")})
    assert [source.folders for source in _sources(zedx)] == [("m.zedx", "part")]
    assert _problems(zedx) == ["its nodetree.xml is missing: its pages are filed by their folders"]


def test_a_tree_of_a_million_nodes_costs_neither_time_nor_the_pages(tmp_path: Path) -> None:
    nodes = "<tree><n name='A' url='a.html'/>" + "<n name='b' url='b'/>" * 1_000_000 + "</tree>"
    zedx = write_zedx(tmp_path / "m.zedx", {"a.html": page("<p>A.</p>"), "nodetree.xml": nodes})
    large, missing, source = find_sources([zedx])
    assert isinstance(large, Problem)
    assert large.reason.startswith("its nodetree.xml holds more than 200,000 nodes")
    assert isinstance(missing, Problem)
    assert missing.reason == "1 document that its nodetree.xml names is not in it: b"
    assert isinstance(source, Source)
    assert _document(source).title == "A"
    assert MOST_NODES == 200_000


_BOMB = (
    '<!DOCTYPE tree [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)


_OUTSIDE = "<!DOCTYPE t [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><t><n name='&x;' url='b'/></t>"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (f"{_BOMB}<tree><n name='&i;' url='a.html'/></tree>", "holds entities that would grow"),
        (f"{_BOMB}<tree>&i;<n name='A' url='&i;'/></tree>", "holds entities that would grow"),
        ("<tree><n name='A' url='a.html'>", "is damaged: the pages it names no more are"),
        ("\0\1\2", "is no text"),
        ("<tree>" * 5_000, "is nested too deep (256 levels"),
        (_OUTSIDE, "refers to a file outside of it"),
    ],
    ids=["bomb", "bomb-in-url", "cut", "binary", "deep", "external"],
)
def test_a_hostile_or_damaged_tree_is_told_in_one_sentence(
    tmp_path: Path, tree: str, said: str
) -> None:
    zedx = write_zedx(tmp_path / "m.zedx", {"a.html": page("<p>A.</p>"), "nodetree.xml": tree})
    (told,) = _problems(zedx)
    assert told.startswith(f"its nodetree.xml {said}")
    assert [_document(source).text.strip() for source in _sources(zedx)] == ["A."]


def test_a_url_that_leads_elsewhere_is_named_as_it_is_written(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"a.html": page("<p>A.</p>")},
        Node("A", "a.html"),
        Node("B", "file:///etc/hostname"),
        Node("C", "https://example.com/c.html?x=1"),
    )
    assert _problems(zedx) == [
        "2 documents that its nodetree.xml names are not in it: file:///etc/hostname, "
        "https://example.com/c.html?x=1"
    ]


def test_names_in_a_tree_are_short_and_on_one_line() -> None:
    (found,) = read_nodetree(nodetree(Node("A\nB " + "x" * 5_000, "a.html"))).nodes
    assert found.name.startswith("A B xxx")
    assert len(found.name) == 300


def test_what_stands_on_most_pages_is_left_out_and_so_is_a_line_said_twice(tmp_path: Path) -> None:
    frame = "<div>Pump Manual 7.2</div><p>{}</p><div>Copyright Qinghe Works</div>"
    files: dict[str, str | bytes] = {
        f"{n}.html": page(frame.format(f"Step {n} is to close valve {n}."), title="Pump Manual")
        for n in range(8)
    }
    files["8.html"] = page(
        "<p>Careful.</p><p>Careful.</p><p>The rest.</p>"
        "<table><tr><td>1</td></tr><tr><td>1</td></tr></table>"
    )
    zedx = write_zedx(
        tmp_path / "m.zedx", files, *[Node(f"Page {n}", f"{n}.html") for n in range(9)]
    )
    found = list(map(_document, _sources(zedx)))
    assert found[3].text.rstrip() == "Step 3 is to close valve 3."
    assert found[3].title == "Page 3"
    assert found[8].text.split() == ["Careful.", "The", "rest.", "1", "1"]


def test_what_the_tree_does_not_name_is_read_as_what_it_is_or_told(tmp_path: Path) -> None:
    inner = write_zedx(tmp_path / "i.zedx", {"x.html": page("<p>Deep.</p>")}, Node("X", "x.html"))
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {
            "a.html": page("<p>A.</p>"),
            "more/h.md": "# Hints\n\nOil the hinge.",
            "n.txt": "Plain words.",
            "inner.zedx": inner.read_bytes(),
            "search.json": "{}",
            "data.bin": b"\0\1",
            "a.css": "a {}", "a.js": "1", "a.png": b"x", "a.woff2": b"x", ".hidden/b.md": "no",
        },
        Node("A", "a.html"),
    )  # fmt: skip
    found = [_document(source) for source in _sources(zedx)]
    assert [one.uri.removeprefix(f"{zedx.as_posix()}/") for one in found] == [
        "a.html", "more/h.md", "n.txt", "inner.zedx",
    ]  # fmt: skip
    assert "Oil the hinge." in found[1].text
    assert found[1].knowledge_path == ("m.zedx", "more")
    assert "Deep." in found[3].text
    told = (
        "2 files that its nodetree.xml does not name are not read: search.json, data.bin; "
        "unpack it to index them"
    )
    assert _problems(zedx) == [told]
    packed = parse("given:m.zedx", zedx.read_bytes())
    assert "Oil the hinge." in packed.text
    assert told in packed.warnings
    assert "no" not in packed.text.split()
    assert any(one.startswith("'inner.zedx' in it is not read") for one in packed.warnings)


def test_abbreviations_are_followed_by_what_they_stand_for() -> None:
    body = (
        '<p>The <span class="xref gxref" title="UPF--用户面功能">UPF</span> and the '
        '<span class="xref gxref" title="SMF--Session Management Function">SMF</span>, '
        '<span class="gxref" title="no meaning">X</span>.</p>'
    )
    found = parse("a.html", page(body)).text
    assert found == "The UPF（用户面功能） and the SMF (Session Management Function), X."


def test_a_long_table_of_a_page_repeats_its_heading_row(tmp_path: Path) -> None:
    rows = "".join(f"<tr><td>E{n}</td><td>The pump has fault {n}.</td></tr>" for n in range(80))
    table = f"<table><tr><th>Code</th><th>Meaning</th></tr>{rows}</table>"
    zedx = write_zedx(tmp_path / "m.zedx", {"a.html": page(table)}, Node("Codes", "a.html"))
    (source,) = _sources(zedx)
    chunks = chunk_document(_document(source), size=200, overlap_tokens=40)
    assert len(chunks) > 3
    assert all("Code | Meaning\n" in chunk.text for chunk in chunks)


def test_a_zedx_that_is_no_file_is_one_document(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"a.html": page("<p>Alpha text.</p>"), "b.html": page("<h2>Part</h2><p>Beta text.</p>")},
        Node("First", inner=[Node("A", "a.html"), Node("B", "b.html")]),
        Node("Gone", "c.html"),
    )
    found = parse("given:m.zedx", zedx.read_bytes())
    assert [(h.level, h.text) for h in found.headings] == [
        (1, "First"), (2, "A"), (2, "B"), (4, "Part"),
    ]  # fmt: skip
    assert "Alpha text." in found.text
    assert found.warnings == ("1 document that its nodetree.xml names is not in it: c.html",)


def test_patterns_and_paths_into_a_zedx_hold_as_in_an_archive(tmp_path: Path) -> None:
    zedx = write_zedx(
        tmp_path / "m.zedx",
        {"docs/a.html": page("<p>A.</p>"), "drafts/b.html": page("<p>B.</p>")},
        Node("Top", inner=[Node("A", "docs/a.html"), Node("B", "drafts/b.html")]),
    )
    assert [s.name for s in _sources(zedx, exclude=("drafts/",))] == ["a.html"]
    (one,) = _sources(zedx / "docs" / "a.html")
    assert (one.name, one.folders, one.explicit) == ("a.html", ("m.zedx", "Top"), True)


def test_archives_in_archives_in_a_zedx_are_named_and_not_unpacked(tmp_path: Path) -> None:
    inner = write_zedx(tmp_path / "i.zedx", {"x.html": page("<p>Deep.</p>")}, Node("X", "x.html"))
    outer = write_zedx(
        tmp_path / "o.zedx",
        {"a.html": page("<p>A.</p>"), "i.zedx": inner.read_bytes()},
        Node("A", "a.html"),
        Node("Inner", "i.zedx"),
    )
    found = parse("given:o.zedx", outer.read_bytes())
    assert "Deep." not in found.text
    (warning,) = found.warnings
    assert warning.startswith("'i.zedx' in it is not read: it lies too deep")
    packed = tmp_path / "z.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("o.zedx", outer.read_bytes())
    (source,) = _sources(packed)
    assert "A." in _document(source).text
    found = parse("given:z.zip", packed.read_bytes())
    assert found.warnings == ("archives inside an archive are not read: o.zedx; unpack them",)
