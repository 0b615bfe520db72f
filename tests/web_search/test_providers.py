"""The three providers against a server on loopback that speaks their JSON."""

from typing import Any, Literal

import pytest

from agentic_rag.config import Settings, WebSearch
from agentic_rag.web_search import Provider, WebResult, resolve_provider
from tests.web_search.provider_server import Asked, Reply, serving

KEY = "k-3f9a77"
ENV = {"SERPAPI_API_KEY": KEY, "TAVILY_API_KEY": KEY}
NAMES = ("serpapi", "tavily", "searxng")


def provider(name: str, url: str, **more: Any) -> Provider:
    found = resolve_provider(Settings(web_search=WebSearch(provider=name, url=url, **more)), ENV)
    assert found is not None
    return found


def spoken(name: str, *results: Any) -> dict[str, Any]:
    """The JSON of a provider with these (url, title, snippet)."""
    words = ("link", "title", "snippet") if name == "serpapi" else ("url", "title", "content")
    entries = [
        dict(zip(words, one, strict=False)) if isinstance(one, tuple) else one for one in results
    ]
    if name == "serpapi":
        return {"search_metadata": {"status": "Success"}, "organic_results": entries}
    if name == "tavily":
        return {"query": "q", "answer": None, "images": [], "results": entries}
    return {"query": "q", "number_of_results": 0, "results": entries, "unresponsive_engines": []}


async def found(
    name: str,
    reply: Any,
    query: str = "泵站检修",
    language: Literal["zh", "en"] = "zh",
    **more: Any,
) -> tuple[list[WebResult], list[Asked]]:
    answer = reply if isinstance(reply, Reply) else Reply(reply)
    with serving(lambda asked: answer) as server:
        results = await provider(name, server.url, **more).search(query, language=language)
    return results, server.asked


async def test_serpapi_is_asked_as_the_seed_asks_it() -> None:
    page = spoken("serpapi", ("https://a.cn/1", "检修", "每季度一次"))
    page["organic_results"][0]["date"] = "2024年5月1日"
    results, (asked,) = await found("serpapi", page)
    assert results == [WebResult("检修", "https://a.cn/1", "每季度一次", "2024年5月1日")]
    assert (asked.method, asked.path) == ("GET", "/search")
    assert asked.params == {
        "engine": "google_light",
        "q": "泵站检修",
        "location": "China",
        "hl": "zh-cn",
        "gl": "cn",
        "num": "5",
        "api_key": KEY,
    }


async def test_serpapi_goes_by_the_language_of_the_question_unless_it_is_set() -> None:
    _, (asked,) = await found("serpapi", spoken("serpapi"), "pump service", "en")
    assert [asked.params[p] for p in ("location", "hl", "gl")] == ["United States", "en", "us"]
    _, (asked,) = await found(
        "serpapi", spoken("serpapi"), location="Austria", hl="de", gl="at", results=3
    )
    assert [asked.params[p] for p in ("location", "hl", "gl", "num")] == [
        "Austria",
        "de",
        "at",
        "3",
    ]


async def test_tavily_gets_its_key_in_a_header_and_the_query_in_the_body() -> None:
    page = spoken("tavily", ("https://a.org/", "Pumps", "Serviced every quarter."))
    results, (asked,) = await found("tavily", page, "pump service", "en")
    assert results == [WebResult("Pumps", "https://a.org/", "Serviced every quarter.")]
    assert (asked.method, asked.path, asked.params) == ("POST", "/search", {})
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body == {"query": "pump service", "max_results": 5}


async def test_searxng_is_asked_for_json_in_the_language_of_the_question() -> None:
    page = spoken("searxng", ("https://a.cn/1", "检修", "每季度一次"))
    page["results"][0]["publishedDate"] = "2024-05-01T00:00:00"
    results, (asked,) = await found("searxng", page)
    assert results == [WebResult("检修", "https://a.cn/1", "每季度一次", "2024-05-01T00:00:00")]
    assert asked.params == {"q": "泵站检修", "format": "json", "language": "zh-CN"}
    assert "Authorization" not in asked.headers
    _, (asked,) = await found("searxng", page, "pumps", "en")
    assert asked.params["language"] == "en"


@pytest.mark.parametrize(
    ("path", "asked_at"),
    [("", "/search"), ("/", "/search"), ("/sx/", "/sx/search"), ("/search?q=x", "/search")],
)
async def test_the_address_of_a_searxng_may_be_written_in_several_ways(
    path: str, asked_at: str
) -> None:
    with serving(lambda asked: Reply(spoken("searxng"))) as server:
        await provider("searxng", server.url + path).search("q", language="en")
    assert server.asked[0].path == asked_at


