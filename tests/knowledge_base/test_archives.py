"""Archives in a knowledge base: found by their files, kept in step, removed as a whole."""

import os
import time
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path

import pytest

from agentic_rag.knowledge_base import KnowledgeBase, UnknownDocument
from tests.cli.running import run_arag
from tests.documents.msg_writer import Attached, write_msg
from tests.documents.pdf_writer import write_pdf
from tests.knowledge_base.embedders import HashEmbedder


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def _zip(path: Path, files: Mapping[str, str | bytes], age: float = 100) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    when = time.time() - age
    os.utime(path, (when, when))
    return path


def _found(kb: KnowledgeBase, word: str) -> list[str]:
    return [hit.uri for hit in kb.keyword_search(word, 50).hits]


def test_a_file_in_an_archive_is_found_and_cited_by_its_path(kb: KnowledgeBase, docs: Path) -> None:
    pages = write_pdf([["One."], ["The pump is on page two."]])
    archive = _zip(docs / "x.zip", {"图纸/plan.pdf": pages, "a.md": "# A\n\nAlpha text."})
    report = kb.add(docs)
    assert len(report.added) == 2
    (hit,) = kb.keyword_search("on page two").hits
    assert (hit.uri, hit.page, hit.section) == (f"{archive}/图纸/plan.pdf", 2, "x.zip › 图纸")
    assert _found(kb, "Alpha") == [f"{archive}/a.md"]


def test_an_unchanged_archive_is_not_unpacked_again(
    kb: KnowledgeBase, docs: Path, embedder: HashEmbedder
) -> None:
    archive = _zip(docs / "x.zip", {f"{n}.txt": f"Text number {n}." for n in range(5)})
    kb.add(docs)
    asked = len(embedder.texts)
    data = archive.read_bytes().replace(b"Text", b"XXXX")  # its files could not be read now
    stamp = archive.stat().st_mtime_ns
    archive.write_bytes(data)
    os.utime(archive, ns=(stamp, stamp))
    report = kb.add(docs)
    assert [len(report.unchanged), len(report.failed)] == [5, 0]
    assert len(embedder.texts) == asked


def test_files_of_one_name_in_two_folders_of_an_archive_are_two_documents(
    kb: KnowledgeBase, docs: Path
) -> None:
    archive = _zip(
        docs / "x.zip", {"a/readme.md": "The alpha text.", "b/readme.md": "The beta text."}
    )
    kb.add(docs)
    _zip(archive, {"b/readme.md": "The beta text."}, age=50)
    report = kb.add(docs)
    assert report.gone == (f"{archive}/a/readme.md",)
    assert [len(report.unchanged), len(report.updated)] == [1, 0]
    assert _found(kb, "alpha") == [f"{archive}/a/readme.md"]
    report = kb.add(docs, sync=True)
    assert [o.uri for o in report.removed] == [f"{archive}/a/readme.md"]
    assert _found(kb, "alpha") == []
    assert _found(kb, "beta") == [f"{archive}/b/readme.md"]


def test_names_that_lead_outside_are_indexed_inside(kb: KnowledgeBase, docs: Path) -> None:
    archive = _zip(docs / "x.zip", {"../../up.txt": "Up text.", "/etc/root.txt": "Root text."})
    before = set(docs.parent.rglob("*"))
    kb.add(docs)
    assert _found(kb, "Up text") == [f"{archive}/up.txt"]
    assert _found(kb, "Root text") == [f"{archive}/etc/root.txt"]
    new = set(docs.parent.rglob("*")) - before
    assert all(path.is_relative_to(kb.directory) for path in new)


def test_an_archive_that_is_gone_takes_its_files_along(kb: KnowledgeBase, docs: Path) -> None:
    archive = _zip(docs / "x.zip", {"a.txt": "Alpha.", "b.txt": "Beta."})
    kb.add(docs)
    archive.unlink()
    assert kb.add(docs).gone == (f"{archive}/a.txt", f"{archive}/b.txt")
    assert len(kb.add(archive, sync=True).removed) == 2
    assert kb.documents() == []


def test_files_of_an_archive_that_is_damaged_or_excluded_stay(
    kb: KnowledgeBase, docs: Path
) -> None:
    archive = _zip(docs / "x.zip", {"a.txt": "Alpha."})
    kb.add(docs)
    assert kb.add(docs, sync=True, exclude=["*.zip"]).removed == ()
    whole = archive.read_bytes()
    for damaged in (whole[:-30], b""):
        archive.write_bytes(damaged)
        report = kb.add(docs, sync=True)
        assert report.removed == ()
        assert len(report.failed) + len(report.empty) == 1
        assert _found(kb, "Alpha") == [f"{archive}/a.txt"]
    archive.write_bytes(whole)
    report = kb.add(docs, sync=True)
    assert [o.uri for o in report.removed] == [archive.as_posix()]  # what was empty is whole now
    assert _found(kb, "Alpha") == [f"{archive}/a.txt"]


