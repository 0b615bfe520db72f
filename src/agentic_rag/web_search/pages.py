"""Results -> passages: the pages fetched at the same time, read, cut to what fits the query.

A page that cannot be had leaves its snippet. Fetching blocks, so each page has a thread of its own;
these are daemons that nobody waits for, so a question that is cancelled ends at once and its
threads within the seconds that fetching may take.
"""

import asyncio
import contextvars
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentic_rag.config import Ocr
from agentic_rag.documents import TooLarge, parse
from agentic_rag.documents.fetching import Bounds, fetch
from agentic_rag.documents.parse import family_of
from agentic_rag.documents.reading import Reading
from agentic_rag.errors import AragError
from agentic_rag.web_search import cutting
from agentic_rag.web_search.provider import WebResult
from agentic_rag.web_search.results import host, page_key

if TYPE_CHECKING:
    from agentic_rag.config import Settings

_AT_ONCE = 8  # pages
_MOST_BYTES = 5_000_000  # of a page; larger ones are hardly pages
_GRACE = 5.0  # seconds that a thread may go on after its page was given up
_LEAST_TOKENS = 50  # of a passage; rather fewer passages than shorter ones
# Neither archives nor mailboxes, nor what takes long: they are no pages.
_READ = frozenset(
    ("html", "text", "markdown", "rst", "json", "csv", "pdf", "word", "slides", "open_document")
)
_NO_OCR = Reading(ocr=Ocr(enabled=False))  # minutes, where a page has seconds


@dataclass(frozen=True, slots=True)
class WebPassage:
    """What a page says about a query. Not `fetched`: the text is the search's own snippet, and
    `problem` says why."""

    title: str
    url: str
    text: str
    fetched: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    """A result as it was read, uncut."""

    result: WebResult
    content: cutting.Scored
    address: str  # where its text came from in the end
    fetched: bool
    problem: str = ""


async def read_results(
    results: Sequence[WebResult], query: str, settings: "Settings"
) -> list[WebPassage]:
    """Passages of `results`, in their order, each page and each text once.

    A passage has at most `page_tokens` of `settings.web_search` (o200k), all together have
    `total_tokens`, which they share as equally as their lengths allow. Private addresses are not
    read unless `web.allow_private` is on. Raises nothing: a page that fails keeps its snippet.
    """
    wanted = settings.web_search
    first: dict[str, WebResult] = {}
    for result in results:
        first.setdefault(page_key(result.url), result)
    most = max(1, wanted.total_tokens // _LEAST_TOKENS)
    read = await _all_read(list(first.values())[:most], query, settings)
    kept = _each_once(read)
    sizes = [one.content.size for one in kept]
    limit = cutting.fair_share(sizes, wanted.page_tokens, wanted.total_tokens)
    return [
        WebPassage(
            one.result.title, one.result.url, cutting.within(one.content, limit), one.fetched,
            one.problem,
        )
        for one in kept
    ]  # fmt: skip


async def _all_read(results: Sequence[WebResult], query: str, settings: "Settings") -> list[_Read]:
    if not settings.web_search.read_pages:
        why = "web_search.read_pages is off"
        return [await asyncio.to_thread(_as_snippet, one, query, why) for one in results]
    free = asyncio.Semaphore(_AT_ONCE)

    async def read(result: WebResult) -> _Read:
        async with free:
            return await _read(result, query, settings)

    return await asyncio.gather(*(read(result) for result in results))


def _each_once(read: Sequence[_Read]) -> list[_Read]:
    """Without pages that were read before under another address, and without equal texts."""
    seen: set[str] = set()
    kept = []
    for one in read:
        same = {page_key(one.address), " ".join(one.content.text.lower().split())}
        if not same & seen:
            kept.append(one)
        seen |= same
    return kept


async def _read(result: WebResult, query: str, settings: "Settings") -> _Read:
    """A page in a thread of its own, for as long as a page may take."""
    seconds = settings.web_search.timeout
    bounds = Bounds(settings.web.allow_private, seconds + _GRACE)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Read] = loop.create_future()
    given_up = threading.Event()

    def settle(read: _Read) -> None:
        if not done.done():
            done.set_result(read)

    def work() -> None:
        read = _fetched(result, query, bounds, given_up)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, read)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="web page", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await done
    except TimeoutError:
        why = f"the page took longer than {seconds:g} s; try again, or raise web_search.timeout"
        return _as_snippet(result, query, why)
    finally:
        given_up.set()


def _fetched(result: WebResult, query: str, bounds: Bounds, given_up: threading.Event) -> _Read:
    try:
        page = fetch(result.url, bounds, _MOST_BYTES)
        if given_up.is_set():
            return _as_snippet(result, query, "it was given up")
        family = family_of(page.url, page.data, page.media_type)
        if family is not None and family not in _READ:
            return _as_snippet(result, query, f"files of this kind ({family}) are not read here")
        document = parse(page.url, page.data, (), page.media_type, _NO_OCR)
        content = cutting.scored(document.text, query, result.snippet)
    except TooLarge:
        return _as_snippet(result, query, f"the page has over {_MOST_BYTES // 1_000_000} MB")
    except AragError as error:
        return _as_snippet(result, query, str(error))
    except Exception as error:  # whatever a stranger's page does to a parser
        return _as_snippet(result, query, f"the page cannot be read ({type(error).__name__})")
    snippet = _as_snippet(result, query, "")
    if not content.text:
        return replace(snippet, problem="the page holds no text")
    if snippet.content.fits and not content.fits:
        # A wall of cookies, a login, a captcha: the search engine saw another page.
        return replace(snippet, problem="the page that came has none of the words searched for")
    if result.title == host(result.url):
        result = replace(result, title=document.title)
    return _Read(result, content, page.url, True)


def _as_snippet(result: WebResult, query: str, problem: str) -> _Read:
    content = cutting.scored(result.snippet or result.title, query)
    return _Read(result, content, result.url, False, problem)