async def test_a_searxng_behind_a_password_or_a_token_is_asked_with_it() -> None:
    with serving(lambda asked: Reply(spoken("searxng"))) as server:
        with_password = server.url.replace("//", "//me:hunter2@")
        await provider("searxng", with_password).search("q", language="en")
        with_token = provider("searxng", server.url, api_key_env="TAVILY_API_KEY")
        await with_token.search("q", language="en")
    assert [one.headers["Authorization"] for one in server.asked] == [
        "Basic bWU6aHVudGVyMg==",
        f"Bearer {KEY}",
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_only_pages_that_can_be_read_are_results_each_once(name: str) -> None:
    results, _ = await found(
        name,
        spoken(
            name,
            ("javascript:alert(1)", "a", "b"),
            ("file:///etc/passwd", "a", "b"),
            ("data:text/html,x", "a", "b"),
            ("http://me:pw@a.org/", "a", "b"),
            ("http://[::1", "a", "b"),
            ("/url?q=https://a.org", "a", "b"),
            ("https://a.org/x\u202egnp.exe", "a", "b"),
            {"title": "no address", "snippet": "b", "content": "b"},
            "no result at all",
            None,
            ("https://A.org/Page/", "First", "one"),
            ("http://a.org/Page#part", "Again", "two"),
            ("https://a.org:443/Page", "Again", "three"),
            ("https://a.org/Page?id=2", None, None),
            ("https://例子.cn/手 册", "", "四"),
        ),
    )
    assert results == [
        WebResult("First", "https://A.org/Page/", "one"),
        WebResult("a.org", "https://a.org/Page?id=2", ""),
        WebResult("例子.cn", "https://例子.cn/手%20册", "四"),
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_tags_and_entities_are_gone_from_titles_and_snippets(name: str) -> None:
    results, _ = await found(
        name,
        spoken(
            name,
            (
                "https://a.org/1",
                "<b>Pump</b> &amp; <em class='hit'>valve</em>\n&nbsp;service",
                "&lt;b&gt;if&lt;/b&gt; a<b and c>d<br>泵站<script>alert(1)</script>\x1b[31m手册",
            ),
            ("https://a.org/2", "<img src=x onerror=alert(1)>", "\ud83d lone \u202e turned"),
        ),
    )
    assert [(one.title, one.snippet) for one in results] == [
        ("Pump & valve service", "if a<b and c>d 泵站 手册"),
        ("a.org", "lone turned"),
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_no_more_results_than_were_asked_for_and_none_endless(name: str) -> None:
    many = [(f"https://a.org/{i}", "t" * 9_000, "s" * 90_000) for i in range(12)]
    results, _ = await found(name, spoken(name, *many), results=3)
    assert [one.url for one in results] == [f"https://a.org/{i}" for i in range(3)]
    assert all(len(one.title) <= 300 and len(one.snippet) <= 4_000 for one in results)


@pytest.mark.parametrize("name", NAMES)
async def test_an_empty_list_is_no_error(name: str) -> None:
    assert (await found(name, spoken(name)))[0] == []


async def test_serpapi_says_in_words_that_there_is_nothing() -> None:
    nothing = {
        "search_metadata": {"status": "Success"},
        "search_information": {"organic_results_state": "Fully empty"},
        "error": "Google hasn't returned any results for this query.",
    }
    assert (await found("serpapi", nothing))[0] == []
    nothing["error"] = "Google hasn’t returned any results for this query."
    assert (await found("serpapi", nothing))[0] == []
    only_a_sum = {"search_metadata": {"status": "Success"}, "answer_box": {"result": "4"}}
    assert (await found("serpapi", only_a_sum))[0] == []


async def test_results_beside_a_warning_count() -> None:
    page = spoken("serpapi", ("https://a.org/", "t", "s")) | {"error": "some engines failed"}
    assert len((await found("serpapi", page))[0]) == 1
    page = spoken("searxng", ("https://a.org/", "t", "s"))
    page["unresponsive_engines"] = [["google", "CAPTCHA"]]
    assert len((await found("searxng", page))[0]) == 1


@pytest.mark.parametrize("name", NAMES)
async def test_a_blank_query_asks_nobody(name: str) -> None:
    assert await found(name, spoken(name), " \n\x00 ") == ([], [])


async def test_a_long_query_is_cut_between_words_to_what_tavily_takes() -> None:
    _, (asked,) = await found("tavily", spoken("tavily"), "pump service " * 90, "en")
    assert len(asked.body["query"]) <= 400
    assert asked.body["query"].split()[-1] in ("pump", "service")
    _, (asked,) = await found("tavily", spoken("tavily"), "泵站检修" * 200)
    assert asked.body["query"] == "泵站检修" * 100


async def test_a_query_is_sent_as_it_is_whatever_is_in_it() -> None:
    query = 'C++ & "泵站" 100% #1 =? \\'
    for name in NAMES:
        _, (asked,) = await found(name, spoken(name), query)
        assert (asked.body or {"query": asked.params.get("q")})["query"] == query
    _, (asked,) = await found("serpapi", spoken("serpapi"), "a\ud800b\x00c")
    assert asked.params["q"] == "abc"
