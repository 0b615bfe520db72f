"""Documents over HTTP: uploads, the list, a document, its file, deleting."""

import io
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from agentic_rag.config import Server, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.documents.pdf_writer import write_pdf
from tests.knowledge_base.embedders import HashEmbedder
from tests.server.listening import served

PDF = write_pdf([["The fee is 10 pounds."]])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb", model="none", server=Server(max_upload_mb=1))


@pytest.fixture
def kb(settings: Settings) -> KnowledgeBase:
    return KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())


@pytest.fixture
def client(kb: KnowledgeBase) -> Iterator[httpx.Client]:
    with (
        served(create_app(kb.settings, kb=kb)) as url,
        httpx.Client(base_url=url, timeout=30) as made,
    ):
        yield made


def put(client: httpx.Client, *files: tuple[str, bytes], folder: str = "") -> dict[str, Any]:
    """Upload files; the job when it is over."""
    parts = [("files", (name, data)) for name, data in files]
    answer = client.post("/api/documents", files=parts, params={"folder": folder})
    assert answer.status_code == 202, answer.text
    return finished(client, answer.json()["id"])


def finished(client: httpx.Client, number: int) -> dict[str, Any]:
    for _ in range(600):
        job: dict[str, Any] = client.get(f"/api/jobs/{number}").json()
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.05)
    raise AssertionError(f"job {number} does not end: {job}")


