"""Fetching URLs, from a real server on loopback."""

import time
from collections.abc import Iterator

import pytest

from agentic_rag.documents import TooLarge, fetching, parse
from agentic_rag.documents.fetching import (
    BadUrl,
    Bounds,
    NotFetched,
    PrivateAddress,
    fetch,
    is_url,
    web_source,
)
from agentic_rag.errors import AragError
from tests.website import PAGE, website

Site = tuple[str, list[str]]
HERE = Bounds(allow_private=True, seconds=5)
MOST = 1_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with website() as served:
        yield served


def test_a_page_is_read_as_its_main_text_with_headings_and_tables(
    site: Site,
) -> None:
    content = web_source(f"{site[0]}/page#top", HERE).read(MOST)
    document = parse(f"{site[0]}/page", content.data, (), content.media_type)
    assert document.title == "泵站手册"
    assert [heading.text for heading in document.headings] == ["维护"]
    assert "蓝桥泵站每季度检修一次" in document.text
    assert "叶轮 | 半年" in document.text
    assert len(document.tables) == 1
    assert "Cookie" not in document.text and "Products" not in document.text


def test_what_the_server_says_a_page_is_counts_more_than_its_suffix(
    site: Site,
) -> None:
    fetched = fetch(f"{site[0]}/page/index.php?a=b", HERE, MOST)
    document = parse(f"{site[0]}/page/index.php?a=b", fetched.data, (), fetched.media_type)
    assert document.media_type == "text/html"


def test_a_short_page_in_gbk_is_read_whole(site: Site) -> None:
    fetched = fetch(f"{site[0]}/gbk", HERE, MOST)
    document = parse(f"{site[0]}/gbk", fetched.data, (), fetched.media_type)
    assert "蓝桥泵站在河的北岸。" in document.text


def test_the_uri_of_a_source_is_the_url_as_written_without_its_fragment() -> None:
    source = web_source(" https://例子.cn/手册?页=1#节 ", HERE)
    assert source.uri == "https://例子.cn/手册?页=1"
    assert source.explicit


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/a", "http://[::1]:9/a", "http://[::1]/a"])
def test_a_refused_address_is_shown_with_its_port_and_without_its_query(address: str) -> None:
    with pytest.raises(PrivateAddress) as refused:
        fetch(f"{address}?key=secret", Bounds(), MOST)

    assert str(refused.value).startswith(f"{address} leads to the private address ")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "2130706433",
        "0x7f000001",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
    ],
)
def test_private_addresses_are_refused_however_they_are_written(site: Site, host: str) -> None:
    port = site[0].rpartition(":")[2]
    with pytest.raises(PrivateAddress, match=r"web\.allow_private"):
        fetch(f"http://{host}:{port}/page", Bounds(), MOST)
    assert site[1] == []


def test_a_redirect_to_a_private_address_is_refused_before_it_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no public server here: 127.0.0.1 plays one, 127.0.0.2 stays private.
    monkeypatch.setattr(fetching, "_is_public", lambda address: address == "127.0.0.1")
    assert fetch(f"{site[0]}/near", Bounds(), MOST).data == PAGE
    with pytest.raises(PrivateAddress, match=r"127\.0\.0\.2"):
        fetch(f"{site[0]}/away", Bounds(), MOST)
    assert site[1] == ["/near", "/page", "/away"]


def test_a_redirect_to_a_file_is_refused(site: Site) -> None:
    with pytest.raises(BadUrl, match="only http"):
        fetch(f"{site[0]}/file", HERE, MOST)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "does not exist (404 Not Found); check the address"),
        ("secret", "may not be read (403 Forbidden)"),
        ("loop", "redirects more than 10 times"),
    ],
)
def test_a_refusal_is_one_clear_sentence(site: Site, path: str, said: str) -> None:
    with pytest.raises(NotFetched) as raised:
        fetch(f"{site[0]}/{path}", HERE, MOST)
    assert said in str(raised.value)


def test_a_page_that_unpacks_to_more_than_is_allowed_is_refused(
    site: Site,
) -> None:
    with pytest.raises(TooLarge, match=r"index\.max_file_mb"):
        fetch(f"{site[0]}/bomb", HERE, MOST)


def test_a_page_that_trickles_ends_at_the_time_limit(site: Site) -> None:
    began = time.monotonic()
    with pytest.raises(NotFetched, match=r"longer than 1 s; try again, or raise web\.timeout"):
        fetch(f"{site[0]}/slow", Bounds(allow_private=True, seconds=1), MOST)
    assert time.monotonic() - began < 5


def test_a_server_that_asks_to_come_again_in_a_moment_is_asked_again(
    site: Site,
) -> None:
    assert fetch(f"{site[0]}/busy", HERE, MOST).data == PAGE
    assert len(site[1]) == 2


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFetched, match="could not be fetched"):
        fetch("http://127.0.0.1:9/page", HERE, MOST)
    with pytest.raises(NotFetched, match=r"The host 'nowhere\.invalid' is not known"):
        fetch("https://nowhere.invalid/page", HERE, MOST)


@pytest.mark.parametrize(
    "url", ["ftp://example.com/a", "file:///etc/hostname", "http://", "http://0177.0.0.1/x"]
)
def test_what_is_no_web_address_is_refused_at_once(url: str) -> None:
    assert is_url(url)
    with pytest.raises(BadUrl):
        web_source(url, Bounds())


def test_a_url_with_a_password_is_refused_and_the_password_not_shown() -> None:
    with pytest.raises(AragError) as raised:
        web_source("https://me:hunter2@example.com/a", Bounds())
    assert "hunter2" not in str(raised.value)


def test_paths_are_no_urls() -> None:
    assert not is_url("docs/a.md")
    assert not is_url("./http:/x")
