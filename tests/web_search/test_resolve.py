"""Which provider the settings come to, and what is said of settings that cannot be used."""

from typing import Any

import pytest

from agentic_rag.config import Settings, WebSearch
from agentic_rag.web_search import BadWebSearch, resolve_provider

SERPAPI = {"SERPAPI_API_KEY": "serp-1"}
TAVILY = {"TAVILY_API_KEY": "tvly-1"}


def settings(**web_search: Any) -> Settings:
    return Settings(web_search=WebSearch(**web_search))


@pytest.mark.parametrize(
    ("given", "env", "name"),
    [
        ({}, {}, None),
        ({}, {"SERPAPI_API_KEY": " "}, None),
        ({}, SERPAPI, "serpapi"),
        ({}, TAVILY, "tavily"),
        ({}, SERPAPI | TAVILY, "serpapi"),
        ({"url": "http://127.0.0.1:8888"}, SERPAPI, "searxng"),
        ({"api_key_env": "TAVILY_API_KEY"}, SERPAPI | TAVILY, "tavily"),
        ({"provider": "none"}, SERPAPI, None),
        ({"provider": "none", "url": "nonsense"}, {}, None),
        ({"provider": " SerpAPI "}, SERPAPI, "serpapi"),
        ({"provider": "tavily"}, SERPAPI | TAVILY, "tavily"),
        ({"provider": "tavily", "api_key_env": "MINE"}, {"MINE": "key-9"}, "tavily"),
        ({"provider": "searxng", "url": "https://search.example.org/searxng/"}, {}, "searxng"),
    ],
)
def test_the_named_provider_else_the_one_at_hand(
    given: dict[str, Any], env: dict[str, str], name: str | None
) -> None:
    provider = resolve_provider(settings(**given), env)
    assert (provider.name if provider else None) == name


@pytest.mark.parametrize(
    ("given", "env", "said"),
    [
        ({"provider": "serpapy"}, SERPAPI, "did you mean 'serpapi'?"),
        ({"provider": "谷歌"}, {}, "write one of serpapi, tavily, searxng, none."),
        ({"provider": "serpapi"}, TAVILY, "into the environment variable SERPAPI_API_KEY"),
        ({"provider": "tavily"}, {}, "into the environment variable TAVILY_API_KEY"),
        ({"provider": "tavily", "api_key_env": "MINE"}, TAVILY, "MINE, which is not set"),
        ({"provider": "searxng"}, {}, "set web_search.url"),
        ({"provider": "searxng", "url": "localhost:8888"}, {}, "no http address"),
        ({"provider": "searxng", "url": "ftp://x/"}, {}, "no http address"),
        ({"url": "http://[::1"}, {}, "no http address"),
        ({"url": "http://x:99999"}, {}, "no http address"),
        ({"url": "http://my host/"}, {}, "no http address"),
        ({"api_key_env": "MINE"}, {"MINE": "key-9"}, "set web_search.provider"),
        ({}, {"SERPAPI_API_KEY": "我的钥匙"}, "correct the environment variable SERPAPI_API_KEY"),
        ({}, {"TAVILY_API_KEY": "a\nb"}, "correct the environment variable TAVILY_API_KEY"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_before_any_question(
    given: dict[str, Any], env: dict[str, str], said: str
) -> None:
    with pytest.raises(BadWebSearch) as raised:
        resolve_provider(settings(**given), env)
    message = str(raised.value)
    assert said in message
    assert "\n" not in message and message[-1] in ".?"
    assert not any(key in message for key in env.values())


def test_a_key_and_a_password_do_not_show_in_the_provider() -> None:
    given = settings(provider="serpapi", url="http://me:hunter2@127.0.0.1:1")
    shown = repr(resolve_provider(given, SERPAPI))
    assert "serp-1" not in shown
    assert "SerpAPI at http://127.0.0.1:1/search" in shown
