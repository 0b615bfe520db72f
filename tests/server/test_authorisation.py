"""Who may use the server: tokens elsewhere, and no page of another site on this machine."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from agentic_rag.config import Server, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from agentic_rag.server.authorisation import TokenNeeded, is_loopback, token_of
from tests.server.conftest import Api

TOKEN = "a-long-random-text-of-the-owner"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.4", False),
        ("docs.example.org", False),
        ("127.0.0.1.example.org", False),
        ("localhost.example.org", False),
    ],
)
def test_what_is_this_machine_alone(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_elsewhere_the_server_does_not_start_without_a_token(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(kb=tmp_path / "kb", server=Server(host=host))
    with pytest.raises(TokenNeeded, match=r"ARAG_TOKEN.*or listen on"):
        create_app(settings)
    monkeypatch.setenv("ARAG_TOKEN", "short")
    with pytest.raises(TokenNeeded, match="at least 16"):
        create_app(settings)
    monkeypatch.setenv("ARAG_TOKEN", TOKEN)
    assert token_of(settings.server) == TOKEN


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong-wrong-wrong-wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer é中".encode()},
        {"X-Api-Key": TOKEN},
        {"Cookie": f"token={TOKEN}"},
    ],
)
async def test_a_wrong_or_missing_token_gets_nothing_but_the_page(
    kb: KnowledgeBase, headers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_TOKEN", TOKEN)
    app = create_app(kb.settings, kb=kb)
    routes = [
        ("GET", "/api/sessions"),
        ("POST", "/api/ask"),
        ("GET", "/api/search?query=x"),
        ("GET", "/api/chunks/1-1"),
        ("GET", "/metrics"),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/mcp"),
        ("GET", "/api/health/../sessions"),
        ("GET", "//api/sessions"),
    ]
    async with app.router.lifespan_context(app), _client(app) as client:
        for method, path in routes:
            refused = await client.request(method, path, headers=headers)
            assert refused.status_code == 401, path
            assert refused.headers["www-authenticate"].startswith("Bearer")
            assert refused.json()["error"]["code"] == "unauthorised"
            assert TOKEN not in refused.text
        for path in ("/api/health", "/api/ready", "/docs", "/openapi.json"):
            assert (await client.get(path, headers=headers)).status_code == 200, path
        right = {"Authorization": f"bearer {TOKEN}", "Host": "docs.example.org"}
        assert (await client.get("/api/sessions", headers=right)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "foreign_host"),
        ({"Host": "127.0.0.1.evil.example:8765"}, "foreign_host"),
        ({"Host": "evil.example:127.0.0.1"}, "foreign_host"),
        ({"Host": "[::1].evil.example"}, "foreign_host"),
        ({"Host": ""}, "foreign_host"),
        ({"Origin": "https://evil.example"}, "foreign_origin"),
        ({"Origin": "null"}, "foreign_origin"),
        ({"Origin": "http://127.0.0.1:9999"}, "foreign_origin"),
        ({"Origin": "http://127.0.0.1:8765.evil.example"}, "foreign_origin"),
    ],
)
async def test_a_page_of_another_site_gets_nothing(
    api: Api, headers: dict[str, str], code: str
) -> None:
    async with api() as client:
        for method, path in (("GET", "/api/sessions"), ("POST", "/api/sessions"), ("GET", "/")):
            refused = await client.request(method, path, headers=headers)
            assert refused.status_code == 403, path
            assert refused.json()["error"]["code"] == code
        assert (await client.get("/api/sessions")).json()["total"] == 0


async def test_this_servers_own_page_and_programs_may_ask(api: Api) -> None:
    async with api() as client:
        for headers in (
            {},
            {"Origin": "http://127.0.0.1:8765"},
            {"Host": "localhost:8765", "Origin": "http://localhost:8765"},
            {"Host": "[::1]:8765"},
        ):
            assert (await client.get("/api/sessions", headers=headers)).status_code == 200


async def test_other_sites_are_let_in_one_by_one(api: Api) -> None:
    friend = {"Origin": "https://app.example.org"}
    preflight = {**friend, "Access-Control-Request-Method": "POST"}
    async with api() as client:
        closed = await client.options("/api/ask", headers=preflight)
        assert "access-control-allow-origin" not in closed.headers
    async with api(allow_origins=("https://app.example.org",)) as client:
        allowed = await client.get("/api/sessions", headers=friend)
        asked = await client.options("/api/ask", headers=preflight)
        refused = await client.get("/api/sessions", headers={"Origin": "https://evil.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://app.example.org"
    assert asked.status_code == 200
    assert refused.status_code == 403
    assert "access-control-allow-origin" not in refused.headers


def test_tokens_are_compared_in_constant_time(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    monkeypatch.setenv("ARAG_TOKEN", TOKEN)

    def watched(given: bytes, token: bytes) -> bool:
        compared.append((given, token))
        return given == token

    monkeypatch.setattr("agentic_rag.server.authorisation.hmac.compare_digest", watched)
    app = create_app(kb.settings, kb=kb)

    async def ask() -> None:
        async with app.router.lifespan_context(app), _client(app) as client:
            await client.get("/api/sessions", headers={"Authorization": "Bearer guess"})

    asyncio.run(ask())
    assert compared == [(b"guess", TOKEN.encode())]


def _client(app: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765")
