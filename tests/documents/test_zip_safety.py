"""ZIP archives: nothing unpacks to more than the limits, and names read as they were written."""

import io
import struct
import zipfile

import pytest

from agentic_rag.documents import UnreadableDocument, zip_safety
from agentic_rag.documents.zip_safety import open_archive, read_member


class _NamedIn(zipfile.ZipInfo):
    """A member whose name is written in an encoding of its own, as old programs do."""

    encoding = "gbk"

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode(self.encoding), self.flag_bits


def _archive(
    members: dict[str, bytes], encoding: str = "", method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            if encoding:
                info = _NamedIn(name)
                info.encoding = encoding
            info.compress_type = method
            archive.writestr(info, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("gb18030", ["资料/蓝桥泵站.txt", "a.txt", "说明.docx"]),
        ("big5", ["資料/供水說明.txt"]),
        ("utf-8", ["资料/蓝桥泵站.txt", "é.txt"]),
        ("cp437", ["Müller.txt", "Grüße/übung.md"]),
        ("", ["资料/泵站.txt", "plain.txt"]),
    ],
)
def test_names_read_as_they_were_written(encoding: str, names: list[str]) -> None:
    archive = open_archive("a.zip", _archive({name: b"x" for name in names}, encoding))
    assert [member.name for member in archive.members] == names


def test_a_bomb_is_refused_before_anything_is_unpacked() -> None:
    data = _archive({"zeros": bytes(60_000_000)})
    with pytest.raises(UnreadableDocument, match=r"'b\.zip' is not unpacked: .* times its size"):
        open_archive("/x/b.zip", data)


def test_a_member_that_lies_about_its_size_ends_in_an_error_not_in_memory() -> None:
    data = bytearray(_archive({"zeros": bytes(60_000_000)}))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        struct.pack_into("<I", data, data.find(signature) + offset, 1_000)
    archive = open_archive("b.zip", bytes(data))
    with pytest.raises(UnreadableDocument, match="damaged"):
        read_member(archive, archive.members[0])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_is_held_to_the_limit_while_it_is_unpacked(method: int) -> None:
    archive = open_archive("a.zip", _archive({"a": b"word " * 1_000}, method=method))
    assert read_member(archive, archive.members[0]) == b"word " * 1_000
    with pytest.raises(UnreadableDocument, match="larger than"):
        read_member(archive, archive.members[0], most=4_999)


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_safety, "MOST_MEMBERS", 3)
    with pytest.raises(UnreadableDocument, match="more than 3 files"):
        open_archive("a.zip", _archive({str(n): b"x" for n in range(4)}))


def test_a_locked_member_asks_for_a_copy_without_a_password() -> None:
    data = bytearray(_archive({"a": b"x"}))
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        struct.pack_into("<H", data, data.find(signature) + offset, 1)
    archive = open_archive("/x/b.zip", bytes(data))
    with pytest.raises(UnreadableDocument, match=r"'b\.zip' is protected by a password"):
        read_member(archive, archive.members[0])


@pytest.mark.parametrize("cut", [0, 3, 40, -1, -30])
def test_what_is_cut_short_is_damaged(cut: int) -> None:
    data = _archive({"a": b"x" * 100})
    with pytest.raises(UnreadableDocument, match="damaged or was cut short"):
        open_archive("a.zip", data[:cut])


def test_a_part_is_found_in_whatever_case_it_is_written() -> None:
    archive = open_archive("a.docx", _archive({"word/Document.xml": b"x"}))
    found = archive.find("/word/document.xml")
    assert found is not None
    assert found.name == "word/Document.xml"
