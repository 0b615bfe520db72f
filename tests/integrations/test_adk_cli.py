"""`adk run` and `adk web` find the example folder and answer from the knowledge base of ARAG_KB."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (pip install 'agentic-rag[adk]')"
)

from agentic_rag.knowledge_base import KnowledgeBase
from tests.strategies.scripted_server import Script, Turn, serving
from tests.strategies.workflow.stages import GOOD, REWRITTEN

EXAMPLE = Path(__file__).parents[2] / "examples" / "adk_agent"
ADK = (sys.executable, "-m", "google.adk.cli")


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder with the example, which ADK keeps its sessions beside."""
    shutil.copytree(EXAMPLE, tmp_path / "agents" / "adk_agent", ignore=lambda *_: ["__pycache__"])
    return tmp_path / "agents"


@contextmanager
def scripted(kb: KnowledgeBase) -> Iterator[tuple[Script, dict[str, str]]]:
    """A model server for one question, and the environment that names it."""
    chunk = kb.chunks(kb.document("bridge.md").number)[0].chunk_id
    turns = (
        Turn([json.dumps(REWRITTEN)]),
        Turn([json.dumps(GOOD)]),
        Turn(["It was opened ", "in 1932 ", f"[{chunk}]."]),
    )
    with serving(*turns) as script:
        yield (
            script,
            {
                **os.environ,
                "ARAG_KB": str(kb.directory),
                "ARAG_MODEL": "scripted",
                "ARAG_BASE_URL": script.address,
                "PYTHONIOENCODING": "utf-8",
            },
        )


def test_adk_run_answers_a_question_from_standard_input(kb: KnowledgeBase, agents: Path) -> None:
    with scripted(kb) as (script, environment):
        ran = subprocess.run(
            [*ADK, "run", "adk_agent"],
            cwd=agents,
            env={**environment, "TMPDIR": str(agents)},
            input="When did that old bridge open?\nexit\n",
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    assert "[agentic_rag]: It was opened in 1932 [1].\n\nSources:\n\n- [1] " in ran.stdout
    assert ran.stdout.count("It was opened in 1932") == 1
    assert "Traceback" not in ran.stderr
    assert len(script.requests) == 3


def test_adk_web_lists_the_agent_and_streams_its_answer(kb: KnowledgeBase, agents: Path) -> None:
    with scripted(kb) as (_, environment), socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        web = subprocess.Popen(
            [*ADK, "web", "--port", str(port), "--session_service_uri", "memory://", "."],
            cwd=agents,
            env={**environment, "TMPDIR": str(agents)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            assert json.loads(once_it_answers(web, f"{url}/list-apps")) == ["adk_agent"]
            where = "apps/adk_agent/users/u/sessions"
            session = json.loads(post(f"{url}/{where}", {}))["id"]
            message = {"role": "user", "parts": [{"text": "When did that old bridge open?"}]}
            question = {
                "app_name": "adk_agent",
                "user_id": "u",
                "session_id": session,
                "new_message": message,
                "streaming": True,
            }
            events = [
                json.loads(line.removeprefix("data: "))
                for line in post(f"{url}/run_sse", question).splitlines()
                if line.startswith("data: ")
            ]
            with urllib.request.urlopen(f"{url}/{where}/{session}", timeout=30) as answer:
                kept = json.load(answer)
        finally:
            web.terminate()
            web.wait(timeout=30)

    pieces = [text_of(event) for event in events if event.get("partial")]
    assert len(pieces) > 1
    assert "".join(pieces) == text_of(events[-1])
    assert text_of(events[-1]).startswith("It was opened in 1932 [1].")
    assert kept["state"]["quality_score"] == 34
    assert kept["state"]["final_answer"] == text_of(events[-1])


def once_it_answers(program: "subprocess.Popen[bytes]", url: str) -> bytes:
    for _ in range(400):
        assert program.poll() is None, "adk web ended"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return bytes(answer.read())
        except URLError:
            time.sleep(0.25)
    raise AssertionError("adk web does not answer")


def post(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode("utf-8"))


def text_of(event: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in event["content"]["parts"])
