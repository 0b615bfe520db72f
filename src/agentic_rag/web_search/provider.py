"""What a web search provider is, what it finds, and the two ways in which it fails."""

from dataclasses import dataclass
from typing import Literal, Protocol

from agentic_rag.errors import AragError

Language = Literal["zh", "en"]


class WebSearchUnavailable(AragError):
    """A search was made and its outcome is not known: refused, timed out, no list of results.

    Never raised for "nothing was found", which is an empty list.
    """


class BadWebSearch(AragError):
    """The settings name a provider that does not exist or that cannot be used as it is set."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """One page that a search found: plain text, an http or https URL without a password in it.

    `date` is what the provider says the page's is, in its own words ("" for nothing).
    """

    title: str
    url: str
    snippet: str
    date: str = ""


class Provider(Protocol):
    """Where the web is searched. `name` is what `web_search.provider` calls it."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, *, language: Language) -> list[WebResult]:
        """The best results, each page once, `web_search.results` of them at most; empty where
        nothing was found. Raises WebSearchUnavailable."""
        ...
