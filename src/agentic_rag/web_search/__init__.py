"""Searching the web, for questions that the documents do not answer.

`resolve_provider` gives the provider that the settings name or whose key is at hand; its `search`
gives results, and `read_results` turns these into passages of the pages' own text. Whatever comes
back is text of strangers: it reaches a prompt inside marked blocks only.
"""

from agentic_rag.web_search.pages import WebPassage, read_results
from agentic_rag.web_search.provider import (
    BadWebSearch,
    Language,
    Provider,
    WebResult,
    WebSearchUnavailable,
)
from agentic_rag.web_search.resolve import resolve_provider

__all__ = [
    "BadWebSearch",
    "Language",
    "Provider",
    "WebPassage",
    "WebResult",
    "WebSearchUnavailable",
    "read_results",
    "resolve_provider",
]
