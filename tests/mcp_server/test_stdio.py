"""`arag mcp` as a client starts it: in a process of its own, read raw and by the real client."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from tests.cli.agent_model import AgentModel, playing
from tests.cli.running import ARAG, write_notes
from tests.knowledge_base.embedders import HashEmbedder
from tests.mcp_server.conftest import said

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose knowledge base holds the notes; only words find them, which is quick."""
    folder = tmp_path_factory.mktemp("stdio")
    settings = Settings(kb=folder / ".arag")
    made = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    made.add([write_notes(folder)])
    return folder


# A library that prints, by Python, past it, and from a process of its own.
LOUD = """
import os
import agentic_rag.mcp_server.retrieving as retrieving

quiet = retrieving.retrieve

def loud(*given):
    print("a line")
    os.write(1, b"a raw line\\n")
    os.system("echo from a child")
    return quiet(*given)

retrieving.retrieve = loud
"""


class Process:
    """A server in a process; `lines` is all that it wrote to standard output."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[bytes] = []

    def send(self, message: object) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        self.lines.append(self.process.stdout.readline())
        value = json.loads(self.lines[-1])
        assert isinstance(value, dict) and value["jsonrpc"] == "2.0"
        return value

    def call(self, request_id: int, method: str, params: Any = None) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.send({name: value for name, value in message.items() if value is not None})
        answer = self.receive()
        assert answer["id"] == request_id
        return answer

    def tool(self, request_id: int, name: Any, arguments: Any = None) -> dict[str, Any]:
        return self.call(request_id, "tools/call", {"name": name, "arguments": arguments})

    def greet(self) -> None:
        assert "result" in self.call(0, "initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


@contextmanager
def started(folder: Path, *words: str, **environment: str) -> Iterator[Process]:
    process = subprocess.Popen(
        [*ARAG, "mcp", *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    server = Process(process)
    try:
        yield server
    finally:
        process.kill()
        process.wait(20)
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe
            pipe.close()


def test_standard_output_holds_messages_alone(folder: Path, tmp_path: Path) -> None:
    """From the start, through the embedder's first use, indexing, a warning and an error."""
    kb = tmp_path / "kb"
    (tmp_path / "sitecustomize.py").write_text(LOUD, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    arguments = ("--kb", str(kb), "--add", "--model", "none")
    with started(folder, *arguments, PYTHONPATH=path) as server:
        server.greet()
        added = server.tool(1, "add_document", {"text": "The fee is 12 euros.", "title": "Fees"})
        assert "Added as document 1" in json.dumps(added)
        failed = server.tool(2, "add_document", {"path": str(tmp_path / "none.pdf")})
        assert failed["result"]["isError"]
        assert "12 euros" in json.dumps(server.tool(3, "semantic_search", {"query": "the fee"}))
        assert server.tool(4, "read_chunk", {"chunk_ids": ["9-9"]})["result"]
        assert server.process.stdin
        server.process.stdin.close()
        assert server.process.wait(20) == 0
        assert server.process.stdout and server.process.stderr
        assert server.process.stdout.read() == b""
        told = server.process.stderr.read().decode()
    assert len(server.lines) == 5
    assert "a raw line" in told and "from a child" in told


def test_what_is_badly_shaped_is_refused_at_once_and_the_session_goes_on(folder: Path) -> None:
    with started(folder) as server:
        server.greet()
        begun = time.monotonic()
        for bad in (
            b"hello",
            b"[1, 2]",
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": "keyword_search"}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": ["keyword_search"]}',
            b'{"jsonrpc": "2.0", "id": 5, "method": 7}',
            b'{"jsonrpc": "1.0", "id": 5, "method": "tools/list"}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 7}}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"tool": "ask"}}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "no/such"}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": 5}}',
        ):
            server.send(bad)
            answer = server.receive()
            assert answer["error"]["message"], bad
            assert answer.get("id") == (5 if b'"id": 5' in bad else None), bad
        for name, arguments in (
            ("keyword_search", 7.5),
            ("keyword_search", "{broken"),
            ("keyword_search", {"wrong": {"key": {}}}),
            ("read_chunk", {"chunk_ids": {"a": [[]]}}),
            ("list_documents", [[1], [2]]),
            ("ask", {"prompt": 1, "x": 2}),
        ):
            answer = server.tool(6, name, arguments)
            assert "result" in answer, (name, arguments, answer)
        for arguments in ('{"keywords": ["fee"]}', ["fee"], "fee"):  # what is meant is clear
            assert "euros" in json.dumps(server.tool(7, "keyword_search", arguments)) or (
                "made before" in json.dumps(server.tool(7, "keyword_search", arguments))
            )
        assert "12 euros" in json.dumps(
            server.tool(8, "keyword_search", {"keywords": ["fee"], "again": True})
        )
        assert time.monotonic() - begun < 15  # nothing waited for a time-out


async def test_the_real_client_searches_reads_and_asks(folder: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentic_rag", "--kb", str(folder / ".arag"), "mcp", "--model", "none"],
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", os.pathsep.join(sys.path))},
    )
    async with Client(parameters, mode="legacy") as client:
        found = said(await client.call_tool("keyword_search", {"keywords": ["第二台水泵"]}))
        assert "2019年更换" in found
        assert "没有新内容" in said(
            await client.call_tool("keyword_search", {"keywords": ["水泵"]})
        )
        answer = said(await client.call_tool("ask", {"question": "When is the yearly fee due?"}))
        assert "It is due in March" in answer and "fees.txt" in answer


def test_the_lines_of_the_page_run(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    command = f'command={sys.executable!r}, args=["-m", "agentic_rag", "--kb", '
    assert len(lines.split("\n\n\n")[1].splitlines()) <= 10
    script = lines.replace('command="arag", args=["--kb", ', f"env=dict(os.environ), {command}")
    script = script.replace("/home/me/notes/.arag", str(folder / ".arag"))
    ran = subprocess.run(
        [sys.executable, "-c", f"import os\n{script}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stderr
    number = re.search(r"\[(\d+-\d+)\]", ran.stdout)
    assert number and ran.stdout == shown.replace("[2-1]", number[0])


def test_a_client_that_leaves_ends_the_question_and_the_process(folder: Path) -> None:
    with playing(AgentModel(hang_in=1)) as model:
        given = {
            "ARAG_MODEL": "openai:scripted",
            "ARAG_BASE_URL": model.address,
            "OPENAI_API_KEY": "none",
        }
        with started(folder, **given) as server:
            server.greet()
            question = {"name": "ask", "arguments": {"question": "When?", "strategy": "agent"}}
            server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": question})
            assert model.hanging.wait(30)
            assert server.process.stdin
            server.process.stdin.close()
            assert server.process.wait(10) == 0


def test_ctrl_c_ends_it_with_a_word_and_no_traceback(folder: Path) -> None:
    with started(folder) as server:
        server.greet()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(10) == 130
        assert server.process.stderr
        assert server.process.stderr.read().decode().strip().splitlines()[-1] == "Stopped."
