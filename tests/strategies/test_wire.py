"""Over a real wire: an OpenAI-compatible server that streams, errs, hangs and breaks off."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models.chat import ChatModel, resolve_chat_model
from agentic_rag.strategies import reply, run
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.run import ask
from tests.strategies.conftest import chunk_of
from tests.strategies.scripted_server import Script, Turn, serving

QUESTION = "When was the Oriole Bridge opened?"
OPENED = Turn(["Opened in 1932 ", "by Ada Brown."])
SECRET = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)


@pytest.fixture
def settings_for(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.setenv("SCRIPTED_KEY", SECRET)

    def make(script: Script, **more: object) -> Settings:
        given = {
            "base_url": script.address,
            "api_key_env": "SCRIPTED_KEY",
            "model": "openai:any",
            "strategy": "naive",
        }
        return Settings(**{**given, **more})  # type: ignore[arg-type]

    return make


async def test_chinese_sent_a_byte_at_a_time_arrives_whole(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    pumps = chunk_of(kb, "pumps.txt")
    pieces = ["蓝桥泵站", "由王芳主持", f"设计【{pumps}】", "，𠮷字也在。"]
    with serving(Turn(pieces, bytes_a_write=1)) as script:
        answer = await ask(kb, "蓝桥泵站是谁设计的？", settings=settings_for(script))

    assert answer.raw_text == "".join(pieces)
    assert answer.text == "蓝桥泵站由王芳主持设计[1]，𠮷字也在。"


async def test_usage_is_the_server_s_count_and_an_unknown_price_is_unknown(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(OPENED) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 20)
    assert answer.usage.cost is None
    assert answer.model == "openai:any"
    assert script.requests[0]["model"] == "any"
    assert script.requests[0]["stream"] is True


async def test_the_key_goes_to_the_server_and_nowhere_else(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    refused = Turn(status=401, error={"message": f"Incorrect API key provided: {SECRET}"})
    with serving(refused) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert script.keys == [f"Bearer {SECRET}"]  # and not tried again
    assert "refused the key (HTTP 401)" in answer.notices[-1].message
    assert SECRET not in answer.model_dump_json()


async def test_the_key_of_openai_is_not_sent_to_another_server(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with serving(OPENED) as script:
        await ask(
            kb, QUESTION, settings=Settings(base_url=script.address, model="any", strategy="naive")
        )

    assert SECRET not in script.keys[0]


@pytest.mark.parametrize(
    "first",
    [
        Turn(status=429, error={"message": "slow down"}, headers={"retry-after": "0"}),
        Turn(status=500, error={"message": "oops"}),
        Turn(status=503, error={"message": "overloaded"}),
    ],
)
async def test_what_may_pass_is_tried_once_more(
    kb: KnowledgeBase, settings_for: Callable[..., Settings], first: Turn
) -> None:
    with serving(first, OPENED) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.text == "Opened in 1932 by Ada Brown. [1]"
    assert answer.usage.model_requests == len(script.requests) == 2


@pytest.mark.parametrize("status", [429, 500])
async def test_what_does_not_pass_ends_in_the_best_passages(
    kb: KnowledgeBase, settings_for: Callable[..., Settings], status: int
) -> None:
    with serving(Turn(status=status, error={"message": "no"})) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert len(script.requests) == 2
    assert answer.status == "model_failed"
    assert f"HTTP {status}" in answer.notices[-1].message
    assert "It was opened in 1932 by Ada Brown." in answer.text
    assert "Traceback" not in answer.model_dump_json()


async def test_a_server_that_hangs_is_left_after_the_set_time(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(Turn(hang=True)) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script, model_timeout=0.3))
        hung_up = await asyncio.to_thread(script.hung_up.wait, 3)

    assert "said nothing for 0.3 seconds" in answer.notices[-1].message
    assert hung_up


async def test_no_server_at_all_is_one_sentence(kb: KnowledgeBase) -> None:
    settings = Settings(base_url="http://127.0.0.1:9/v1", model="openai:any", strategy="naive")
    answer = await ask(kb, QUESTION, settings=settings)

    assert answer.status == "model_failed"
    assert "connection to the model failed" in answer.notices[-1].message
    assert "`base_url`" in answer.notices[-1].message


async def test_ollama_that_is_not_running_is_told_with_how_to_start_it(kb: KnowledgeBase) -> None:
    answer = await ask(kb, QUESTION, model="ollama:qwen3")

    assert "start it with `ollama serve`" in answer.notices[-1].message
    assert "base_url" not in answer.notices[-1].message


async def test_cancelling_hangs_up_on_the_server(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(Turn(["word "] * 2000, delay=0.02)) as script:
        task = asyncio.create_task(ask(kb, QUESTION, settings=settings_for(script)))
        assert await asyncio.to_thread(script.asked.wait, 10)
        await asyncio.sleep(0.2)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1
        assert await asyncio.to_thread(script.hung_up.wait, 3)


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>", "1933?", "</think>Opened in 1932 ", "by Ada Brown."],
        ["<think>", "1933?", "</think>", "Opened in 1932 ", "by Ada Brown."],
        [{"reasoning_content": "1933?"}, "Opened in 1932 by Ada Brown."],
        ["1933?", "</think>", "Opened in 1932 by Ada Brown."],
    ],
)
async def test_thoughts_are_kept_out_whatever_their_form(
    kb: KnowledgeBase,
    settings_for: Callable[..., Settings],
    pieces: list[str | dict[str, str]],
) -> None:
    with serving(Turn(pieces)) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.text == "Opened in 1932 by Ada Brown. [1]"
    assert _thoughts(answer) == "1933?"


async def test_a_quoted_tag_that_comes_as_a_piece_of_its_own_is_text(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    pieces = ["Opened in 1932 by Ada Brown. Its file says `", "<think>", "` once."]
    with serving(Turn(pieces)) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.raw_text == "".join(pieces)


async def test_thoughts_cut_at_the_limit_are_no_answer(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(Turn(["<think>", "It may be 19"], finish="length")) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.status == "model_failed"
    assert answer.notices[-1].code == "no_answer_cut_off"
    assert "It may be 19" not in answer.text


async def test_an_answer_cut_at_the_limit_says_so(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(Turn(["Opened in 1932 by Ada"], finish="length")) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.status == "answered"
    assert answer.notices[-1].code == "answer_cut_off"


def _thoughts(answer: Answer) -> str:
    return "".join(event.text for event in answer.trace if event.type == "thought")


async def test_a_demonstration_model_is_cut_back_to_its_last_whole_sentence(
    kb: KnowledgeBase, settings_for: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    def demonstration(settings: Settings, model: object) -> ChatModel:
        return replace(resolve_chat_model(settings), demonstration=True)

    monkeypatch.setattr(run, "_chat_model", demonstration)
    with serving(Turn(["Opened in 1932 by Ada ", "Brown. It does", " not"], finish="length")) as s:
        answer = await ask(kb, QUESTION, settings=settings_for(s))

    assert answer.text.startswith("Opened in 1932 by Ada Brown. [1]\n\n(Written by")
    assert answer.raw_text.endswith("It does not")
    assert answer.notices == ()


async def test_an_answer_broken_off_is_kept_and_says_so(
    kb: KnowledgeBase, settings_for: Callable[..., Settings]
) -> None:
    with serving(Turn(["Opened in 1932 by Ada"], break_off=True)) as script:
        answer = await ask(kb, QUESTION, settings=settings_for(script))

    assert answer.text == "Opened in 1932 by Ada [1]"
    assert [notice.code for notice in answer.notices] == ["answer_broken_off"]
