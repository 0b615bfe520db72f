"""Results read into passages, from real servers on loopback."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentic_rag.config import Settings, Web, WebSearch
from agentic_rag.documents import fetching
from agentic_rag.text.tokens import count_tokens
from agentic_rag.web_search import WebPassage, WebResult, read_results
from tests.web_search.provider_server import Asked, Reply, serving
from tests.website import website

HTML = {"Content-Type": "text/html; charset=utf-8"}
QUERY = "泵站多久检修一次"
LONG_EN = "The park is open in spring, and visitors walk along the lake or hire a boat. " * 200


def settings(private: bool = True, **web_search: Any) -> Settings:
    return Settings(web=Web(allow_private=private), web_search=WebSearch(**web_search))


def article(text: str, title: str = "Page") -> Reply:
    paragraphs = "".join(f"<p>{line}</p>" for line in text.split("\n"))
    body = f"<html><head><title>{title}</title></head><body><article>{paragraphs}</article>"
    return Reply(body.encode(), headers=HTML)


def pages(**replies: Reply) -> Callable[[Asked], Reply]:
    return lambda asked: replies.get(asked.path.strip("/"), Reply(b"", 404))


@pytest.fixture
def site() -> Iterator[str]:
    with website() as (url, _):
        yield url


async def test_a_page_is_read_as_its_main_text(site: str) -> None:
    result = WebResult("泵站手册", f"{site}/page", "每季度检修…")
    (passage,) = await read_results([result], QUERY, settings())
    assert (passage.title, passage.url) == ("泵站手册", f"{site}/page")
    assert passage.fetched and not passage.problem
    assert "蓝桥泵站每季度检修一次" in passage.text
    assert "叶轮 | 半年" in passage.text
    assert "Cookie" not in passage.text and "<p>" not in passage.text


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing", "does not exist (404"),
        ("secret", "may not be read (403"),
        ("loop", "redirects more than 10 times"),
        ("file", "only http:// and https://"),
        ("bomb", "the page has over 5 MB"),
        ("slow", "took longer than 1 s; try again, or raise web_search.timeout"),
    ],
)
async def test_a_page_that_fails_keeps_its_snippet_and_says_why(
    site: str, path: str, problem: str
) -> None:
    results = [
        WebResult("One", f"{site}/{path}", "检修每季度一次。"),
        WebResult("Two", f"{site}/gbk", "河的北岸"),
    ]
    first, second = await read_results(results, QUERY, settings(timeout=1))
    assert first.text == "检修每季度一次。" and not first.fetched
    assert problem in first.problem
    assert second.fetched and "蓝桥泵站在河的北岸。" in second.text


async def test_private_addresses_are_not_read_unless_that_is_allowed(site: str) -> None:
    results = [
        WebResult("One", f"{site}/page", "检修"),
        WebResult("Two", "http://169.254.169.254/latest/meta-data", "secrets"),
        WebResult("Three", "http://2130706433/", "odd"),
    ]
    with website() as (url, asked):
        results.append(WebResult("Four", f"{url}/page", "four"))
        passages = await read_results(results, QUERY, settings(private=False))
        assert asked == []
    assert [one.text for one in passages] == ["检修", "secrets", "odd", "four"]
    assert all("private address" in one.problem and not one.fetched for one in passages)


async def test_a_redirect_to_a_private_address_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    # There is no public server here: 127.0.0.1 plays one, 127.0.0.2 stays private.
    monkeypatch.setattr(fetching, "_is_public", lambda address: address == "127.0.0.1")
    results = [WebResult("A", f"{site}/away", "stays"), WebResult("B", f"{site}/near", "检修")]
    away, near = await read_results(results, QUERY, settings(private=False))
    assert not away.fetched and "127.0.0.2" in away.problem
    assert near.fetched


async def test_each_page_and_each_text_is_there_once_in_the_order_of_the_results(
    site: str,
) -> None:
    results = [
        WebResult("Gbk", f"{site}/gbk", "s"),
        WebResult("Redirected", f"{site}/near", "s"),
        WebResult("Its target", f"{site}/page", "s"),
        WebResult("Mirror", f"{site}/page/mirror", "s"),
        WebResult("Same again", f"{site}/gbk/#top", "s"),
        WebResult("No page", f"{site}/missing", "Equal  snippet"),
        WebResult("Nor this", f"{site}/missing/2", "equal snippet"),
    ]
    passages = await read_results(results, QUERY, settings())
    assert [one.title for one in passages] == ["Gbk", "Redirected", "No page"]


async def test_pages_are_cut_around_what_was_asked_and_share_the_tokens() -> None:
    wages = "An employer must not make unlawful deductions from wages."
    replies = {f"p{i}": article(f"{LONG_EN}\n{wages} {i}\n{LONG_EN}") for i in range(4)}
    with serving(pages(short=article(f"{wages} That is all."), **replies)) as server:
        results = [WebResult(f"P{i}", f"{server.url}/p{i}", "") for i in range(4)]
        results.insert(1, WebResult("Short", f"{server.url}/short", ""))
        chosen = settings(page_tokens=300, total_tokens=1000)
        passages = await read_results(results, "Are deductions from wages unlawful?", chosen)
    sizes = [count_tokens(one.text) for one in passages]
    assert [one.title for one in passages] == ["P0", "Short", "P1", "P2", "P3"]
    assert all(wages in one.text for one in passages)
    assert all(size <= 300 for size in sizes) and sum(sizes) <= 1000
    assert min(size for size in sizes if size > 50) > 200


async def test_with_few_tokens_there_are_fewer_passages_not_empty_ones() -> None:
    results = [WebResult(f"R{i}", f"http://a.org/{i}", f"{i} " + LONG_EN) for i in range(20)]
    passages = await read_results(results, "lake", settings(total_tokens=300, read_pages=False))
    assert [one.title for one in passages] == ["R0", "R1", "R2", "R3", "R4", "R5"]
    assert all(20 < count_tokens(one.text) <= 50 for one in passages)


async def test_without_reading_pages_the_snippets_are_the_passages() -> None:
    with serving(pages()) as server:
        result = WebResult("One", f"{server.url}/p", "每季度一次")
        passages = await read_results([result], QUERY, settings(read_pages=False))
        assert server.asked == []
    off = "web_search.read_pages is off"
    assert passages == [WebPassage("One", f"{server.url}/p", "每季度一次", False, off)]


async def test_a_wall_before_the_page_is_not_taken_for_the_page() -> None:
    wall = article("Please accept all cookies to continue. " * 9, "Just a moment")
    empty = Reply(b"<html><body><div id=app></div><script>x</script>", headers=HTML)
    video = Reply(b"\x00\x00\x00\x18ftypmp42" + b"\x00" * 99, headers={"Content-Type": "video/mp4"})
    archive = Reply(b"PK\x03\x04" + b"\x00" * 99, headers={"Content-Type": "application/zip"})
    with serving(pages(wall=wall, empty=empty, video=video, zip=archive)) as server:
        names = ("wall", "empty", "video", "zip")
        results = [WebResult(n, f"{server.url}/{n}", f"泵站每季度检修，{n}") for n in names]
        passages = await read_results(results, QUERY, settings())
    assert [one.text for one in passages] == [f"泵站每季度检修，{n}" for n in names]
    assert not any(one.fetched for one in passages)
    assert "none of the words searched for" in passages[0].problem
    assert "no text" in passages[1].problem
    assert all(one.problem for one in passages)


async def test_a_result_without_a_title_gets_the_pages_and_one_without_words_its_title() -> None:
    with serving(pages(p=article("泵站每季度检修一次。" * 5, "检修规程"))) as server:
        results = [
            WebResult("127.0.0.1", f"{server.url}/p", ""),
            WebResult("Only a title", f"{server.url}/gone", ""),
        ]
        named, bare = await read_results(results, QUERY, settings())
    assert named.title == "检修规程"
    assert (bare.text, bare.fetched) == ("Only a title", False)


async def test_markup_that_breaks_readers_leaves_the_snippet_or_text() -> None:
    broken = Reply(b"<html><body>" + b"<div>" * 20_000 + "检修".encode(), headers=HTML)
    pdf = Reply(b"%PDF-1.7\nbroken", headers={"Content-Type": "application/pdf"})
    with serving(pages(deep=broken, pdf=pdf)) as server:
        results = [WebResult(n, f"{server.url}/{n}", f"检修 {n}") for n in ("deep", "pdf")]
        deep, damaged = await read_results(results, QUERY, settings())
    assert "检修" in deep.text
    assert damaged.text == "检修 pdf" and damaged.problem


async def test_pages_are_fetched_at_the_same_time() -> None:
    slow = Reply(article("泵站检修").body, headers=HTML, wait=1.0)
    with serving(lambda asked: slow) as server:
        results = [WebResult(f"{i}", f"{server.url}/{i}", "s") for i in range(5)]
        began = time.monotonic()
        await read_results(results, QUERY, settings())
        assert time.monotonic() - began < 4


def test_a_question_that_is_cancelled_waits_for_no_page() -> None:
    async def ask(url: str, came: threading.Event) -> float:
        reading = asyncio.create_task(
            read_results([WebResult("t", f"{url}/p", "s")], QUERY, settings(timeout=30))
        )
        assert await asyncio.to_thread(came.wait, 10)
        began = time.monotonic()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return began

    with serving(lambda asked: Reply(b"late", wait=3)) as server:
        # The end of the loop counts too: it waits for the threads it knows.
        began = asyncio.run(ask(server.url, server.came))
        assert time.monotonic() - began < 2
        late = next(t for t in threading.enumerate() if t.name == "web page")
        assert late.daemon
        late.join(15)  # the loop is closed by now, and the thread must not mind
        assert not late.is_alive()


async def test_no_results_are_no_passages() -> None:
    assert await read_results([], QUERY, settings()) == []
