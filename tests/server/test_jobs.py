"""Indexing in the background: what is queued is done, whatever happens to the server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

from agentic_rag.config import Settings, Web
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models.embedder import Embedder
from agentic_rag.models.embedders.watched import EmbedderUnavailable
from agentic_rag.server.app import create_app
from tests.knowledge_base.embedders import HashEmbedder
from tests.server.listening import served
from tests.server.slow_embedder import SlowEmbedder
from tests.website import website

ROOT = Path(__file__).parents[2]


@contextmanager
def server(directory: Path, embedder: Embedder, **settings: Any) -> Iterator[httpx.Client]:
    made = Settings(kb=directory, model="none", **settings)
    kb = KnowledgeBase.open(directory, settings=made, embedder=embedder)
    with served(create_app(made, kb=kb)) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def upload(client: httpx.Client, *names: str, text: str = "") -> int:
    parts = [("files", (name, (text or f"Words of {name}.").encode())) for name in names]
    answer = client.post("/api/documents", files=parts)
    assert answer.status_code == 202, answer.text
    number: int = answer.json()["id"]
    return number


def waited_for(client: httpx.Client, number: int, *states: str) -> dict[str, Any]:
    for _ in range(600):
        job: dict[str, Any] = client.get(f"/api/jobs/{number}").json()
        if job["state"] in (states or ("done", "failed", "cancelled")):
            return job
        time.sleep(0.05)
    raise AssertionError(f"job {number} does not get there: {job}")


def names_in(client: httpx.Client) -> list[str]:
    documents = client.get("/api/documents").json()["documents"]
    return sorted(Path(one["uri"]).name for one in documents)


# -- a server that ends -------------------------------------------------------------------------


def test_a_server_that_ends_leaves_the_rest_to_the_next_one(tmp_path: Path) -> None:
    slow = SlowEmbedder(0.2)
    names = [f"n{n}.txt" for n in range(6)]
    with server(tmp_path / "kb", slow, embedding={"batch_size": 1}) as client:
        running = upload(client, *names)
        assert slow.begun.wait(10)
        queued = upload(client, "late.txt")
    with server(tmp_path / "kb", HashEmbedder()) as client:
        assert waited_for(client, running)["state"] == "done"
        assert waited_for(client, queued)["state"] == "done"
        assert names_in(client) == sorted([*names, "late.txt"])


_SERVER = """
import sys
from pathlib import Path
import uvicorn
from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from agentic_rag.server.run import listening
from tests.server.slow_embedder import SlowEmbedder
settings = Settings(kb=Path(sys.argv[1]), model="none", embedding={"batch_size": 1})
kb = KnowledgeBase.open(settings.kb, settings=settings, embedder=SlowEmbedder(float(sys.argv[2])))
listener = listening("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(create_app(settings, kb=kb), log_level="warning")).run([listener])
"""


@contextmanager
def process(directory: Path, seconds: float) -> Iterator[tuple[httpx.Client, int]]:
    """A server in a process of its own, and the process' number."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", _SERVER, str(directory), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as started:
        try:
            assert started.stdout
            url = f"http://127.0.0.1:{started.stdout.readline().strip()}"
            with httpx.Client(base_url=url, timeout=30) as client:
                yield client, started.pid
        finally:
            started.kill()


def test_a_killed_server_goes_on_where_it_stopped_and_nothing_is_lost(tmp_path: Path) -> None:
    names = [f"n{n}.txt" for n in range(10)]
    with process(tmp_path / "kb", 0.3) as (client, number):
        first = upload(client, *names[:5])
        second = upload(client, *names[5:])
        for _ in range(200):
            if client.get(f"/api/jobs/{first}").json()["state"] == "running":
                break
            time.sleep(0.02)
        os.kill(number, signal.SIGKILL)
    (tmp_path / "kb" / "uploads" / ".incoming" / "cut").mkdir(parents=True, exist_ok=True)
    with (tmp_path / "kb" / "server" / "jobs.jsonl").open("ab") as log:
        log.write(b'{"sources": ["/cut sho')
    with server(tmp_path / "kb", HashEmbedder()) as client:
        assert waited_for(client, first)["state"] == "done"
        assert waited_for(client, second)["state"] == "done"
        assert names_in(client) == names
        assert upload(client, "more.txt") == second + 1
    assert not (tmp_path / "kb" / "uploads" / ".incoming").exists() or not any(
        (tmp_path / "kb" / "uploads" / ".incoming").iterdir()
    )


def test_only_one_server_at_a_time_takes_documents_in(tmp_path: Path) -> None:
    with server(tmp_path / "kb", HashEmbedder()) as first:
        with server(tmp_path / "kb", HashEmbedder()) as second:
            answer = second.post("/api/documents", files={"files": ("a.txt", b"words")})
            assert answer.status_code == 503
            assert "Another server" in answer.json()["error"]["message"]
            assert second.get("/api/documents").status_code == 200
        assert waited_for(first, upload(first, "a.txt"))["state"] == "done"


# -- while it works -----------------------------------------------------------------------------


def test_progress_is_readable_and_questions_are_answered_meanwhile(tmp_path: Path) -> None:
    slow = SlowEmbedder(60)
    with server(tmp_path / "kb", slow) as client:
        number = upload(client, "a.txt", "b.txt")
        assert slow.begun.wait(10)
        job = waited_for(client, number, "running")
        assert job["stage"] and job["unit"] and job["names"] == ["a.txt", "b.txt"]
        began = time.monotonic()
        asked = {"query": "words", "mode": "keyword"}
        assert client.get("/api/search", params=asked).status_code == 200
        assert time.monotonic() - began < 5
        slow.released.set()
        assert waited_for(client, number)["state"] == "done"


def test_what_waits_is_indexed_together(tmp_path: Path) -> None:
    slow = SlowEmbedder(60)
    with server(tmp_path / "kb", slow) as client:
        first = upload(client, "a.txt")
        assert slow.begun.wait(10)
        others = [upload(client, f"b{n}.txt") for n in range(20)]
        calls = len(slow.texts)
        slow.released.set()
        assert {waited_for(client, number)["state"] for number in (first, *others)} == {"done"}
        assert len(slow.texts) - calls >= 20
        assert len(names_in(client)) == 21
        committed = KnowledgeBase.open(tmp_path / "kb", embedder=HashEmbedder()).snapshot()
        assert committed.head.generation < 8  # a.txt, and all the others together


def test_a_queued_job_can_be_cancelled_and_its_files_go(tmp_path: Path) -> None:
    slow = SlowEmbedder(60)
    with server(tmp_path / "kb", slow) as client:
        first = upload(client, "a.txt")
        assert slow.begun.wait(10)
        second = upload(client, "b.txt")
        assert client.delete(f"/api/jobs/{second}").json()["state"] == "cancelled"
        slow.released.set()
        assert waited_for(client, first)["state"] == "done"
        assert names_in(client) == ["a.txt"]
        assert not (tmp_path / "kb" / "uploads" / "b.txt").exists()
        again = client.delete(f"/api/jobs/{second}")
        assert again.status_code == 409 and "is over" in again.json()["error"]["message"]


def test_a_running_job_can_be_cancelled_and_the_others_go_on(tmp_path: Path) -> None:
    slow = SlowEmbedder(0.3)
    with server(tmp_path / "kb", slow, embedding={"batch_size": 1}) as client:
        unwanted = upload(client, *(f"u{n}.txt" for n in range(30)))
        wanted = upload(client, "wanted.txt")
        assert slow.begun.wait(10)
        client.delete(f"/api/jobs/{unwanted}")
        assert waited_for(client, unwanted)["state"] == "cancelled"
        assert waited_for(client, wanted)["state"] == "done"
        there = names_in(client)
        assert "wanted.txt" in there and len(there) < 30
        kept = sorted(path.name for path in (tmp_path / "kb" / "uploads").glob("*.txt"))
        assert kept == there


def test_a_delete_does_not_wait_for_a_long_run(tmp_path: Path) -> None:
    slow = SlowEmbedder(0.0)
    with server(tmp_path / "kb", slow, embedding={"batch_size": 1}) as client:
        waited_for(client, upload(client, "old.txt"))
        number = client.get("/api/documents").json()["documents"][0]["number"]
        slow.seconds = 0.3
        slow.begun.clear()
        long = upload(client, *(f"n{n}.txt" for n in range(30)))  # some ten seconds
        assert slow.begun.wait(10)
        began = time.monotonic()
        assert client.delete(f"/api/documents/{number}").status_code == 204
        assert time.monotonic() - began < 5
        assert client.get(f"/api/documents/{number}").status_code == 404
        slow.released.set()
        assert waited_for(client, long)["state"] == "done"
        assert len(names_in(client)) == 30


def test_a_document_deleted_before_it_is_indexed_anew_stays_deleted(tmp_path: Path) -> None:
    slow = SlowEmbedder(0.0)
    with server(tmp_path / "kb", slow) as client:
        waited_for(client, upload(client, "a.txt"))
        number = client.get("/api/documents").json()["documents"][0]["number"]
        slow.seconds = 0.5
        slow.begun.clear()
        upload(client, "long.txt")
        assert slow.begun.wait(10)
        changed = upload(client, "a.txt", text="Other words.")
        assert client.delete(f"/api/documents/{number}").status_code == 204
        waited_for(client, changed)
        assert names_in(client) == ["long.txt"]


class _Down(HashEmbedder):
    up = False

    def embed_passages(self, texts: Any) -> Any:
        if not self.up:
            raise EmbedderUnavailable("The embedding server cannot be reached; start it.")
        return super().embed_passages(texts)


def test_a_job_whose_embedder_is_away_says_so_and_is_retried(tmp_path: Path) -> None:
    down = _Down()
    with server(tmp_path / "kb", down) as client:
        job = waited_for(client, upload(client, "a.txt"))
        assert (job["state"], "cannot be reached" in job["error"]) == ("failed", True)
        down.up = True
        again = client.post("/api/documents/retry").json()["jobs"]
        assert [one["id"] for one in again] == [job["id"]]
        assert waited_for(client, job["id"])["state"] == "done"
        assert names_in(client) == ["a.txt"]
        assert client.post("/api/documents/retry").json()["jobs"] == []


def test_jobs_come_in_pages(tmp_path: Path) -> None:
    with server(tmp_path / "kb", HashEmbedder()) as client:
        numbers = [upload(client, f"n{n}.txt") for n in range(5)]
        for number in numbers:
            waited_for(client, number)
        first = client.get("/api/jobs", params={"limit": 3}).json()
        assert [one["id"] for one in first["jobs"]] == [5, 4, 3]
        rest = client.get("/api/jobs", params={"cursor": first["next"]}).json()
        assert [one["id"] for one in rest["jobs"]] == [2, 1] and rest["next"] is None


# -- addresses ----------------------------------------------------------------------------------


def test_what_is_no_web_address_is_refused_at_once(tmp_path: Path) -> None:
    with server(tmp_path / "kb", HashEmbedder()) as client:
        for url in (
            "file:///etc/passwd",
            "/etc/passwd",
            "ftp://example.org/x",
            "javascript:alert(1)",
            "http://",
            "http://me:mulberry@example.org/",
            "",
        ):
            answer = client.post("/api/documents/url", json={"url": url})
            assert answer.status_code in (400, 422), url
            assert answer.json()["error"]["message"] and "mulberry" not in answer.text
        assert client.get("/api/jobs").json()["jobs"] == []


def test_an_address_of_this_machine_is_not_fetched(tmp_path: Path) -> None:
    with website() as (url, asked), server(tmp_path / "kb", HashEmbedder()) as client:
        port = url.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:7f00:1]"):
            answer = client.post("/api/documents/url", json={"url": f"http://{host}:{port}/page"})
            job = waited_for(client, answer.json()["id"])
            assert job["state"] == "failed", host
            assert "private address" in job["documents"][0]["reason"]
        assert asked == []


def test_a_page_is_fetched_where_that_is_allowed_and_its_file_is_elsewhere(tmp_path: Path) -> None:
    with (
        website() as (url, _),
        server(tmp_path / "kb", HashEmbedder(), web=Web(allow_private=True)) as client,
    ):
        answer = client.post("/api/documents/url", json={"url": f"{url}/page#part"})
        job = waited_for(client, answer.json()["id"])
        assert job["state"] == "done" and job["counts"] == {"added": 1}
        document = client.get("/api/documents").json()["documents"][0]
        assert (document["uri"], document["title"]) == (f"{url}/page", "泵站手册")
        told = client.get(f"/api/documents/{document['number']}/file")
        assert told.status_code == 404 and url in told.json()["error"]["message"]
