"""Which provider `[web_search]` names, or whose key or address is at hand. Nothing is asked."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from agentic_rag.web_search import searxng, serpapi, tavily
from agentic_rag.web_search.provider import BadWebSearch, Provider
from agentic_rag.web_search.service import Service, endpoint, shown

if TYPE_CHECKING:
    from agentic_rag.config import Settings, WebSearch

# In the order in which a key at hand decides.
_KEY_VARIABLE = {"serpapi": "SERPAPI_API_KEY", "tavily": "TAVILY_API_KEY"}
_TITLE = {"serpapi": "SerpAPI", "tavily": "Tavily", "searxng": "SearXNG"}
_OWN_URL = {"serpapi": serpapi.URL, "tavily": tavily.URL}
_NAMES = (*_TITLE, "none")


def resolve_provider(settings: "Settings", env: Mapping[str, str] = os.environ) -> Provider | None:
    """The provider that `settings` and `env` come to; None where the web is not searched.

    Without a named one: the SearXNG at `web_search.url`, else the provider whose key is in `env`.
    Raises BadWebSearch with one sentence.
    """
    wanted = settings.web_search
    name = _named(wanted) or _at_hand(wanted, env)
    if name == "none":
        return None
    key_variable, key = _key(name, wanted, env)
    url = _url(name, wanted)
    title = f"{_TITLE[name]} at {shown(url)}" if wanted.url else _TITLE[name]
    if name == "serpapi":
        service = Service(
            title, url, wanted.timeout, key, key_variable,
            refused="check web_search.location, web_search.hl and web_search.gl",
        )  # fmt: skip
        return serpapi.SerpAPI(service, wanted.results, wanted.location, wanted.hl, wanted.gl)
    if name == "tavily":
        return tavily.Tavily(Service(title, url, wanted.timeout, key, key_variable), wanted.results)
    service = Service(
        title, url, wanted.timeout, key, key_variable,
        forbidden=searxng.JSON_IS_OFF,
        refused="check web_search.hl",
    )  # fmt: skip
    return searxng.SearXNG(service, wanted.results, wanted.hl)


def _named(wanted: "WebSearch") -> str:
    """The provider that is named; "" for none. Raises BadWebSearch."""
    name = wanted.provider.strip().lower()
    if not name or name in _NAMES:
        return name
    close = get_close_matches(name, _NAMES, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"write one of {', '.join(_NAMES)}."
    raise BadWebSearch(
        f"There is no web search provider '{wanted.provider}' (web_search.provider); {hint}"
    )


def _at_hand(wanted: "WebSearch", env: Mapping[str, str]) -> str:
    if wanted.url.strip():
        return "searxng"
    if variable := wanted.api_key_env.strip():
        of_variable = {variable: name for name, variable in _KEY_VARIABLE.items()}
        if variable not in of_variable:
            raise BadWebSearch(
                f"web_search.api_key_env names {variable}, but not whose key that is; set "
                "web_search.provider to serpapi or tavily."
            )
        return of_variable[variable]
    return next(
        (n for n, variable in _KEY_VARIABLE.items() if env.get(variable, "").strip()), "none"
    )


def _key(name: str, wanted: "WebSearch", env: Mapping[str, str]) -> tuple[str, str]:
    """The variable of the key and the key, two "" where none is needed. Raises BadWebSearch."""
    asked = wanted.api_key_env.strip()
    variable = asked or _KEY_VARIABLE.get(name, "")
    if not variable:
        return "", ""
    key = env.get(variable, "").strip()
    if not key and asked:
        raise BadWebSearch(
            f"web_search.api_key_env names {asked}, which is not set; set that environment "
            "variable, or correct the name."
        )
    if not key:
        raise BadWebSearch(
            f"Web search by {_TITLE[name]} needs a key; put it into the environment variable "
            f"{variable}, or name another one in web_search.api_key_env."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadWebSearch(
            f"The key for {_TITLE[name]} holds characters that no key has; correct the environment "
            f"variable {variable}."
        )
    return variable, key


def _url(name: str, wanted: "WebSearch") -> str:
    """Where searches are sent to. Raises BadWebSearch."""
    given = wanted.url.strip()
    if not given and name == "searxng":
        raise BadWebSearch(
            "Web search by SearXNG needs its address; set web_search.url, such as "
            "http://127.0.0.1:8888."
        )
    if not given:
        return _OWN_URL[name]
    try:
        return endpoint(given)
    except ValueError:
        raise BadWebSearch(
            "web_search.url is no http address; write it like http://127.0.0.1:8888."
        ) from None
