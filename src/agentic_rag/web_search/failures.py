"""What an answer of a provider that holds no results stands for, each as one sentence.

A limit may come as a status (429; Tavily's 432 and 433), as JSON with status 200 (SerpAPI), or as a
page with a captcha and any status (202 is usual): none of these means that nothing was found.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentic_rag.documents.cleaning import one_line
from agentic_rag.models.embedders.failures import retry_after, words_of
from agentic_rag.web_search.provider import WebSearchUnavailable

if TYPE_CHECKING:
    from agentic_rag.web_search.service import Service

_LOOKED_AT = 20_000  # characters of a page
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_LIMITING_PAGE = re.compile(
    r"captcha|unusual traffic|not a robot|are you (?:a )?(?:robot|human)|"
    r"verify (?:that )?you(?: are|'re) (?:a )?human|rate.?limit|too many requests|access denied|"
    r"just a moment|验证码|人机验证|安全验证|验证您是|(?:访问|请求|操作)(?:过于|太)频繁",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"run out of searches|quota|plan.{0,20}limit|usage limit|exceed|too many|rate.?limit|throttl",
    re.IGNORECASE,
)
_KEY = re.compile(r"\bapi.?key\b|unauthori[sz]ed", re.IGNORECASE)


def refusal(
    service: "Service", status: int, headers: Mapping[str, str], body: str
) -> WebSearchUnavailable:
    """What a status outside 200 to 299 stands for. `headers` by lower-case name."""
    said = f"{status}: {_said(service, body)}".removesuffix(": ")
    title = service.title
    if status in (402, 432, 433):
        return _no_more(service, said)
    if status == 429:
        wait = retry_after(headers)
        when = f"in {wait:.0f} s" if wait else "later"
        return WebSearchUnavailable(
            f"{title} takes no more searches for now ({said}); try again {when}, or look at the "
            "limits of the account there."
        )
    if _is_page(body) and _LIMITING_PAGE.search(body[:_LOOKED_AT]):
        return _limited(service, status)
    if status == 403 and service.forbidden:
        return WebSearchUnavailable(f"{title} refuses ({said}); {service.forbidden}.")
    if status in (401, 403):
        return _denied(service, said)
    if status in (404, 405, 410):
        return WebSearchUnavailable(
            f"{title} has nothing at that address ({said}); check web_search.url."
        )
    if 300 <= status < 400:
        return _elsewhere(service, headers)
    if status in (400, 413, 414, 422):
        return WebSearchUnavailable(
            f"{title} does not take the search ({said}); {service.refused}."
        )
    return WebSearchUnavailable(f"{title} fails ({said}); try again later.")


def not_json(service: "Service", status: int, body: str) -> WebSearchUnavailable:
    """For a body that was to be JSON and is not."""
    if not _is_page(body):
        what = "something that is not JSON" if body.strip() else "nothing"
        return WebSearchUnavailable(
            f"{service.title} answers with {what} ({status}); check web_search.url, or try again "
            "later."
        )
    if _LIMITING_PAGE.search(body[:_LOOKED_AT]):
        return _limited(service, status)
    found = _TITLE.search(body[:_LOOKED_AT])
    name = f": “{one_line(service.hiding_key(found[1]))}”" if found else ""
    return WebSearchUnavailable(
        f"{service.title} answers with a web page instead of JSON ({status}{name}); check "
        "web_search.url."
    )


def other_shape(service: "Service", body: str = "") -> WebSearchUnavailable:
    """For JSON that holds no list of results; `body`, where it was an object, may say why."""
    said = _said(service, body)
    if said and _KEY.search(said) and service.key_variable:
        return _denied(service, said)
    if said and _QUOTA.search(said):
        return _no_more(service, said)
    if said:
        return WebSearchUnavailable(
            f"{service.title} answers with an error ({said}); try again later."
        )
    return WebSearchUnavailable(
        f"{service.title} answers with JSON that holds no list of results; check web_search.url."
    )


def unfinished(service: "Service", said: str) -> WebSearchUnavailable:
    """For an answer whose empty list does not mean that there is nothing."""
    return WebSearchUnavailable(
        f"{service.title} gave no results, and not because there are none "
        f"({one_line(service.hiding_key(said))}); try again later."
    )


def _limited(service: "Service", status: int) -> WebSearchUnavailable:
    return WebSearchUnavailable(
        f"{service.title} answers with a page that turns programs away, such as a captcha "
        f"({status}); search less often, or try again later."
    )


def _no_more(service: "Service", said: str) -> WebSearchUnavailable:
    return WebSearchUnavailable(
        f"{service.title} takes no more searches of this account ({said}); look at its plan and "
        "limits there."
    )


def _denied(service: "Service", said: str) -> WebSearchUnavailable:
    if service.key_variable:
        return WebSearchUnavailable(
            f"{service.title} refuses the key in {service.key_variable} ({said}); put the right "
            "key into that environment variable."
        )
    if urlsplit(service.url).username:
        return WebSearchUnavailable(
            f"{service.title} refuses the user name and password in web_search.url ({said}); "
            "correct them there."
        )
    return WebSearchUnavailable(
        f"{service.title} wants a key ({said}); put it into an environment variable and name that "
        "one in web_search.api_key_env."
    )


def _elsewhere(service: "Service", headers: Mapping[str, str]) -> WebSearchUnavailable:
    place = "another address"
    try:
        parts = urlsplit(headers.get("location", ""))
        if parts.hostname:  # its parameters may hold the key
            place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        pass
    return WebSearchUnavailable(
        f"{service.title} is elsewhere: the server points to "
        f"{one_line(service.hiding_key(place))}; set web_search.url to where it is."
    )


def _said(service: "Service", body: str) -> str:
    return one_line(service.hiding_key(words_of(body))).rstrip(" .。")


def _is_page(body: str) -> bool:
    return body.lstrip("\ufeff \t\r\n").startswith("<")