def test_a_file_that_failed_in_an_archive_is_tried_again(kb: KnowledgeBase, docs: Path) -> None:
    archive = _zip(docs / "x.zip", {"sub/a.pdf": b"%PDF-1.4 nothing more", "b.txt": "Beta."})
    assert [o.uri for o in kb.add(docs).failed] == [f"{archive}/sub/a.pdf"]
    _zip(archive, {"sub/a.pdf": write_pdf([["Whole now."]]), "b.txt": "Beta."}, age=50)
    report = kb.retry_failed()
    assert [o.uri for o in report.updated] == [f"{archive}/sub/a.pdf"]
    (hit,) = kb.keyword_search("Whole now").hits
    assert hit.section == "x.zip › sub"


def test_removing_an_archive_removes_its_files(kb: KnowledgeBase, docs: Path) -> None:
    archive = _zip(docs / "x.zip", {"a.txt": "Alpha.", "sub/b.txt": "Beta."})
    other = docs / "x.zip.txt"
    other.write_text("Other.")
    (docs / "deep").mkdir()
    _zip(docs / "deep/x.zip", {"c.txt": "Gamma."})
    kb.add(docs)
    with pytest.raises(UnknownDocument, match="fits 2 archives"):
        kb.remove(["x.zip"])
    assert sorted(d.uri for d in kb.remove([archive.as_posix()])) == [
        f"{archive}/a.txt",
        f"{archive}/sub/b.txt",
    ]
    assert [d.uri for d in kb.remove(["deep/x.zip"])] == [f"{docs}/deep/x.zip/c.txt"]
    assert [d.uri for d in kb.documents()] == [other.as_posix()]


def test_the_command_takes_archives_and_paths_into_them(docs: Path, tmp_path: Path) -> None:
    _zip(docs / "x.zip", {"a.txt": "Alpha text.", "b/c.txt": "Beta text.", "d.exe": b"MZ\x90\0"})
    ran = run_arag(tmp_path, "index", "docs/x.zip/b/c.txt")
    assert (ran.code, "1 added" in ran.out) == (0, True), ran.err
    ran = run_arag(tmp_path, "index", "docs/x.zip")
    assert ran.code == 0, ran.err
    assert "1 added, 1 unchanged, 1 unsupported" in ran.out
    ran = run_arag(tmp_path, "index", "docs/x.zip/nothing.txt")
    assert "holds no such file" in ran.out + ran.err
    ran = run_arag(tmp_path, "remove", "docs/x.zip", "--yes")
    assert ran.code == 0
    assert ran.out.count("removed") == 2


def test_attachments_of_mail_are_found_with_page_and_section(kb: KnowledgeBase, docs: Path) -> None:
    pages = write_pdf([["One."], ["The invoice is on page two."]])
    message = EmailMessage()
    message["Subject"] = "发票"
    message["From"] = "王小明 <wang@example.cn>"
    message.set_content("请查收附件。")
    message.add_attachment(pages, "application", "pdf", filename="发票.pdf")
    (docs / "a.eml").write_bytes(message.as_bytes())
    (docs / "b.msg").write_bytes(
        write_msg(
            {0x0037: "Plan", 0x1000: "See it."},
            attachments=[Attached("p.md", b"# Hall\n\nHall five.")],
        )
    )
    assert len(kb.add(docs).added) == 2
    (hit,) = kb.keyword_search("invoice is on").hits
    assert (hit.title, hit.section, hit.page) == ("发票", "Attachment: 发票.pdf", 2)
    (hit,) = kb.keyword_search("Hall five").hits
    assert (hit.title, hit.section) == ("Plan", "Attachment: p.md › Hall")
    assert [hit.title for hit in kb.keyword_search("王小明").hits] == ["发票"]


def test_ten_thousand_files_in_an_archive_are_listed_and_read_in_seconds(
    kb: KnowledgeBase, docs: Path
) -> None:
    from agentic_rag.documents import Source, find_sources

    _zip(docs / "x.zip", {f"{n % 100}/{n}.txt": f"Text {n}." for n in range(10_000)})
    began = time.monotonic()
    sources = [item for item in find_sources([docs]) if isinstance(item, Source)]
    assert [source.read(100).data for source in sources][1234] == b"Text 1234."
    assert len(sources) == 10_000
    assert time.monotonic() - began < 30
