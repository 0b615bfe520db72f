"""SearXNG, a search engine of one's own that asks others (https://docs.searxng.org).

It answers in JSON only where its settings.yml lists that format. Engines that turned it away are
listed in `unresponsive_engines`: an empty list beside them does not mean that there is nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentic_rag.web_search import failures
from agentic_rag.web_search.provider import Language, WebResult
from agentic_rag.web_search.results import Names, plain, results_of, shortened
from agentic_rag.web_search.service import Request, Service, asked

JSON_IS_OFF = "add `json` to `formats` under `search` in its settings.yml, and restart it"
_NAMES = Names(url="url", title="title", snippet="content", date="publishedDate")
_LANGUAGE: Mapping[Language, str] = {"zh": "zh-CN", "en": "en"}
_SHOWN = 3  # engines named in a message


@dataclass(frozen=True, slots=True)
class SearXNG:
    """A SearXNG. Implements `Provider`; an empty `hl` goes by the question's language."""

    service: Service
    results: int
    hl: str = ""
    name: str = "searxng"

    async def search(self, query: str, *, language: Language) -> list[WebResult]:
        """As in `Provider`."""
        query = shortened(query)
        if not query:
            return []
        params = {"q": query, "format": "json", "language": self.hl or _LANGUAGE[language]}
        answer = await asked(self.service, Request("GET", params, bearer=True))
        entries = answer.data.get("results")
        if not isinstance(entries, list):
            raise failures.other_shape(self.service, json.dumps(answer.data))
        if not entries and answer.status != 200:
            raise failures.unfinished(self.service, str(answer.status))
        if not entries and (silent := _unresponsive(answer.data)):
            raise failures.unfinished(self.service, f"its engines did not answer: {silent}")
        return results_of(self.service, entries, _NAMES, self.results)


def _unresponsive(data: Mapping[str, Any]) -> str:
    """The engines that did not answer, each with its reason: "google: CAPTCHA, bing: timeout"."""
    engines = data.get("unresponsive_engines")
    if not isinstance(engines, list):
        return ""
    said = []
    for engine in engines[:_SHOWN]:
        parts = [engine] if isinstance(engine, str) else engine
        if isinstance(parts, list) and parts:
            said.append(": ".join(filter(None, (plain(part) for part in parts[:2]))))
    more = len(engines) - _SHOWN
    return ", ".join(filter(None, said)) + (f" and {more} more" if more > 0 else "")
