"""Which reranker the settings name, and mistakes in them, which are told before any question."""

import pytest

from agentic_rag.config import Rerank, Settings
from agentic_rag.models.chat import ChatModel
from agentic_rag.models.reranker import Ranked, UnknownReranker, resolve_reranker

CHAT = ChatModel("openai:x", "for the test")


def resolved(env: dict[str, str] | None = None, **settings: object) -> object:
    return resolve_reranker(Settings(rerank=Rerank(**settings)), CHAT, env=env or {})  # type: ignore[arg-type]


def test_none_is_named_by_default() -> None:
    assert resolved() is None
    assert resolved(model="  ") is None


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"model": "bge-reranker"}, "no reranker 'bge-reranker'; set rerank.model to 'sentence-"),
        ({"model": "sentence-transformers:"}, "set rerank.model to"),
        ({"model": "sentence_transformers:x/y"}, "did you mean 'sentence-transformers:x/y'"),
        ({"model": "htpp:x"}, "did you mean 'http:x'"),
        ({"model": "http:bge"}, "rerank.base_url is empty; set it to the address"),
        ({"model": "http:bge", "base_url": "localhost:80"}, "is no http address"),
        ({"model": "http:bge", "base_url": "http://[::1"}, "is no http address"),
        (
            {"model": "http:b", "base_url": "http://h", "api_key_env": "NO_KEY"},
            "names NO_KEY, which is not set",
        ),
    ],
)
def test_a_mistake_is_one_sentence_at_the_start(settings: dict[str, str], wanted: str) -> None:
    with pytest.raises(UnknownReranker, match=wanted) as caught:
        resolved(**settings)
    assert "\n" not in str(caught.value)


def test_a_key_with_odd_characters_is_told_without_being_shown() -> None:
    section = {"model": "http:b", "base_url": "http://h", "api_key_env": "MY_KEY"}
    with pytest.raises(UnknownReranker, match="in MY_KEY holds characters") as caught:
        resolved(env={"MY_KEY": "schlüssel"}, **section)
    assert "schl" not in str(caught.value)


def test_the_chat_model_ranks_only_where_there_is_one_and_a_way_to_ask_it() -> None:
    class Way:
        def __init__(self, chat: ChatModel, settings: Settings) -> None:
            self.name = chat.name

        async def rerank(self, query: str, texts: object) -> list[Ranked]:
            return []

    settings = Settings(rerank=Rerank(model="chat"))
    assert resolve_reranker(settings, None, env={}, listwise=Way) is None
    made = resolve_reranker(settings, CHAT, env={}, listwise=Way)
    assert made is not None
    assert made.name == "openai:x"


def test_a_model_in_this_process_is_one_for_all_questions() -> None:
    first = resolved(model="sentence-transformers:some/model")
    assert first is resolved(model="sentence-transformers:some/model")
    assert first is not resolved(model="sentence-transformers:other/model")
