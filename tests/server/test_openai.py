"""OpenAI's protocol, by the real `openai` client against a real server."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import AgentSettings, Server, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from tests.cli.running import write_notes
from tests.knowledge_base.embedders import HashEmbedder
from tests.server.listening import served
from tests.strategies.agent.playing import Model, search

PAGE = Path(__file__).parents[2] / "docs" / "openai.md"
QUESTION = [{"role": "user", "content": "What is the yearly fee?"}]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(kb=tmp_path / "kb", model="none")


@pytest.fixture
def kb(settings: Settings, tmp_path: Path) -> KnowledgeBase:
    made = KnowledgeBase.open(settings.kb, settings=settings, embedder=HashEmbedder())
    made.add([write_notes(tmp_path)])
    return made


@pytest.fixture
def fees(kb: KnowledgeBase) -> str:
    return kb.chunks(kb.document("fees.txt").number)[0].chunk_id


def client_of(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


@pytest.fixture
def address(kb: KnowledgeBase) -> Iterator[str]:
    with served(create_app(kb.settings, kb=kb)) as url:
        yield url


@pytest.fixture
def client(address: str) -> OpenAI:
    return client_of(address)


def asking(client: OpenAI, **more: Any) -> Any:
    given: dict[str, Any] = {"model": "arag-naive", "messages": QUESTION, **more}
    return client.chat.completions.create(**given)


def test_each_strategy_is_a_model(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["arag-agent", "arag-naive", "arag-pipeline", "arag-workflow"]
    assert client.models.retrieve("arag-agent").owned_by == "agentic-rag"
    with pytest.raises(openai.NotFoundError, match="use one of: arag-agent"):
        client.models.retrieve("gpt-4")
    with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-4'"):
        asking(client, model="gpt-4")


def test_an_answer_has_sources_in_its_text_and_as_annotations(kb: KnowledgeBase, fees: str) -> None:
    model = Model(search("fee"), f"The yearly fee is 12 euros [{fees}]. It is due in March.")
    with served(create_app(kb.settings, kb=kb, model=model.model)) as url:
        reply = asking(client_of(url), model="arag-agent")
    assert reply.object == "chat.completion" and reply.model == "arag-agent"
    choice = reply.choices[0]
    assert choice.finish_reason == "stop"
    text = choice.message.content
    assert text.startswith("The yearly fee is 12 euros [1].")
    assert f"- [1] fees.txt ({fees})" in text
    source = choice.message.annotations[0]
    assert source.type == "url_citation"
    cited = source.url_citation
    assert text[cited.start_index : cited.end_index] == "[1]"
    assert cited.title == "fees.txt" and cited.chunk_id == fees
    assert "12 euros" in cited.snippet
    assert cited.url == f"{url}/api/chunks/{fees}"
    assert "keyword_search: fee" in choice.message.reasoning_content
    assert reply.usage.prompt_tokens > 0 and reply.usage.completion_tokens > 0
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.arag["status"] == "answered" and reply.arag["strategy"] == "agent"


@pytest.mark.parametrize("strategy", ["agent", "naive", "pipeline", "workflow"])
def test_streamed_and_whole_are_the_same_text(kb: KnowledgeBase, fees: str, strategy: str) -> None:
    said = f"每年的费用是12欧元[{fees}]。"

    def model() -> Any:
        return Model(search("fee"), said).model if strategy == "agent" else Model(said).model

    def ask(**more: Any) -> Any:
        with served(create_app(kb.settings, kb=kb, model=model())) as url:
            reply = asking(client_of(url), model=f"arag-{strategy}", **more)
            return list(reply) if more else reply

    whole = ask()
    chunks = ask(stream=True, stream_options={"include_usage": True})
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert deltas[0].role == "assistant" and not any(delta.role for delta in deltas[1:])
    found = [delta.annotations for delta in deltas if getattr(delta, "annotations", None)]
    cited = [one.url_citation.model_dump() for one in whole.choices[0].message.annotations]
    streamed = [one["url_citation"] for one in found[0]]
    assert [without_port(one) for one in streamed] == [without_port(one) for one in cited]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1


def without_port(citation: dict[str, Any]) -> dict[str, Any]:
    return {**citation, "url": re.sub(r":\d+", "", citation["url"])}


def test_usage_is_streamed_only_where_it_is_wanted(client: OpenAI) -> None:
    chunks = list(asking(client, stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


def test_the_steps_are_streamed_as_reasoning_before_the_answer(
    kb: KnowledgeBase, fees: str
) -> None:
    model = Model(search("fee"), f"The yearly fee is 12 euros [{fees}].")
    with served(create_app(kb.settings, kb=kb, model=model.model)) as url:
        chunks = list(asking(client_of(url), model="arag-agent", stream=True))
    kinds = [
        "step" if getattr(chunk.choices[0].delta, "reasoning_content", None) else "text"
        for chunk in chunks
        if chunk.choices[0].delta.content or chunk.choices[0].delta.model_extra
    ]
    assert kinds[0] == "step" and "text" in kinds
    steps = [getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks]
    assert "keyword_search: fee\n" in steps


def test_text_before_a_tool_call_is_said_not_to_count(kb: KnowledgeBase, fees: str) -> None:
    early = "Let me look that up in the documents first, since I cannot know it otherwise."
    model = Model([early, search("fee")], f"The yearly fee is 12 euros [{fees}].")
    with served(create_app(kb.settings, kb=kb, model=model.model)) as url:
        chunks = list(asking(client_of(url), model="arag-agent", stream=True))
        whole = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    counted = whole.rpartition("(The text above does not count.)\n\n")[2]
    assert counted.startswith("The yearly fee is 12 euros [1].")
    found = [getattr(chunk.choices[0].delta, "annotations", None) for chunk in chunks]
    (annotations,) = [one for one in found if one]
    cited = annotations[0]["url_citation"]
    assert whole[cited["start_index"] : cited["end_index"]] == "[1]"


def test_earlier_messages_are_the_conversation_with_their_sources(
    kb: KnowledgeBase, fees: str
) -> None:
    model = Model(
        search("fee"),
        f"The yearly fee is 12 euros [{fees}].",
        "When is the yearly fee due?",
        search("fee"),
        f"It is due in March [{fees}].",
    )
    with served(create_app(kb.settings, kb=kb, model=model.model)) as url:
        client = client_of(url)
        first = asking(client, model="arag-agent").choices[0].message.content
        messages = [
            {"role": "system", "content": "Be brief."},
            *QUESTION,
            {"role": "assistant", "content": first},
            {"role": "user", "content": [{"type": "text", "text": "And when is it due?"}]},
        ]
        second = asking(client, model="arag-agent", messages=messages)
    assert second.choices[0].message.content.startswith("It is due in March [1].")
    rewriting = model.sent(2)
    assert "And when is it due?" in rewriting and "The yearly fee is 12 euros" in rewriting
    assert "Sources:" not in rewriting and "notes/fees.txt" not in rewriting


BAD: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": "  "}]}, "The question is empty"),
    ({"messages": [{"role": "user"}]}, "The question is empty"),
    ({"messages": [{"role": "assistant", "content": "Hello"}]}, "The last message"),
    ({"messages": [{"role": "wizard", "content": "Hello"}]}, "messages"),
    ({"messages": "What is the fee?"}, "messages"),
    ({"n": 3}, "leave out `n`"),
    ({"response_format": {"type": "json_object"}}, "leave out `response_format`"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "image_url",
    ),
]


@pytest.mark.parametrize(("more", "said"), BAD, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_cannot_be_answered_gets_one_sentence(
    client: OpenAI, more: dict[str, Any], said: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        asking(client, stream=stream, **more)
    body: Any = caught.value.body
    assert said in body["message"] and body["message"].endswith(".")
    assert body["type"] == "invalid_request_error" and "Traceback" not in body["message"]


def test_what_a_strategy_cannot_use_is_taken_and_left(client: OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    extra = {"temperature": 0.3, "max_tokens": 5, "tools": [tool], "user": "me", "seed": 1}
    assert "12 euros" in asking(client, **extra).choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_without_tools_is_an_error_before_anything_is_sent(
    client: OpenAI, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        asking(client, model="arag-agent", stream=stream)
    assert "tools" in str(caught.value)


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_that_takes_too_long_is_stopped_and_not_asked_again(
    kb: KnowledgeBase, stream: bool
) -> None:
    asked: list[int] = []

    async def never(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.append(1)
        await asyncio.sleep(60)
        yield "too late"

    server = Server(question_timeout=0.5)
    hurried = kb.settings.model_copy(update={"server": server})
    model = FunctionModel(stream_function=never)
    with served(create_app(hurried, kb=kb, model=model)) as url:
        patient = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2)
        with pytest.raises(openai.APIError, match=r"took longer than 0\.5 seconds"):
            list(asking(patient, model="arag-agent", stream=stream))
    assert len(asked) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_ends_the_request_to_the_model(kb: KnowledgeBase, stream: bool) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def never(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        yield "too late"

    one = Server(concurrent_questions=1, queued_questions=0)
    settings = kb.settings.model_copy(update={"server": one})
    app = create_app(settings, kb=kb, model=FunctionModel(stream_function=never))
    with served(app) as url:

        async def go() -> None:
            async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
                how: dict[str, Any] = {"model": "arag-agent", "messages": QUESTION}
                create: Any = client.chat.completions.create
                call = asyncio.create_task(create(stream=stream, **how))
                assert await asyncio.to_thread(asked.wait, 10)
                with pytest.raises(openai.RateLimitError, match="ask again in") as busy:
                    await create(**how)
                assert int(busy.value.response.headers["retry-after"]) >= 1
                if stream and call.done():
                    await call.result().close()
                call.cancel()

        asyncio.run(go())
        assert ended.wait(10)
        for _ in range(100):
            if not app.state.server.gate.running:
                break
            time.sleep(0.05)
        assert app.state.server.gate.running == 0


def test_an_answer_that_is_read_a_byte_at_a_time_keeps_its_characters(
    kb: KnowledgeBase, fees: str
) -> None:
    said = f"每年的费用是十二欧元，三月到期[{fees}]。"
    with served(create_app(kb.settings, kb=kb, model=Model(search("fee"), said).model)) as url:
        host, port = url.removeprefix("http://").split(":")
        asked = {"model": "arag-agent", "messages": QUESTION, "stream": True}
        body = json.dumps(asked).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        received = b""
        with socket.create_connection((host, int(port))) as connection:
            for byte in head + body:
                connection.send(bytes([byte]))
            while piece := connection.recv(1):
                received += piece
    lines = re.findall(r"^data: (\{.*\})\r?$", received.decode(), re.MULTILINE)
    texts = [json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines]
    assert "".join(texts).startswith("每年的费用是十二欧元，三月到期[1]。")


def test_the_limit_of_steps_means_the_same_as_elsewhere(kb: KnowledgeBase) -> None:
    model = Model(search("fee"), search("pump"), search("apples"), "12 euros.")
    limited = kb.settings.model_copy(update={"agent": AgentSettings(max_steps=3)})
    with served(create_app(limited, kb=kb, model=model.model)) as url:
        reply = asking(client_of(url), model="arag-agent")
    assert model.count == 4 and reply.arag["status"] == "forced_by_steps"


def test_a_deleted_document_is_no_longer_cited(client: OpenAI, kb: KnowledgeBase) -> None:
    assert "12 euros" in asking(client).choices[0].message.content
    kb.remove(["fees.txt"])
    assert "euros" not in asking(client).choices[0].message.content


def test_elsewhere_than_on_loopback_the_key_is_the_token(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_TOKEN", "a-long-random-text-of-32-letters")
    settings = kb.settings.model_copy(update={"server": Server(host="0.0.0.0")})
    with served(create_app(settings, kb=kb)) as url:
        with pytest.raises(openai.AuthenticationError, match="needs its token"):
            client_of(url).models.list()
        with_key = OpenAI(base_url=f"{url}/v1", api_key="a-long-random-text-of-32-letters")
        assert "12 euros" in asking(with_key).choices[0].message.content


def test_the_ten_lines_of_the_page_run(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (lines,) = [block for block in blocks if "OpenAI(" in block]
    assert "http://127.0.0.1:8765" in lines and len(lines.splitlines()) <= 12
    exec(lines.replace("http://127.0.0.1:8765", address), {})
    assert "pump" in capsys.readouterr().out


def test_the_api_document_has_the_addresses(address: str) -> None:
    paths = httpx.get(f"{address}/openapi.json").json()["paths"]
    assert {"/v1/models", "/v1/models/{name}", "/v1/chat/completions"} <= set(paths)