def listed(client: httpx.Client, **asked: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/documents", params=asked).json()["documents"]
    return found


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def everything_under(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


# -- uploading ----------------------------------------------------------------------------------


def test_uploaded_files_become_documents_that_are_found(client: httpx.Client) -> None:
    job = put(client, ("fees.txt", b"The fee is 10 pounds."), ("费用.txt", "年费为十元。".encode()))
    assert job["state"] == "done"
    assert job["counts"] == {"added": 2}
    assert [Path(one["uri"]).name for one in listed(client)] == ["费用.txt", "fees.txt"]
    hits = client.get("/api/search", params={"query": "年费", "mode": "keyword"}).json()["hits"]
    assert [hit["uri"].rpartition("/")[2] for hit in hits] == ["费用.txt"]


def test_a_file_replaces_the_document_of_its_name_in_its_folder(client: httpx.Client) -> None:
    put(client, ("price.txt", b"The fee is 10."))
    put(client, ("price.txt", b"The fee is 99."), folder="2027")
    assert put(client, ("price.txt", b"The fee is 12."))["counts"] == {"updated": 1}
    assert put(client, ("price.txt", b"The fee is 12."))["counts"] == {"unchanged": 1}
    one, other = listed(client)
    texts = [
        client.get(f"/api/documents/{d['number']}/chunks").json()["chunks"][0]["text"]
        for d in (other, one)
    ]
    assert ["12" in texts[0], "10" in texts[0], "99" in texts[1]] == [True, False, True]
    assert one["uri"].endswith("/uploads/2027/price.txt")


def test_two_files_of_one_name_in_one_request_are_refused_and_none_is_stored(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    files = [("files", ("a.md", b"one")), ("files", ("sub/A.md", b"two"))]
    status, message = refusal(client.post("/api/documents", files=files))
    assert (status, "?folder=" in message) == (409, True)
    assert everything_under(kb.directory / "uploads") == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../x.txt", "x.txt"),
        ("..\\x.txt", "x.txt"),
        ("/tmp/arag-escaped.txt", "arag-escaped.txt"),
        ("nul.txt", "_nul.txt"),
        ("<img src=x onerror=alert(1)>.txt", "＜img src=x onerror=alert(1)＞.txt"),
    ],
)
def test_a_hostile_name_stays_in_the_folder_of_uploads(
    client: httpx.Client, kb: KnowledgeBase, tmp_path: Path, name: str, kept: str
) -> None:
    assert put(client, (name, b"some text"))["state"] == "done"
    assert everything_under(kb.directory / "uploads") == [kept]
    assert not (tmp_path / "x.txt").exists() and not Path("/tmp/arag-escaped.txt").exists()
    assert [Path(one["uri"]).name for one in listed(client)] == [kept]


def test_names_with_nul_and_of_300_bytes_and_in_gbk_are_kept_readable(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    body = b""
    for name in (b"a\0b.txt", "报".encode() * 100 + b".txt", "费用.txt".encode("gb18030")):
        body += b'--x\r\nContent-Disposition: form-data; name="files"; filename="' + name
        body += b'"\r\n\r\ntext of ' + str(len(body)).encode() + b"\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/api/documents", content=body + b"--x--\r\n", headers=kind)
    assert finished(client, answer.json()["id"])["counts"] == {"added": 3}
    plain, gbk, long = everything_under(kb.directory / "uploads")
    assert (plain, gbk) == ("ab.txt", "费用.txt") or (plain, long) == ("ab.txt", "费用.txt")
    assert max(len(name.encode()) for name in (gbk, long)) <= 255


def test_a_name_as_older_clients_send_it_is_understood(client: httpx.Client) -> None:
    body = (
        b"--x\r\nContent-Disposition: form-data; name=\"files\"; filename*=utf-8''%E8%B4%B9.txt\r\n"
        b"\r\nsome text\r\n--x--\r\n"
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/api/documents", content=body, headers=kind)
    assert answer.json()["names"] == ["费.txt"]


@pytest.mark.parametrize("folder", ["../other", "/etc", "a/../../b", "C:\\x"])
def test_a_folder_that_leads_elsewhere_is_refused(client: httpx.Client, folder: str) -> None:
    files = {"files": ("a.txt", b"text")}
    answer = client.post("/api/documents", files=files, params={"folder": folder})
    assert answer.status_code == 422
    assert listed(client) == []


def test_a_link_among_the_uploads_leads_nowhere(
    client: httpx.Client, kb: KnowledgeBase, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("the secret word is mulberry")
    put(client, ("note.txt", b"plain words"))
    uploads = kb.directory / "uploads"
    (uploads / "away").symlink_to(outside)
    files = {"files": ("a.txt", b"text")}
    status, _ = refusal(client.post("/api/documents", files=files, params={"folder": "away"}))
    assert status == 409
    assert everything_under(outside) == ["secret.txt"]
    (uploads / "note.txt").unlink()
    (uploads / "note.txt").symlink_to(outside / "secret.txt")
    number = listed(client)[0]["number"]
    answer = client.get(f"/api/documents/{number}/file")
    assert answer.status_code == 404 and "mulberry" not in answer.text
    assert client.delete(f"/api/documents/{number}").status_code == 204
    assert everything_under(outside) == ["secret.txt"]


def test_fifty_uploads_at_the_same_time_are_all_stored_once(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    def one(n: int) -> int:
        data = f"The code of item {n} is K{n:03}.".encode()
        answer = client.post("/api/documents", files={"files": (f"item-{n}.txt", data)})
        assert answer.status_code == 202
        number: int = answer.json()["id"]
        return number

    with ThreadPoolExecutor(50) as pool:
        jobs = list(pool.map(one, range(50)))
    assert len(set(jobs)) == 50
    assert {finished(client, number)["state"] for number in jobs} == {"done"}
    page = client.get("/api/documents", params={"limit": 100}).json()
    assert page["total"] == 50
    assert len({one["uri"] for one in page["documents"]}) == 50
    assert sum(one["chunks"] for one in page["documents"]) == 50
    assert kb.keyword_search(["K037"]).counts == {"K037": 1}


def test_a_type_that_is_not_read_is_refused_and_the_others_go_in(client: httpx.Client) -> None:
    program = b"\x7fELF" + bytes(100)
    status, message = refusal(client.post("/api/documents", files={"files": ("run.bin", program)}))
    assert status == 415 and "a program" in message and "supported are" in message
    job = put(client, ("run.bin", program), ("fees.txt", b"The fee is 10."))
    assert job["counts"] == {"added": 1, "unsupported": 1}
    assert [one["uri"] for one in job["documents"] if one["reason"]] == ["run.bin"]


def test_a_damaged_file_is_told_and_can_be_retried(client: httpx.Client) -> None:
    job = put(client, ("a.pdf", b"no PDF at all"), ("b.txt", b"good"))
    assert job["state"] == "done" and job["counts"] == {"added": 1, "failed": 1}
    assert listed(client, status="failed")[0]["reason"]
    retried = client.post("/api/documents/retry").json()["jobs"]
    assert [job["names"] for job in retried] == [["a.pdf"]]
    assert finished(client, retried[0]["id"])["state"] == "failed"


def test_a_body_that_is_too_large_is_refused_by_what_came_of_it(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
        for _ in range(5_000):  # 5 GB
            sent += 1
            yield b"a" * 1_000_000

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    status, message = refusal(client.post("/api/documents", content=endless(), headers=kind))
    assert (status, "larger than 1 MB" in message) == (413, True)
    assert sent < 100
    lie = {**kind, "Content-Length": "5000000000"}
    with httpx.Client(base_url=client.base_url) as another:
        answer = another.post("/api/documents", headers=lie, content=endless())
    assert refusal(answer)[0] == 413
    assert everything_under(kb.directory / "uploads") == []
    assert client.get("/api/health").status_code == 200


def test_an_upload_that_breaks_off_leaves_nothing(client: httpx.Client, kb: KnowledgeBase) -> None:
    def broken() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nabc'
        raise httpx.ReadError("the client is gone")

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    with httpx.Client(base_url=client.base_url) as another, pytest.raises(httpx.ReadError):
        another.post("/api/documents", content=broken(), headers=kind)
    for _ in range(100):
        if everything_under(kb.directory / "uploads") == []:
            break
        time.sleep(0.02)
    assert everything_under(kb.directory / "uploads") == []
    assert client.get("/api/jobs").json()["jobs"] == []


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{}", 400),
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=x", b"nothing like it", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nno header\r\n\r\n", 400),
        ("multipart/form-data; boundary=x", b"--x--\r\n", 422),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="f"; filename=""\r\n\r\n\r\n--x--\r\n',
            422,
        ),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\ncut sho',
            400,
        ),
    ],
)
def test_a_body_that_is_no_upload_is_refused_in_a_sentence(
    client: httpx.Client, kb: KnowledgeBase, kind: str, body: bytes, status: int
) -> None:
    answer = client.post("/api/documents", content=body, headers={"Content-Type": kind})
    assert refusal(answer)[0] == status
    assert refusal(answer)[1].endswith(".")
    assert everything_under(kb.directory / "uploads") == []


