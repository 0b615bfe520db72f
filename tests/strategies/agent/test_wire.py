"""Tool calls over a real wire: an OpenAI-compatible server and an Anthropic-shaped one."""

import json
from typing import Any

import pytest

from agentic_rag.config import AgentSettings, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import Event, RunFailed, RunFinished
from agentic_rag.strategies.run import ask, stream
from tests.strategies.agent import anthropic_server as anthropic
from tests.strategies.scripted_server import Script, Turn, serving

QUESTION = "When was the Oriole Bridge opened?"


def call(number: int, name: str, arguments: Any, call_id: str = "") -> dict[str, Any]:
    """A whole tool call as one delta of the chat protocol."""
    sent = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": sent}
    one = {"index": number, "id": call_id or f"c{number}", "type": "function", "function": function}
    return {"tool_calls": [one]}


SEARCH = Turn([call(0, "keyword_search", {"keywords": ["Oriole"]})], finish="tool_calls")


async def asked(
    kb: KnowledgeBase, script: Script, question: str = QUESTION, *, streaming: bool, **agent: Any
) -> Answer:
    settings = Settings(
        base_url=script.address, model="any", agent=AgentSettings(streaming=streaming, **agent)
    )
    return await ask(kb, question, settings=settings)


async def test_openai_calls_run_and_every_id_is_answered(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    three = Turn(
        [
            "Let me look that up.",
            call(0, "keyword_search", {"keywords": ["Oriole"]}, "a"),
            call(1, "nowhere", {}, "b"),
            call(2, "read_chunk", {"chunk_ids": [bridge]}, "c"),
        ],
        finish="tool_calls",
    )
    with serving(three, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=streaming)

    assert answer.text == "Opened in 1932 [1]."
    assert (answer.strategy, answer.usage.model_requests) == ("agent", 2)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (200, 40)
    first, second = script.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        *("keyword_search", "semantic_search", "read_chunk"),
    ]
    assert first["parallel_tool_calls"] is False
    assert bool(first.get("stream")) is streaming
    roles = [(m["role"], m.get("tool_call_id")) for m in second["messages"]]
    assert roles == [
        *(("system", None), ("user", None), ("assistant", None)),
        *(("tool", "a"), ("tool", "b"), ("tool", "c")),
    ]
    assert "opened in 1932" in second["messages"][3]["content"]


