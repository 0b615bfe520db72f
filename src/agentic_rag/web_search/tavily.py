"""Tavily's search (https://docs.tavily.com): results with the parts of a page that fit the query.

A plan that is used up is told by the statuses 432 and 433.
"""

import json
from dataclasses import dataclass

from agentic_rag.web_search import failures
from agentic_rag.web_search.provider import Language, WebResult
from agentic_rag.web_search.results import Names, results_of, shortened
from agentic_rag.web_search.service import Request, Service, asked

URL = "https://api.tavily.com/search"
_NAMES = Names(url="url", title="title", snippet="content", date="published_date")


@dataclass(frozen=True, slots=True)
class Tavily:
    """Tavily's index of the web, which goes by the query's own language. Implements `Provider`."""

    service: Service
    results: int
    name: str = "tavily"

    async def search(self, query: str, *, language: Language) -> list[WebResult]:
        """As in `Provider`."""
        query = shortened(query)
        if not query:
            return []
        body = {"query": query, "max_results": self.results}
        answer = await asked(self.service, Request("POST", bearer=True, body=body))
        entries = answer.data.get("results")
        if not isinstance(entries, list):
            raise failures.other_shape(self.service, json.dumps(answer.data))
        if not entries and answer.status != 200:
            raise failures.unfinished(self.service, str(answer.status))
        return results_of(self.service, entries, _NAMES, self.results)
