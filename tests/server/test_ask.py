"""`/api/ask` and conversations: answers, events, errors, limits, and the end of the work."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server.app import create_app
from agentic_rag.sessions import SessionStore
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import EVENT
from tests.cli.slow_model import SlowModel, serving
from tests.server.conftest import Api, events_in
from tests.server.listening import served
from tests.strategies.agent.playing import Model, search

QUESTION = "What is the yearly fee?"


class Waiting:
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.stopped = 0
        self.go_on = asyncio.Event()
        self.model = FunctionModel(stream_function=self._stream, model_name="waiting")

    async def _stream(self, _: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        self.asked += 1
        try:
            yield "It is "
            await self.go_on.wait()
            yield "12 euros."
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped += 1
            raise


async def until(true: Any) -> None:
    for _ in range(500):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within five seconds")


async def test_an_answer_has_its_sources_its_trace_and_is_found_among_the_past_questions(
    api: Api, fees: str
) -> None:
    model = Model(search("fee"), f"The yearly fee is 12 euros [{fees}].")
    async with api(model.model) as client:
        replied = await client.post("/api/ask", json={"question": QUESTION})
        listed = (await client.get("/api/traces")).json()["traces"]
        again = await client.get(f"/api/traces/{replied.json()['trace_id']}")
        nowhere = await client.get("/api/traces/20200101-000000-0000")

    answer = replied.json()
    assert replied.status_code == 200
    assert answer["text"] == "The yearly fee is 12 euros [1]."
    assert [one["chunk_id"] for one in answer["citations"]] == [fees]
    assert "tool_returned" in [event["type"] for event in answer["trace"]]
    assert [one["id"] for one in listed] == [answer.pop("trace_id")]
    assert again.json() == answer
    assert nowhere.status_code == 404


@pytest.mark.parametrize("how", [{"stream": True}, {}])
async def test_events_come_one_by_one_and_end_in_the_answer(
    api: Api, fees: str, how: dict[str, bool]
) -> None:
    model = Model(search("费用", "fee"), f"年费是十二欧元 [{fees}]。")
    headers = {} if how else {"Accept": "text/event-stream"}
    async with api(model.model) as client:
        body = {"question": "年费是多少？", **how}
        replied = await client.post("/api/ask", json=body, headers=headers)

    assert replied.headers["content-type"].startswith("text/event-stream")
    seen = events_in(replied.text)
    values = [json.loads(data) for _, data in seen]
    assert [kind for kind, _ in seen] == [value["type"] for value in values]
    assert seen[0][0] == "run_started" and seen[-1][0] == "run_finished"
    said = "".join(value["text"] for value in values if value["type"] == "answer_delta")
    assert said == values[-1]["answer"]["text"] == "年费是十二欧元 [1]。"
    assert values[-1]["trace_id"]
    for value in values[:-1]:
        EVENT.validate_python(value)


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        ({}, 422, "invalid_request", "`question` in the body"),
        ({"question": " \n"}, 422, "invalid_request", "empty"),
        ({"question": 7}, 422, "invalid_request", "string"),
        ({"question": "x" * 60_000}, 422, "invalid_request", "50000"),
        ({"question": "x", "strategey": "naive"}, 422, "invalid_request", "strategey"),
        ({"question": "x", "strategy": "magic"}, 400, "bad_question", "use one of: agent"),
        ({"question": "x", "model": "local:/etc/passwd"}, 422, "invalid_request", "settings"),
        ({"question": "x", "model": "nobody:x"}, 503, "model_unavailable", "nobody"),
        ({"question": "x", "max_steps": 0}, 422, "invalid_request", "max_steps"),
        ({"question": "x", "max_cost": "NaN"}, 422, "invalid_request", "max_cost"),
        ({"question": "x", "session": "20200101-1"}, 404, "unknown_session", "/api/sessions"),
        ({"question": "x", "session": "../head"}, 404, "unknown_session", "/api/sessions"),
        (
            {"question": "x", "session": "a", "history": [{"question": "a", "answer": "b"}]},
            400,
            "bad_question",
            "not both",
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_bad_question_is_told_in_a_sentence_and_a_status(
    api: Api, body: dict[str, Any], status: int, code: str, said: str, stream: bool
) -> None:
    async with api() as client:
        replied = await client.post("/api/ask", json={**body, "stream": stream})

    assert replied.status_code == status
    error = replied.json()["error"]
    assert error["code"] == code
    assert said in error["message"]
    assert "Traceback" not in replied.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"question": "\\ud800"}', b"\xff"])
async def test_a_body_that_is_no_question_is_told(api: Api, body: bytes) -> None:
    async with api() as client:
        headers = {"Content-Type": "application/json"}
        replied = await client.post("/api/ask", content=body, headers=headers)

    assert replied.status_code in (400, 422)
    assert replied.json()["error"]["message"].endswith(".")


async def test_limits_of_a_request_count_and_cannot_raise_what_may_be_spent(
    kb: KnowledgeBase, api: Api
) -> None:
    model = Model(search("fee"))  # never ends by itself
    async with api(model.model) as client:
        answer = (await client.post("/api/ask", json={"question": "x", "max_steps": 2})).json()
    assert answer["status"] == "forced_by_steps"
    searched = [e for e in answer["trace"] if e["type"] == "tool_returned" and not e["error"]]
    assert len(searched) == 2

    from agentic_rag.server.given import QuestionBody

    agent = kb.settings.agent.model_copy(update={"max_cost": 0.5})
    settings = kb.settings.model_copy(update={"agent": agent})
    asked = QuestionBody(question="x", max_cost=9.0).settings(settings)
    assert asked.agent.max_cost == 0.5
    assert QuestionBody(question="x", max_cost=0.1).settings(settings).agent.max_cost == 0.1


async def test_questions_beyond_the_queue_are_turned_away_and_the_others_answered(
    api: Api,
) -> None:
    waiting = Waiting()
    body = {"question": QUESTION}
    async with api(waiting.model, concurrent_questions=1, queued_questions=1) as client:
        first = asyncio.create_task(client.post("/api/ask", json=body))
        await until(lambda: waiting.asked == 1)
        second = asyncio.create_task(client.post("/api/ask", json=body))
        await asyncio.sleep(0.1)
        assert waiting.asked == 1  # the second one waits
        for stream in (True, False):
            third = await client.post("/api/ask", json={**body, "stream": stream})
            assert third.status_code == 429
            assert int(third.headers["retry-after"]) >= 1
            assert third.json()["error"]["code"] == "too_many_questions"
        searched = await client.get("/api/search", params={"query": "pump"})
        assert searched.status_code == 200  # a search needs no place
        waiting.go_on.set()
        assert [(await task).status_code for task in (first, second)] == [200, 200]
        assert waiting.asked >= 2
        assert (await client.post("/api/ask", json=body)).status_code == 200


@pytest.mark.parametrize("stream", [True, False])
async def test_a_question_that_takes_too_long_is_stopped_and_told(api: Api, stream: bool) -> None:
    waiting = Waiting()
    async with api(waiting.model, question_timeout=0.3, concurrent_questions=1) as client:
        body = {"question": QUESTION, "stream": stream}
        replied = await client.post("/api/ask", json=body)
        await until(lambda: waiting.stopped == 1)
        waiting.go_on.set()
        assert (await client.post("/api/ask", json=body)).status_code == 200  # the place is free
        kept = (await client.get("/api/traces")).json()["traces"]

    if stream:
        assert replied.status_code == 200
        kind, data = events_in(replied.text)[-1]
        failed = json.loads(data)
        assert (kind, failed["code"]) == ("run_failed", "took_too_long")
        assert "longer than 0.3 seconds" in failed["error"]
    else:
        assert replied.status_code == 504
        assert "longer than 0.3 seconds" in replied.json()["error"]["message"]
    assert [one["status"] for one in kept[1:]] == ["failed"]


async def test_what_nobody_expected_is_logged_and_not_sent(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: KnowledgeBase) -> None:
        raise RuntimeError("the secret cause")

    async with api() as client:
        monkeypatch.setattr(KnowledgeBase, "snapshot", broken)
        replied = await client.post("/api/ask", json={"question": "x"})
        streamed = await client.post("/api/ask", json={"question": "x", "stream": True})
        searched = await client.get("/api/search", params={"query": "x"})

    assert replied.status_code == 502 and searched.status_code == 500
    assert events_in(streamed.text)[-1][0] == "run_failed"
    for one in (replied, streamed, searched):
        assert "its log says what" in one.text
        assert "secret" not in one.text and "Traceback" not in one.text
    assert caplog.text.count("the secret cause") >= 3


@pytest.mark.parametrize("stream", [True, False])
def test_when_the_client_goes_the_models_request_ends_and_the_place_is_free(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serving(SlowModel(words=["It is so. "] * 60, pause=0.2)) as slow:
        server = kb.settings.server.model_copy(update={"concurrent_questions": 1})
        given = {"model": "openai:slow", "base_url": slow.address, "server": server}
        settings = kb.settings.model_copy(update=given)
        with served(create_app(settings, kb=kb)) as url:
            body = {"question": QUESTION, "stream": stream}
            if stream:
                with httpx.stream("POST", f"{url}/api/ask", json=body, timeout=10) as reply:
                    lines = reply.iter_lines()
                    while "step_started" not in next(lines):
                        pass
                    assert slow.requested.wait(5)
            else:
                with pytest.raises(httpx.ReadTimeout):
                    httpx.post(f"{url}/api/ask", json=body, timeout=1)
            assert slow.requested.is_set()
            assert slow.hung_up.wait(5)
            traces: list[dict[str, Any]] = []
            for _ in range(100):
                traces = httpx.get(f"{url}/api/traces").json()["traces"]
                if traces:
                    break
                time.sleep(0.02)
            assert [one["status"] for one in traces] == ["stopped"]
            none = {"question": QUESTION, "model": "none"}
            assert httpx.post(f"{url}/api/ask", json=none, timeout=10).status_code == 200


async def test_a_conversation_is_kept_and_goes_before_the_next_question(
    kb: KnowledgeBase, api: Api, fees: str
) -> None:
    model = Model(f"It is 12 euros [{fees}].", f"It is due in March [{fees}].")
    async with api(model.model) as client:
        session = (await client.post("/api/sessions")).json()["id"]
        first = {"question": QUESTION, "session": session}
        assert (await client.post("/api/ask", json=first)).status_code == 200
        second = {"question": "And when is it due?", "stream": True}
        streamed = await client.post(f"/api/sessions/{session}/ask", json=second)
        assert events_in(streamed.text)[-1][0] == "run_finished"
        kept = (await client.get(f"/api/sessions/{session}")).json()
        listed = (await client.get("/api/sessions")).json()
        deleted = await client.delete(f"/api/sessions/{session}")
        gone = await client.get(f"/api/sessions/{session}")
        again = await client.delete(f"/api/sessions/{session}")

    questions = [turn["question"] for turn in kept["turns"]]
    assert questions == [QUESTION, "And when is it due?"]
    assert kept["turns"][0]["answer"]["citations"][0]["chunk_id"] == fees
    assert [(one["id"], one["title"], one["turns"]) for one in listed["sessions"]] == [
        (session, QUESTION, 2)
    ]
    assert QUESTION in model.sent(-1)
    assert deleted.status_code == 204 and gone.status_code == again.status_code == 404
    assert SessionStore(kb.directory).list() == []


async def test_two_questions_in_one_conversation_at_once_lose_no_turn(api: Api) -> None:
    waiting = Waiting()
    async with api(waiting.model) as client:
        session = (await client.post("/api/sessions")).json()["id"]
        body = {"question": QUESTION, "session": session}
        first = asyncio.create_task(client.post("/api/ask", json=body))
        await until(lambda: waiting.asked == 1)
        second = await client.post("/api/ask", json=body)
        deleted = await client.delete(f"/api/sessions/{session}")
        waiting.go_on.set()
        assert (await first).status_code == 200
        kept = (await client.get(f"/api/sessions/{session}")).json()

    assert second.status_code == deleted.status_code == 409
    assert second.json()["error"]["code"] == "session_busy"
    assert len(kept["turns"]) == 1


async def test_a_conversation_that_the_caller_keeps_goes_before_the_question(api: Api) -> None:
    model = Model("It is due in March.")
    history = [{"question": QUESTION, "answer": "It is 12 euros."}]
    async with api(model.model) as client:
        body = {"question": "When is it due?", "history": history}
        replied = await client.post("/api/ask", json=body)

    assert replied.status_code == 200
    assert "It is 12 euros." in model.sent(-1)


async def test_an_answer_is_given_where_it_cannot_be_kept(
    kb: KnowledgeBase, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    (kb.directory / "traces").write_text("no folder")
    async with api() as client:
        replied = await client.post("/api/ask", json={"question": "pump"})

    assert replied.status_code == 200
    assert replied.json()["trace_id"] is None
    assert "a trace could not be saved" in caplog.text
    Answer.model_validate({k: v for k, v in replied.json().items() if k != "trace_id"})


def test_fifty_clients_that_stop_at_once_leave_no_work_behind(
    kb: KnowledgeBase, settings: Settings
) -> None:
    waiting = Waiting()
    before = threading.active_count()
    server = settings.server.model_copy(update={"concurrent_questions": 8, "queued_questions": 100})
    app = create_app(settings.model_copy(update={"server": server}), kb=kb, model=waiting.model)
    with served(app) as url:
        body = {"question": QUESTION}

        async def all_at_once() -> None:
            async with httpx.AsyncClient(timeout=1.0) as client:
                asked = [client.post(f"{url}/api/ask", json=body) for _ in range(50)]
                for result in await asyncio.gather(*asked, return_exceptions=True):
                    assert isinstance(result, httpx.TimeoutException)

        asyncio.run(all_at_once())
        state = app.state.server
        for _ in range(250):
            if state.gate.running == state.gate.waiting == 0:
                break
            time.sleep(0.02)
        assert (state.gate.running, state.gate.waiting) == (0, 0)
        assert waiting.stopped == waiting.asked <= 8
    assert threading.active_count() < before + 60
