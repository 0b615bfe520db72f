"""What a provider answers instead of results: one sentence each, and never "nothing was found"."""

import asyncio
import gzip
import logging
import re
import socket
import time
import traceback
from typing import Any

import pytest

from agentic_rag.web_search import WebSearchUnavailable
from tests.web_search.provider_server import Reply, serving
from tests.web_search.test_providers import ENV, KEY, NAMES, found, provider, spoken

HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(text: str, title: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{text}".encode()


async def said(name: str, reply: Reply, **more: Any) -> str:
    """The sentence that a reply ends in; neither the key nor an address's password is in it."""
    with pytest.raises(WebSearchUnavailable) as raised:
        await found(name, reply, **more)
    message = str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    assert "\n" not in message and message.endswith(".") and "\x1b" not in message
    return message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply({}, 402), "takes no more searches of this account (402"),
        (Reply({}, 429), "takes no more searches for now (429); try again later"),
        (Reply({}, 429, {"Retry-After": "30"}), "try again in 30 s"),
        (Reply({}, 404), "has nothing at that address (404); check web_search.url"),
        (Reply({}, 500), "fails (500); try again later"),
        (Reply(page("down"), 503, HTML), "fails (503); try again later"),
        (Reply({"error": "bad \x1b[31mquery"}, 400), "does not take the search (400: bad query)"),
        (Reply(page("Hello", "我的 搜索"), 200, HTML), "instead of JSON (200: “我的 搜索”)"),
        (Reply(page("<form id=captcha>"), 202, HTML), "such as a captcha (202)"),
        (Reply(page("请完成安全验证"), 200, HTML), "such as a captcha (200)"),
        (Reply(page("Verify you are human"), 403, HTML), "such as a captcha (403)"),
        (Reply(b"", 200), "answers with nothing (200)"),
        (Reply(b"", 204), "answers with nothing (204)"),
        (Reply(b"ok", 200), "something that is not JSON (200)"),
        (Reply(b"[" * 100_000, 200), "something that is not JSON (200)"),
        (Reply(b"\xff\xfe\x00", 200), "something that is not JSON (200)"),
        (Reply([{"url": "https://a.org"}]), "JSON that holds no list of results"),
        (Reply({"hits": []}), "JSON that holds no list of results"),
        (Reply({"results": "none", "organic_results": {}}), "JSON that holds no list of results"),
        (Reply({"results": ["a"], "organic_results": ["a"]}), "JSON that holds no list of results"),
        (Reply({"error": "backend down"}), "answers with an error (backend down)"),
        (Reply({"error": "Your account has run out of searches."}), "takes no more searches of"),
    ],
)
async def test_what_is_no_list_of_results_is_one_sentence(
    name: str, reply: Reply, words: str
) -> None:
    assert words in await said(name, reply)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_by_its_variable(status: int) -> None:
    body = {"detail": {"error": f"Unauthorized: {KEY} is not a key"}}
    message = await said("tavily", Reply(body, status))
    assert f"refuses the key in TAVILY_API_KEY ({status}: Unauthorized: … is not a key)" in message
    message = await said("serpapi", Reply({"error": "Invalid API key."}, status))
    assert f"refuses the key in SERPAPI_API_KEY ({status}: Invalid API key)" in message
    assert "refuses the key in SERPAPI_API_KEY" in await said(
        "serpapi", Reply({"error": "Invalid API key."}, 200)
    )


@pytest.mark.parametrize("status", [432, 433])
async def test_a_plan_of_tavily_that_is_used_up_is_said(status: int) -> None:
    body = {"detail": {"error": "This request exceeds your plan's set usage limit."}}
    assert "takes no more searches of this account" in await said("tavily", Reply(body, status))


async def test_a_searxng_without_json_says_where_to_have_it() -> None:
    message = await said("searxng", Reply(page("Forbidden", "403 Forbidden"), 403, HTML))
    assert "add `json` to `formats` under `search` in its settings.yml" in message
    assert "wants a key (401)" in await said("searxng", Reply(b"", 401))


async def test_an_empty_list_of_a_searxng_whose_engines_were_turned_away_is_no_answer() -> None:
    reply = spoken("searxng")
    reply["unresponsive_engines"] = [["google", "CAPTCHA"], ["bing", "Suspended"], ["qwant", ""]]
    message = await said("searxng", Reply(reply))
    assert "its engines did not answer: google: CAPTCHA, bing: Suspended, qwant" in message


@pytest.mark.parametrize("name", NAMES)
async def test_an_empty_list_that_comes_with_202_is_not_nothing_found(name: str) -> None:
    assert "not because there are none" in await said(name, Reply(spoken(name), 202))


