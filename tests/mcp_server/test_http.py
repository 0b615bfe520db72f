"""MCP over streamable HTTP: by the real client, and by requests that are none of its."""

import asyncio
import re
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import Server, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.mcp_server.http import mcp_app
from agentic_rag.mcp_server.serving import Serving, asking
from agentic_rag.server.app import create_app
from agentic_rag.server.authorisation import TokenNeeded
from tests.cli.running import ARAG, run_arag
from tests.mcp_server.conftest import said
from tests.server.listening import served

TOKEN = "a-long-random-text-of-32-letters"


def serving(kb: KnowledgeBase, settings: Settings, model: Any = None) -> Serving:
    return Serving(settings, lambda create: kb, asking(settings, lambda create: kb, model))


@pytest.fixture
def address(kb: KnowledgeBase) -> Iterator[str]:
    with served(mcp_app(serving(kb, kb.settings))) as url:
        yield f"{url}/mcp"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_real_client_searches_reads_and_asks(address: str, mode: str) -> None:
    async with Client(address, mode=mode) as client:
        assert "12 euros" in said(await client.call_tool("keyword_search", {"keywords": ["fee"]}))
        assert "泵站.md" in said(await client.call_tool("list_documents"))
        answer = said(await client.call_tool("ask", {"question": "第二台水泵何时更换？"}))
        assert "2019" in answer and "来源：" in answer
        resources = (await client.list_resources()).resources
        assert (await client.read_resource(resources[0].uri)).contents


async def test_each_session_of_the_handshake_protocol_has_a_tracker_of_its_own(
    address: str,
) -> None:
    wanted = {"keywords": ["fee"]}
    async with Client(address, mode="legacy") as first, Client(address, mode="legacy") as second:
        assert "12 euros" in said(await first.call_tool("keyword_search", wanted))
        assert "12 euros" in said(await second.call_tool("keyword_search", wanted))
        assert "12 euros" not in said(await first.call_tool("keyword_search", wanted))


async def test_without_sessions_every_call_is_shown_everything(address: str) -> None:
    async with Client(address, mode="auto") as client:
        for _ in range(2):
            found = said(await client.call_tool("keyword_search", {"keywords": ["fee"]}))
            assert "12 euros" in found


def test_what_is_badly_shaped_is_refused_at_once_and_the_next_call_works(address: str) -> None:
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(headers=headers, timeout=5) as client:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        greeted = post(client, address, {"id": 0, "method": "initialize", "params": hello})
        client.headers["mcp-session-id"] = greeted.headers["mcp-session-id"]
        post(client, address, {"method": "notifications/initialized"})
        for params in ("keyword_search", ["keyword_search"], {"name": 7}, {}, None):
            wrong = post(client, address, {"id": 1, "method": "tools/call", "params": params})
            assert "error" in wrong.text, params
        assert client.post(address, content=b"{").status_code == 400
        call = {"name": "keyword_search", "arguments": {"keywords": ["fee"]}}
        right = post(client, address, {"id": 2, "method": "tools/call", "params": call})
        assert "12 euros" in right.text


def post(client: httpx.Client, address: str, message: dict[str, Any]) -> httpx.Response:
    return client.post(address, json={"jsonrpc": "2.0", **message})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_stops_waiting_ends_the_request_to_the_model(
    kb: KnowledgeBase, mode: str
) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def never(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        yield "too late"

    model = FunctionModel(stream_function=never)
    with served(mcp_app(serving(kb, kb.settings, model))) as url:
        async with Client(f"{url}/mcp", mode=mode) as client:
            question = {"question": "What is the fee?", "strategy": "agent"}
            call = asyncio.create_task(client.call_tool("ask", question))
            assert await asyncio.to_thread(asked.wait, 10)
            call.cancel()
            assert await asyncio.to_thread(ended.wait, 10)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_arag_serve_has_it_too_and_a_deleted_document_is_gone_at_once(
    kb: KnowledgeBase, mode: str
) -> None:
    with served(create_app(kb.settings, kb=kb)) as url:
        async with Client(f"{url}/mcp", mode=mode) as client:
            wanted = {"keywords": ["fee"]}
            assert "12 euros" in said(await client.call_tool("keyword_search", wanted))
            await asyncio.to_thread(kb.remove, ["fees.txt"])
            assert "euros" not in said(await client.call_tool("keyword_search", wanted))
            question = {"question": "What is the yearly fee?"}
            assert "euros" not in said(await client.call_tool("ask", question))


async def test_a_question_too_many_is_turned_away_with_a_sentence(kb: KnowledgeBase) -> None:
    asked = threading.Event()

    async def never(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.set()
        await asyncio.sleep(60)
        yield "too late"

    full = Server(concurrent_questions=1, queued_questions=0)
    settings = kb.settings.model_copy(update={"server": full})
    app = create_app(settings, kb=kb, model=FunctionModel(stream_function=never))
    with served(app) as url:
        async with Client(f"{url}/mcp") as client:
            question = {"question": "What is the fee?", "strategy": "agent"}
            call = asyncio.create_task(client.call_tool("ask", question))
            assert await asyncio.to_thread(asked.wait, 10)
            second = await client.call_tool("ask", question)
            assert second.is_error and "Too many questions" in said(second)
            call.cancel()


async def test_elsewhere_than_on_loopback_a_token_is_needed(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = kb.settings.model_copy(update={"server": Server(host="0.0.0.0")})
    with pytest.raises(TokenNeeded, match="ARAG_TOKEN"):
        mcp_app(serving(kb, settings))
    monkeypatch.setenv("ARAG_TOKEN", TOKEN)
    with served(mcp_app(serving(kb, settings))) as url:
        async with httpx.AsyncClient() as stranger:
            for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                refused = await stranger.post(f"{url}/mcp", json={}, headers=header)
                assert refused.status_code == 401
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx_client(bearer) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport) as client:
                assert (await client.list_tools()).tools


def httpx_client(headers: dict[str, str]) -> Any:
    import httpx2

    return httpx2.AsyncClient(headers=headers)


def test_a_page_of_another_site_is_refused(address: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for header in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert httpx.post(address, json=message, headers=header).status_code == 403


def test_a_body_that_is_too_large_is_refused(address: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 2**21}}
    assert httpx.post(address, json=message).status_code == 413


def test_the_command_serves_at_the_address_it_prints_until_ctrl_c(kb: KnowledgeBase) -> None:
    words = [*ARAG, "--kb", str(kb.directory), "mcp", "--http", "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stderr
        line = process.stderr.readline().decode()
        found = re.fullmatch(r"Serving MCP at (http://127.0.0.1:\d+/mcp); Ctrl-C ends it.\n", line)
        assert found, line
        assert httpx.post(found[1], json={}).status_code == 400
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        out, told = process.communicate(timeout=10)
    assert out == b"" and told == b"Stopped.\n"


def test_the_command_says_what_it_cannot_do(tmp_path: Path) -> None:
    open_to_all = run_arag(tmp_path, "mcp", "--http", "--host", "0.0.0.0")
    assert open_to_all.code == 1 and "ARAG_TOKEN" in open_to_all.err
    no_http = run_arag(tmp_path, "mcp", "--port", "8766")
    assert no_http.code == 2 and "go with --http" in no_http.err