def test_of_an_archive_that_is_replaced_the_files_that_are_gone_go(client: httpx.Client) -> None:
    put(client, ("pack.zip", archive({"a.txt": "first", "b.txt": "second"})))
    assert len(listed(client)) == 2
    assert put(client, ("pack.zip", archive({"a.txt": "first"})))["counts"]["removed"] == 1
    assert [one["uri"].rpartition("/")[2] for one in listed(client)] == ["a.txt"]


def archive(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return made.getvalue()


# -- the list, a document, its file -------------------------------------------------------------


def test_the_list_comes_in_pages_and_can_be_narrowed(client: httpx.Client) -> None:
    put(client, *((f"n{n}.txt", f"note {n}".encode()) for n in range(5)), ("empty.txt", b""))
    seen: list[int] = []
    cursor: int | None = None
    while True:
        asked = {"limit": 2} if cursor is None else {"limit": 2, "cursor": cursor}
        page = client.get("/api/documents", params=asked).json()
        assert page["total"] == 6 and len(page["documents"]) <= 2
        seen += [one["number"] for one in page["documents"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True) and len(seen) == 6
    assert [Path(one["uri"]).name for one in listed(client, q="N3.")] == ["n3.txt"]
    assert [Path(one["uri"]).name for one in listed(client, status="empty")] == ["empty.txt"]
    assert client.get("/api/documents", params={"limit": 100_000}).status_code == 422


def test_the_chunks_of_a_document_come_in_pages(client: httpx.Client) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "Some words to fill it up. " * 60 for n in range(60))
    put(client, ("long.txt", text.encode()))
    number = listed(client)[0]["number"]
    first = client.get(f"/api/documents/{number}/chunks", params={"limit": 3}).json()
    assert [one["chunk_id"] for one in first["chunks"]] == [f"{number}-{n}" for n in (1, 2, 3)]
    rest = client.get(
        f"/api/documents/{number}/chunks", params={"cursor": first["next"], "limit": 200}
    ).json()
    assert rest["chunks"][0]["chunk_id"] == f"{number}-4"
    assert len(rest["chunks"]) + 3 == first["total"] and rest["next"] is None


def test_a_page_of_html_is_saved_and_never_shown(client: httpx.Client) -> None:
    page = b"<html><body><p>Words</p><script>alert(1)</script></body></html>"
    put(client, ("page.html", page), ("plan.pdf", PDF), ("费用.svg.txt", b"<svg onload=x>"))
    by_name = {Path(one["uri"]).name: one["number"] for one in listed(client)}
    for name in ("page.html", "费用.svg.txt"):
        answer = client.get(f"/api/documents/{by_name[name]}/file")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    shown = client.get(f"/api/documents/{by_name['plan.pdf']}/file")
    assert shown.headers["content-type"] == "application/pdf"
    assert shown.headers["content-disposition"].startswith("inline;")
    assert shown.content == PDF


def test_the_file_of_a_document_in_an_archive_is_that_file(client: httpx.Client) -> None:
    put(client, ("pack.zip", archive({"sub/a.txt": "first"})))
    assert client.get(f"/api/documents/{listed(client)[0]['number']}/file").content == b"first"


def test_what_is_not_there_is_told(client: httpx.Client) -> None:
    for path in ("/api/documents/7", "/api/documents/7/chunks", "/api/documents/7/file"):
        assert refusal(client.get(path)) == (
            404,
            "There is no document 7; /api/documents lists all there are.",
        )
    assert client.delete("/api/documents/7").status_code == 404
    assert client.get("/api/jobs/7").status_code == 404
    assert client.delete("/api/jobs/7").status_code == 404
    assert client.get("/api/documents/../jobs.jsonl/file").status_code == 404


# -- deleting -----------------------------------------------------------------------------------


def test_a_deleted_document_is_gone_from_every_route_at_once(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    put(client, ("fees.txt", b"The yearly fee is 10 pounds."), ("other.txt", b"Something else."))
    number = listed(client, q="fees")[0]["number"]
    chunk = f"{number}-1"
    modes = ("keyword", "semantic", "bm25", "hybrid")

    def found(mode: str) -> list[str]:
        asked = {"query": "fee", "mode": mode}
        return [one["chunk_id"] for one in client.get("/api/search", params=asked).json()["hits"]]

    assert all(chunk in found(mode) for mode in modes)  # and what is cached is warm
    assert client.delete(f"/api/documents/{number}").status_code == 204
    assert not any(chunk in found(mode) for mode in modes)
    assert client.get(f"/api/chunks/{chunk}").status_code == 404
    assert client.get(f"/api/documents/{number}").status_code == 404
    assert everything_under(kb.directory / "uploads") == ["other.txt"]


def test_a_file_that_was_indexed_where_it_lies_stays_there_when_it_is_deleted(
    client: httpx.Client, kb: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("my words")
    kb.add([tmp_path / "mine.txt"])
    assert client.delete(f"/api/documents/{listed(client)[0]['number']}").status_code == 204
    assert (tmp_path / "mine.txt").exists()


def test_an_uploaded_archive_stays_until_its_last_file_is_deleted(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    put(client, ("pack.zip", archive({"a.txt": "first", "b.txt": "second"})), folder="x")
    one, other = listed(client)
    client.delete(f"/api/documents/{one['number']}")
    assert everything_under(kb.directory / "uploads") == ["x/pack.zip"]
    client.delete(f"/api/documents/{other['number']}")
    assert everything_under(kb.directory / "uploads") == []


# -- the folder of uploads ----------------------------------------------------------------------


def test_what_was_taken_out_does_not_come_back_with_a_folder_above_it(
    client: httpx.Client, kb: KnowledgeBase, tmp_path: Path
) -> None:
    put(client, ("a.txt", b"first"), ("b.pdf", b"no PDF at all"))
    (tmp_path / "mine.txt").write_text("my words")
    kb.remove(["a.txt"])  # as the command line does, which leaves files where they are
    kb.add([tmp_path])
    assert sorted(Path(one["uri"]).name for one in listed(client)) == ["b.pdf", "mine.txt"]
    (kb.directory / "uploads" / "b.pdf").write_bytes(PDF)
    assert [Path(one.uri).name for one in kb.retry_failed().updated] == ["b.pdf"]


def test_where_nothing_can_be_kept_that_is_told_and_the_rest_goes_on(
    client: httpx.Client, kb: KnowledgeBase
) -> None:
    (kb.directory / "uploads").write_text("a file stands here")
    answer = client.post("/api/documents", files={"files": ("a.txt", b"text")})
    assert refusal(answer)[0] == 503 and "cannot be kept" in refusal(answer)[1]
    (kb.directory / "uploads").unlink()
    log = kb.directory / "server" / "jobs.jsonl"
    log.unlink(missing_ok=True)
    log.mkdir()
    answer = client.post("/api/documents/url", json={"url": "http://example.org/"})
    assert refusal(answer)[0] == 503 and "list of jobs" in refusal(answer)[1]
    log.rmdir()
    assert put(client, ("a.txt", b"text"))["state"] == "done"