async def test_at_the_limit_openai_is_told_to_call_none_and_then_asked_plainly(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    with serving(SEARCH, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=streaming, max_steps=1)

    assert (answer.status, answer.text) == ("forced_by_steps", "Opened in 1932 [1].")
    assert [request.get("tool_choice") for request in script.requests] == ["auto", "none", None]
    assert ["tools" in request for request in script.requests] == [True, True, False]
    assert [message["role"] for message in script.requests[2]["messages"]] == ["system", "user"]


async def test_chinese_calls_and_answer_a_byte_at_a_time(kb: KnowledgeBase, pumps: str) -> None:
    search = Turn(
        [call(0, "keyword_search", {"keywords": ["蓝桥泵站"]})],
        bytes_a_write=1,
        finish="tool_calls",
    )
    said = Turn([f"由王芳主持设计[{pumps}]，", "𠮷字也在。"], bytes_a_write=1)
    with serving(search, said) as script:
        answer = await asked(kb, script, "蓝桥泵站是谁设计的？", streaming=True)

    assert answer.text == "由王芳主持设计[1]，𠮷字也在。"
    assert '"蓝桥泵站" 1' in script.requests[1]["messages"][3]["content"]


async def test_arguments_cut_at_the_output_limit_are_asked_for_again(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    cut = Turn([call(0, "keyword_search", '{"keywords": ["Ori')], finish="length")
    with serving(cut, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=streaming)

    assert answer.text == "Opened in 1932 [1]."
    assert "were cut off at the output limit" in script.requests[1]["messages"][3]["content"]


async def test_an_answer_cut_at_the_output_limit_says_so(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    with serving(SEARCH, Turn([f"Opened in 1932 [{bridge}] by"], finish="length")) as script:
        answer = await asked(kb, script, streaming=streaming)

    assert answer.status == "answered"
    assert [notice.code for notice in answer.notices] == ["answer_cut_off"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/tiny does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
        (404, "No endpoints found that support tool use"),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_a_server_without_tools_ends_in_an_error_that_names_what_works(
    kb: KnowledgeBase, streaming: bool, status: int, message: str
) -> None:
    refusal = Turn(status=status, error={"message": message})
    with serving(refusal) as script:
        settings = Settings(
            base_url=script.address, model="tiny", agent=AgentSettings(streaming=streaming)
        )
        events: list[Event] = [e async for e in stream(kb, QUESTION, settings=settings)]

    last = events[-1]
    assert isinstance(last, RunFailed)
    assert last.code == "ModelWithoutTools"
    assert "tiny cannot call tools" in last.error
    assert "--strategy naive" in last.error
    assert len(script.requests) == (2 if status == 500 else 1)  # a 500 may pass by itself


async def test_a_server_that_lacks_a_setting_is_asked_without_it(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    refusal = Turn(status=400, error={"message": "Unknown parameter: 'parallel_tool_calls'."})
    with serving(refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=streaming)

    assert answer.text == "Opened in 1932 [1]."
    assert ["parallel_tool_calls" in request for request in script.requests] == [
        *(True, False, False),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>1933? [9-9]", "</thi", "nk>"],
        [{"reasoning_content": "1933? [9-9]"}],
    ],
)
async def test_thoughts_before_a_call_stay_out_of_the_text_of_later_prompts(
    kb: KnowledgeBase, bridge: str, streaming: bool, pieces: list[Any]
) -> None:
    search = Turn([*pieces, *SEARCH.pieces], finish="tool_calls")
    with serving(search, Turn([*pieces, f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=streaming)

    assert answer.text == "Opened in 1932 [1]."
    assert answer.removed_citations == ()
    texts = [str(message.get("content")) for message in script.requests[1]["messages"]]
    assert "1933" not in "".join(texts)
    assert "1933" in "".join(e.text for e in answer.trace if e.type == "thought")


async def test_a_broken_stream_in_the_middle_of_a_call_is_asked_again(
    kb: KnowledgeBase, bridge: str
) -> None:
    broken = Turn(status=503, error={"message": "overloaded"})
    with serving(SEARCH, broken, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=True)

    assert answer.text == "Opened in 1932 [1]."
    assert answer.usage.model_requests == len(script.requests) == 3


# -- Anthropic


async def with_anthropic(
    kb: KnowledgeBase, script: anthropic.Script, *, streaming: bool, **agent: Any
) -> Answer:
    settings = Settings(
        base_url=script.address,
        model="anthropic:claude-haiku-5-5",
        agent=AgentSettings(streaming=streaming, **agent),
    )
    events = [event async for event in stream(kb, QUESTION, settings=settings)]
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1].answer


async def test_anthropic_calls_run_and_every_id_is_answered(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    two = [
        anthropic.text("Let me look that up."),
        anthropic.tool_use("t1", "keyword_search", {"input": {"keywords": "Oriole"}}),
        anthropic.tool_use("t2", "semantic_search", {"query": "bridge"}),
    ]
    with anthropic.serving(two, [anthropic.text(f"Opened in 1932 [{bridge}].")]) as script:
        answer = await with_anthropic(kb, script, streaming=streaming)

    assert script.refused == []
    assert answer.text == "Opened in 1932 [1]."
    assert answer.usage.cost is not None and answer.usage.cost > 0
    results = script.requests[1]["messages"][-1]["content"]
    assert [result["tool_use_id"] for result in results] == ["t1", "t2"]
    assert results[1]["is_error"] is True
    assert script.requests[0]["tool_choice"]["disable_parallel_tool_use"] is True


async def test_anthropic_gets_its_signed_thoughts_back(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    search = [
        anthropic.thinking("It may be 1933."),
        anthropic.tool_use("t1", "keyword_search", {"keywords": ["Oriole"]}),
    ]
    with anthropic.serving(search, [anthropic.text(f"Opened in 1932 [{bridge}].")]) as script:
        answer = await with_anthropic(kb, script, streaming=streaming, effort="low")

    assert script.refused == []
    assert answer.text == "Opened in 1932 [1]."
    back = script.requests[1]["messages"][1]["content"]
    assert [block["type"] for block in back] == ["thinking", "tool_use"]
    assert back[0]["signature"] == "signed"


async def test_at_the_limit_anthropic_keeps_the_tools_and_then_gets_a_plain_request(
    kb: KnowledgeBase, bridge: str, streaming: bool
) -> None:
    search = [anthropic.tool_use("t1", "keyword_search", {"keywords": ["Oriole"]})]
    more = [anthropic.tool_use("t2", "keyword_search", {"keywords": ["Tamar"]})]
    last = [anthropic.text(f"Opened in 1932 [{bridge}].")]
    with anthropic.serving(search, more, last) as script:
        answer = await with_anthropic(kb, script, streaming=streaming, max_steps=1)

    assert script.refused == []
    assert (answer.status, answer.text) == ("forced_by_steps", "Opened in 1932 [1].")
    assert script.requests[1]["tool_choice"] == {"type": "none"}
    assert len(script.requests[1]["tools"]) == 3
    assert not script.requests[2].get("tools")


# -- what servers refuse, and what comes back that is no reply


async def test_a_server_that_does_not_stream_is_asked_for_whole_replies(
    kb: KnowledgeBase, bridge: str
) -> None:
    refusal = Turn(status=400, error={"message": "streaming is not supported with tools"})
    with serving(refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=True)

    assert answer.text == "Opened in 1932 [1]."
    assert [bool(request.get("stream")) for request in script.requests] == [True, False, False]
    assert [notice.code for notice in answer.notices] == ["streaming_refused"]
    assert "`agent.streaming`" in answer.notices[0].message
    assert "(HTTP 400): streaming is not supported with tools." in answer.notices[0].message
    assert answer.usage.model_requests == 3


async def test_a_refused_setting_is_told_without_saying_that_the_model_failed(
    kb: KnowledgeBase, bridge: str
) -> None:
    refusal = Turn(status=400, error={"message": "unknown field reasoning_effort"})
    with serving(refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."])) as script:
        answer = await asked(kb, script, streaming=True, effort="high")

    assert answer.notices[0].message == (
        "`agent.effort` is not sent any more, since it was refused (HTTP 400): "
        "unknown field reasoning_effort."
    )


async def test_a_context_that_is_too_small_names_the_settings_of_the_agent(
    kb: KnowledgeBase, streaming: bool
) -> None:
    error = {"code": "context_length_exceeded", "message": "maximum context length is 512 tokens"}
    with serving(Turn(status=400, error=error)) as script:
        answer = await asked(kb, script, streaming=streaming)

    message = answer.notices[-1].message
    assert "`context_tokens`" in message and "`agent.token_budget`" in message
    assert "passage_tokens" not in message


@pytest.mark.parametrize(
    ("turn", "made"),
    [
        (Turn(status=429, error={"message": "no"}), 2),
        (Turn(status=500, error={"message": "no"}), 2),
        (Turn(status=400, error={"message": "no"}), 1),
        (Turn(hang=True), 2),
    ],
)
async def test_requests_that_fail_are_counted(
    kb: KnowledgeBase, streaming: bool, turn: Turn, made: int
) -> None:
    with serving(turn) as script:
        settings = Settings(
            base_url=script.address,
            model="any",
            model_timeout=0.3,
            agent=AgentSettings(streaming=streaming),
        )
        answer = await ask(kb, QUESTION, settings=settings)

    assert answer.usage.model_requests == len(script.requests) == made


async def test_a_refused_setting_that_was_tried_twice_counts_twice(
    kb: KnowledgeBase, bridge: str
) -> None:
    refusal = Turn(status=500, error={"message": "no parallel_tool_calls"})
    turns = (refusal, refusal, SEARCH, Turn([f"Opened in 1932 [{bridge}]."]))
    with serving(*turns) as script:
        answer = await asked(kb, script, streaming=True)

    assert answer.usage.model_requests == len(script.requests) == 4


async def test_requests_to_a_model_without_tools_are_counted(kb: KnowledgeBase) -> None:
    with serving(Turn(status=400, error={"message": "tools are not supported"})) as script:
        settings = Settings(base_url=script.address, model="tiny")
        events = [event async for event in stream(kb, QUESTION, settings=settings)]

    counted = [event.usage.model_requests for event in events if event.type == "usage"]
    assert counted[-1] == len(script.requests) == 1
