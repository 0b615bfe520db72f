"""SerpAPI: Google's results as JSON, by the engine `google_light` (https://serpapi.com).

`location`, `hl` and `gl` say where and in which language is searched; an error comes as
`{"error": …}`, also with status 200, and so does the news that there is nothing.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentic_rag.web_search import failures
from agentic_rag.web_search.provider import Language, WebResult
from agentic_rag.web_search.results import Names, results_of, shortened
from agentic_rag.web_search.service import Request, Service, asked

URL = "https://serpapi.com/search.json"
_NAMES = Names(url="link", title="title", snippet="snippet", date="date")
# By the question's language; those for Chinese are the conditional workflow's.
_LOCATION: Mapping[Language, str] = {"zh": "China", "en": "United States"}
_HL: Mapping[Language, str] = {"zh": "zh-cn", "en": "en"}
_GL: Mapping[Language, str] = {"zh": "cn", "en": "us"}
_NOTHING = re.compile(r"hasn.?t returned any results|no results", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SerpAPI:
    """Google by way of SerpAPI. Implements `Provider`; an empty `location`, `hl` or `gl` goes by
    the question's language."""

    service: Service
    results: int
    location: str = ""
    hl: str = ""
    gl: str = ""
    name: str = "serpapi"

    async def search(self, query: str, *, language: Language) -> list[WebResult]:
        """As in `Provider`."""
        query = shortened(query)
        if not query:
            return []
        params = {
            "engine": "google_light",
            "q": query,
            "location": self.location or _LOCATION[language],
            "hl": self.hl or _HL[language],
            "gl": self.gl or _GL[language],
            "num": str(self.results),
        }
        answer = await asked(self.service, Request("GET", params, key_param="api_key"))
        entries = self._entries(answer.status, answer.data)
        return results_of(self.service, entries, _NAMES, self.results)

    def _entries(self, status: int, data: Mapping[str, Any]) -> list[object]:
        entries = data.get("organic_results")
        if isinstance(entries, list) and entries:
            return entries
        error = data.get("error")
        if isinstance(error, str) and _NOTHING.search(error):
            return []
        about = data.get("search_metadata")
        state = about.get("status") if isinstance(about, Mapping) else None
        if error or (entries is None and state is None):
            raise failures.other_shape(self.service, json.dumps(data))
        if status != 200 or state not in (None, "Success", "Cached"):
            raise failures.unfinished(self.service, f"{status}, {state or 'no status'}")
        # A page of Google's without organic results, as for a sum, has no such list.
        if entries is None or entries == []:
            return []
        raise failures.other_shape(self.service)
