"""ZIP archives as folders: names, what is left out, what is refused."""

import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentic_rag.documents import Problem, Source, UnreadableDocument, find_sources, parse
from agentic_rag.documents.archives import safe_paths
from agentic_rag.documents.source import TooLarge
from agentic_rag.text.chunking import chunk_document

_MOST = 200_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def _zip(path: Path, files: Mapping[str | zipfile.ZipInfo, str | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _named(path: Path, names: Sequence[bytes]) -> Path:
    """An archive whose names are these bytes, without the mark of UTF-8."""
    places = {f"{number:03}".ljust(len(name), "x"): name for number, name in enumerate(names)}
    data = _zip(path, {place: f"text of {place}" for place in places}).read_bytes()
    for place, name in places.items():
        data = data.replace(place.encode(), name)
    path.write_bytes(data)
    return path


def _sources(*paths: Path, exclude: Sequence[str] = ()) -> list[Source]:
    return [item for item in find_sources(paths, exclude) if isinstance(item, Source)]


def _problems(*paths: Path) -> list[Problem]:
    return [item for item in find_sources(paths) if isinstance(item, Problem)]


def _inside(archive: Path, exclude: Sequence[str] = ()) -> list[str]:
    prefix = f"{archive.as_posix()}/"
    return [source.uri.removeprefix(prefix) for source in _sources(archive, exclude=exclude)]


def test_the_files_of_an_archive_are_sources_below_its_path(root: Path) -> None:
    archive = _zip(root / "sub/x.zip", {"a/readme.md": "# A", "b/readme.md": "# B", "c.txt": "C"})
    (root / "z.txt").write_text("Z")
    sources = _sources(root)
    assert [(s.uri, s.name, s.folders) for s in sources] == [
        (f"{archive}/a/readme.md", "readme.md", ("sub", "x.zip", "a")),
        (f"{archive}/b/readme.md", "readme.md", ("sub", "x.zip", "b")),
        (f"{archive}/c.txt", "c.txt", ("sub", "x.zip")),
        (f"{root}/z.txt", "z.txt", ()),
    ]
    assert [s.read(_MOST).data for s in sources] == [b"# A", b"# B", b"C", b"Z"]
    first = sources[0]
    assert (first.size, first.mtime_ns, first.path, first.explicit) == (
        3,
        archive.stat().st_mtime_ns,
        archive,
        False,
    )
    assert _sources(archive)[0].folders == ("x.zip", "a")


@pytest.mark.parametrize("charset", ["gbk", "utf-8", "big5"])
def test_names_without_the_mark_of_utf_8_are_read(root: Path, charset: str) -> None:
    name = "測試資料夾/報告.txt" if charset == "big5" else "测试文件夹/二〇二四年报告.txt"
    archive = _named(root / "x.zip", [name.encode(charset)])
    assert _inside(archive) == [name]


def test_a_single_short_name_in_gbk_is_read(root: Path) -> None:
    assert _inside(_named(root / "x.zip", ["报告.txt".encode("gbk")])) == ["报告.txt"]


def test_names_of_dos_are_read_by_code_page_437(root: Path) -> None:
    assert _inside(_named(root / "x.zip", ["café über.txt".encode("cp437")])) == ["café über.txt"]


def test_names_that_lead_outside_stay_inside(root: Path) -> None:
    names = [
        "../x.txt", "..\\x.txt", "/etc/passwd.txt", "C:\\Users\\a.txt", "a/../../b.txt", "./c.txt",
        "a//d.txt", "n\0ul.txt", "..", "文" * 100 + ".txt",
    ]  # fmt: skip
    safe = safe_paths(names)
    assert safe[:9] == [
        "x.txt", "x (2).txt", "etc/passwd.txt", "Users/a.txt", "a/b.txt", "c.txt", "a/d.txt",
        "nul.txt", "file",
    ]  # fmt: skip
    assert len(safe[9].encode()) <= 255
    assert safe[9].endswith("文.txt")
    archive = _zip(root / "x.zip", {"../x.txt": "up", "/etc/y.txt": "root", "..\\z.txt": "dos"})
    before = set(root.parent.rglob("*"))
    assert _inside(archive) == ["x.txt", "etc/y.txt", "z.txt"]
    assert [s.read(_MOST).data for s in _sources(archive)] == [b"up", b"root", b"dos"]
    assert set(root.parent.rglob("*")) == before


def test_of_a_name_that_stands_twice_the_later_file_is_read(root: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        archive = root / "x.zip"
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("a.txt", "old")
            opened.writestr("b.txt", "b")
            opened.writestr("a.txt", "new")
    assert [(s.name, s.read(_MOST).data) for s in _sources(archive)] == [
        ("b.txt", b"b"),
        ("a.txt", b"new"),
    ]


def test_clutter_hidden_files_and_what_is_excluded_are_left_out(root: Path) -> None:
    archive = _zip(
        root / "x.zip",
        {
            "__MACOSX/._a.txt": "x",
            ".DS_Store": "x",
            ".git/config": "x",
            "node_modules/a.js": "x",
            "drafts/a.txt": "x",
            "a.log": "x",
            "keep.txt": "x",
        },
    )
    assert _inside(archive, ["drafts/", "*.log"]) == ["keep.txt"]
    assert _sources(root, exclude=["*.zip"]) == []
    assert _sources(root, exclude=["x.zip/"]) == []
    assert [s.name for s in _sources(root, exclude=["x.zip/*", "!x.zip/a.log"])] == ["a.log"]


def test_links_are_not_followed(root: Path) -> None:
    link = zipfile.ZipInfo("link.txt")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = _zip(root / "x.zip", {link: "/etc/passwd", "a.txt": "A"})
    assert _inside(archive) == ["a.txt"]
    (problem,) = _problems(archive)
    assert problem == Problem(f"{archive}/link.txt", "it is a link inside an archive", True)


def test_files_with_a_password_are_one_sentence_and_the_others_are_read(root: Path) -> None:
    archive = _zip(root / "x.zip", {"a.txt": "A", "b.txt": "B", "c.txt": "C"})
    data = bytearray(archive.read_bytes())
    at = 0
    for name in (b"a.txt", b"b.txt"):  # the flag stands before the name in the directory
        at = data.index(b"PK\x01\x02", at + 1)
        assert data[at + 46 : at + 51] == name
        data[at + 8] |= 1
    archive.write_bytes(data)
    assert _inside(archive) == ["c.txt"]
    (problem,) = _problems(archive)
    assert problem.reason == (
        "2 of its 3 files need a password: a.txt, b.txt; unpack it and index the folder"
    )


def test_a_damaged_archive_is_one_sentence_and_the_rest_is_read(root: Path) -> None:
    archive = _zip(root / "x.zip", {"a.txt": "A" * 500})
    archive.write_bytes(archive.read_bytes()[:-40])
    (root / "b.txt").write_text("B")
    assert [s.name for s in _sources(root)] == ["b.txt"]
    (problem,) = _problems(root)
    assert problem.uri == archive.as_posix()
    assert problem.reason.startswith("'x.zip' is damaged or was cut short")


def test_a_damaged_file_in_an_archive_does_not_stop_the_others(root: Path) -> None:
    archive = root / "x.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("a.txt", "AAAA stored")
        opened.writestr("b.txt", "B")
    archive.write_bytes(archive.read_bytes().replace(b"AAAA", b"AXAA"))
    first, second = _sources(archive)
    with pytest.raises(UnreadableDocument, match=r"'x\.zip' is damaged"):
        first.read(_MOST)
    assert second.read(_MOST).data == b"B"


def test_a_bomb_is_refused_before_anything_is_unpacked(root: Path) -> None:
    archive = _zip(root / "x.zip", {f"{n}.txt": b"\0" * 20_000_000 for n in range(4)})
    assert _inside(archive) == []
    (problem,) = _problems(archive)
    assert "it would unpack to" in problem.reason
    large = _zip(root / "y.zip", {"a.txt": b"a" * 3_000_000})
    (source,) = _sources(large)
    with pytest.raises(TooLarge, match=r"larger than 1 MB; raise index\.max_file_mb"):
        source.read(1_000_000)


def test_an_archive_in_an_archive_is_one_document_with_a_heading_a_file(root: Path) -> None:
    core = io.BytesIO()
    with zipfile.ZipFile(core, "w") as opened:
        opened.writestr("deep.txt", "Too deep.")
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as opened:
        opened.writestr("docs/pump.md", "# Pump\n\nThe inner pump.")
        opened.writestr("core.zip", core.getvalue())
        opened.writestr("a.exe", b"MZ\x90\x00\x03")
    archive = _zip(root / "x.zip", {"inner.zip": inner.getvalue()})
    (source,) = _sources(archive)
    document = parse(source.uri, source.read(_MOST).data)
    assert document.title == "inner.zip"
    sections = [s.section for d in chunk_document(document) for s in d.sentences]
    assert sections[-1] == "docs/pump.md › Pump"
    assert document.warnings == (
        "1 file of a type not supported in it: a.exe",
        "archives inside an archive are not read: core.zip; unpack them",
    )


def test_what_is_named_zip_but_is_another_file_is_taken_as_that(root: Path) -> None:
    (root / "a.zip").write_bytes(b"%PDF-1.4 a PDF")
    (root / "page.zip").write_bytes(b"<html>not found</html>")
    sources = _sources(root)
    assert [s.name for s in sources] == ["a.zip", "page.zip"]
    with pytest.raises(UnreadableDocument, match=r"'page\.zip' is damaged or was cut short"):
        parse(sources[1].uri, sources[1].read(_MOST).data)


def test_an_archive_without_a_suffix_is_one_and_office_files_are_none(root: Path) -> None:
    _zip(root / "backup", {"a.txt": "A"})
    _zip(root / "b.jar", {"a.txt": "A"})
    _zip(root / "c.zip", {"[Content_Types].xml": "<Types/>", "word/document.xml": "<w/>"})
    assert [s.uri.removeprefix(f"{root}/") for s in _sources(root)] == [
        "b.jar",
        "backup/a.txt",
        "c.zip",
    ]


def test_a_path_that_leads_into_an_archive_names_what_is_there(root: Path) -> None:
    archive = _zip(root / "x.zip", {"a/one.txt": "1", "a/two.txt": "2", "b.txt": "B"})
    assert [s.name for s in _sources(archive / "a")] == ["one.txt", "two.txt"]
    (one,) = _sources(archive / "a/one.txt", archive / "a/one.txt")
    assert (one.uri, one.explicit) == (f"{archive}/a/one.txt", True)
    (problem,) = _problems(archive / "nothing.txt")
    assert problem == Problem(f"{archive}/nothing.txt", "'x.zip' holds no such file")