async def test_a_search_that_serpapi_has_not_finished_is_not_nothing_found() -> None:
    reply = {"search_metadata": {"status": "Processing"}}
    assert "not because there are none (200, Processing)" in await said("serpapi", Reply(reply))


@pytest.mark.parametrize("name", NAMES)
async def test_a_redirect_is_not_followed_and_does_not_show_the_key(name: str) -> None:
    with serving(lambda asked: Reply(spoken(name))) as other:
        place = f"{other.url.replace('//', f'//{KEY}@')}/{KEY}/search?api_key={KEY}"
        redirect = Reply(b"", 302, {"Location": place})
        message = await said(name, redirect, api_key_env="TAVILY_API_KEY")
        assert f"the server points to {other.url}/…/search;" in message
        assert other.asked == []
    assert "another address" in await said(name, Reply(b"", 301, {"Location": "http://[x"}))


@pytest.mark.parametrize("name", NAMES)
async def test_a_server_that_does_not_answer_in_time_is_named(name: str) -> None:
    began = time.monotonic()
    message = await said(name, Reply(spoken(name), wait=20), timeout=0.4)
    assert "did not answer within 0.4 s; try again, or raise web_search.timeout" in message
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("name", NAMES)
async def test_nobody_at_the_address_is_said(name: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(WebSearchUnavailable, match=re.escape(url) + "/search cannot be reached"):
        await provider(name, url).search("q", language="en")
    with pytest.raises(WebSearchUnavailable, match="cannot be reached"):
        await provider(name, "http://nowhere.invalid", timeout=20).search("q", language="en")


@pytest.mark.parametrize("name", NAMES)
async def test_an_answer_of_more_than_two_megabytes_is_refused(name: str) -> None:
    big = gzip.compress(b'{"results": [' + b" " * 3_000_000 + b"]}")
    message = await said(name, Reply(big, 200, {"Content-Encoding": "gzip"}))
    assert "answers with more than 2 MB" in message
    broken = Reply(b"no gzip", 200, {"Content-Encoding": "gzip"})
    assert "broke off its answer" in await said(name, broken)


@pytest.mark.parametrize("name", NAMES)
async def test_half_an_answer_is_none(name: str) -> None:
    half = Reply(spoken(name, ("https://a.org/", "t", "s")), broken=True)
    assert "broke off its answer" in await said(name, half)


async def test_a_proxy_that_is_no_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://[")
    with pytest.raises(WebSearchUnavailable, match="check HTTPS_PROXY"):
        await provider("searxng", "https://search.example.org").search("q", language="en")


@pytest.mark.parametrize("name", NAMES)
async def test_a_cancelled_search_closes_its_connection_at_once(name: str) -> None:
    with serving(lambda asked: Reply(spoken(name), wait=30)) as server:
        search = asyncio.create_task(provider(name, server.url).search("q", language="en"))
        assert await asyncio.to_thread(server.came.wait, 10)
        began = time.monotonic()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert await asyncio.to_thread(server.left.wait, 5)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("name", ["serpapi", "tavily"])
async def test_the_key_is_sent_but_stands_in_no_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for status in (200, 302, 500):
        reply = Reply(spoken(name), status, {"Location": "/elsewhere"})
        with serving(lambda _, reply=reply: reply) as server:
            try:
                await provider(name, server.url).search("泵站", language="zh")
            except WebSearchUnavailable as error:
                assert KEY not in repr(error)
        sent = server.asked[0]
        assert KEY in (sent.params.get("api_key"), sent.headers.get("Authorization", "")[7:])
    assert any("HTTP Request" in record.message for record in caplog.records)
    assert KEY not in caplog.text
    assert ENV["SERPAPI_API_KEY"] == KEY


async def test_the_key_of_serpapi_goes_through_a_proxy_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda asked: Reply(spoken("serpapi"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        search = provider("serpapi", "http://serpapi.invalid").search("泵站", language="zh")
        assert await search == []
    assert proxy.asked[0].params["api_key"] == KEY
    assert KEY not in caplog.text


async def test_the_password_in_a_url_is_never_shown_and_its_refusal_is_told_as_such() -> None:
    with serving(lambda asked: Reply(b"no s3cret%40pw s3cret@pw", status=401)) as server:
        url = server.url.replace("http://", "http://me:s3cret%40pw@")
        with pytest.raises(WebSearchUnavailable) as raised:
            await provider("searxng", url).search("q", language="en")
    assert "s3cret" not in str(raised.value)
    assert "refuses the user name and password in web_search.url" in str(raised.value)
