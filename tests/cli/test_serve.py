"""`arag serve` as a command: it says where it listens, ends at Ctrl-C, and tells what is wrong."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from tests.cli.running import ARAG, run_arag, write_notes
from tests.cli.slow_model import SlowModel
from tests.cli.slow_model import serving as slow_serving
from tests.knowledge_base.embedders import HashEmbedder


@contextmanager
def serving(folder: Path, *words: str, **environment: str) -> Iterator[tuple[str, "Running"]]:
    """A server in a process of its own, and its address."""
    command = [*ARAG, "--kb", str(folder / "kb"), "serve", "--port", "0", *words]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    running = Running(process)
    try:
        yield running.address(), running
    finally:
        process.kill()
        process.communicate()


class Running:
    """A server's process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []

    def address(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                return found[0]
        raise AssertionError(f"It did not start: {self.said}")

    def ended(self, signum: int) -> int:
        """The exit code after a signal; what was said is kept."""
        self.process.send_signal(signum)
        out, err = self.process.communicate(timeout=20)
        assert out == ""
        self.said += err.splitlines()
        return self.process.returncode


def test_it_serves_a_new_knowledge_base_until_ctrl_c(tmp_path: Path) -> None:
    with serving(tmp_path, "--model", "none") as (url, running):
        assert httpx.get(f"{url}/api/ready", timeout=30).json() == {"status": "ready"}
        found = httpx.get(f"{url}/api/search", params={"query": "x"}, timeout=30)
        assert found.json()["hits"] == []
        assert running.ended(signal.SIGINT) == 130

    assert running.said[-1] == "Stopped."
    logged = [json.loads(line) for line in running.said if line.startswith("{")]
    assert "/api/search" in [line.get("path") for line in logged]
    assert "Traceback" not in "".join(running.said)


def test_ctrl_c_ends_a_question_that_is_being_answered(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path / "kb")
    KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder()).add(
        [write_notes(tmp_path)]
    )
    with slow_serving(SlowModel(words=["It is so. "] * 300, pause=0.2)) as slow:
        given = {"OPENAI_API_KEY": "none", "ARAG_BASE_URL": slow.address}
        with serving(tmp_path, "--model", "openai:slow", **given) as (url, running):
            body = {"question": "What is so?", "strategy": "agent", "stream": True}
            with httpx.stream("POST", f"{url}/api/ask", json=body, timeout=30) as reply:
                assert reply.status_code == 200
                assert slow.requested.wait(20)
                assert running.ended(signal.SIGINT) == 130
            assert slow.hung_up.wait(5)
    assert "Traceback" not in "".join(running.said)


def test_sigterm_ends_it_too(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, running):
        assert httpx.get(f"{url}/api/health", timeout=30).status_code == 200
        assert running.ended(signal.SIGTERM) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_elsewhere_it_does_not_start_without_a_token(tmp_path: Path, host: str) -> None:
    ran = run_arag(tmp_path, "serve", "--host", host, "--port", "0")

    assert ran.code == 1 and ran.out == ""
    assert ran.err.startswith("error: On ") and "ARAG_TOKEN" in ran.err
    assert ran.err.count("\n") == 1


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run_arag(tmp_path, "serve", "--port", str(port))

    assert ran.code == 1
    assert f"port {port}" in ran.err and "choose another one" in ran.err


def test_a_damaged_knowledge_base_is_told(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "head.json").write_text("{")

    ran = run_arag(tmp_path, "--kb", "kb", "serve", "--port", "0")

    assert ran.code == 1
    assert ran.err.startswith("error: ") and "Traceback" not in ran.err


def test_a_model_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    ran = run_arag(tmp_path, "serve", "--port", "0", "--model", "nosuch:model")

    assert ran.code == 1
    assert "no provider 'nosuch'" in ran.err
    assert not (tmp_path / ".arag").exists()
