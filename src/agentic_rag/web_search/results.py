"""Raw entries of a provider's list -> results: plain text, safe addresses, each page once."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from agentic_rag.documents.cleaning import one_line
from agentic_rag.web_search import failures
from agentic_rag.web_search.provider import WebResult
from agentic_rag.web_search.service import Service

_LONGEST_URL = 2_000  # characters; browsers and proxies refuse not much longer ones
_LONGEST_TITLE = 300  # characters
_LONGEST_SNIPPET = 4_000  # characters; Tavily joins several pieces of a page
_LONGEST_QUERY = 400  # characters; Tavily refuses more, and no engine reads more
_LONGEST_RAW = 20_000  # characters looked at

_ATTRIBUTES = r"(?:\s+[\w:-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"']+))*\s*/?>"
_SCRIPT = re.compile(r"<(script|style)\b[^<>]{0,500}>.{0,5000}?</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|br|cite|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|input|kbd|li|"
    rf"mark|ol|p|pre|q|s|script|small|span|strong|style|sub|sup|svg|table|tbody|td|th|tr|tt|u|ul|"
    rf"var|wbr){_ATTRIBUTES}",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"<(?:br|p|div|li|tr|hr)\b", re.IGNORECASE)
# What engines mark the words of a query with, and some escape.
_MARKED = re.compile(rf"</?(?:b|em|i|mark|span|strong){_ATTRIBUTES}", re.IGNORECASE)
# Marks that turn the direction of what follows, and those without any width.
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]")
_UNSAFE = str.maketrans({" ": "%20", "<": "%3C", ">": "%3E", '"': "%22", "`": "%60"})


@dataclass(frozen=True, slots=True)
class Names:
    """What a provider calls the parts of a result."""

    url: str
    title: str
    snippet: str
    date: str


def results_of(
    service: Service, entries: Sequence[object], names: Names, most: int
) -> list[WebResult]:
    """The usable ones among `entries`, in order, `most` of them at most.

    One without an address, or with one that is not for reading (`javascript:`, `file:`), is left
    out. Raises WebSearchUnavailable where no entry is a result at all.
    """
    found: dict[str, WebResult] = {}
    alike = False
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get(names.url), str):
            continue
        alike = True
        url = web_address(entry[names.url])
        if not url or page_key(url) in found:
            continue
        title = plain(entry.get(names.title))[:_LONGEST_TITLE]
        snippet = plain(entry.get(names.snippet))[:_LONGEST_SNIPPET]
        date = plain(entry.get(names.date))[:40]
        found[page_key(url)] = WebResult(title or host(url), url, snippet, date)
    if entries and not alike:
        raise failures.other_shape(service)
    return list(found.values())[:most]


def plain(text: object) -> str:
    """A title or snippet on one line, without tags and entities; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    text = _SCRIPT.sub(" ", text[:_LONGEST_RAW])
    text = _TAG.sub("", _BREAKS.sub(r" \g<0>", text))
    text = _MARKED.sub("", html.unescape(text))
    return one_line(_UNSEEN.sub("", text))


def web_address(url: str) -> str:
    """`url` if a reader can be sent there: http or https, a host, no password; else ""."""
    url = url.strip()
    if len(url) > _LONGEST_URL or any(c != " " and not c.isprintable() for c in url):
        return ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    if not usable or re.search(r"[@\\\s]", parts.netloc):
        return ""
    return url.translate(_UNSAFE)


def page_key(url: str) -> str:
    """The same for two addresses of one page: scheme, case of the host, a slash at the end, the
    fragment and the usual port make no difference."""
    parts = urlsplit(url)
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{(parts.hostname or '').rstrip('.')}{port}{parts.path.rstrip('/')}{query}"


def host(url: str) -> str:
    """The name of the machine in an address."""
    return urlsplit(url).hostname or ""


def shortened(query: str) -> str:
    """A query as providers take it: one line of at most 400 characters, cut between words."""
    query = one_line(query)
    if len(query) <= _LONGEST_QUERY:
        return query
    cut = query[:_LONGEST_QUERY]
    before, space, _ = cut.rpartition(" ")
    return before if space and len(before) > _LONGEST_QUERY // 2 else cut
