"""One pace for all workers, and a pause for all where a provider wants one."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings

from agentic_rag.config import Evaluation, Settings
from agentic_rag.evaluation.dataset import Dataset
from agentic_rag.evaluation.running.rate import Pace, paced
from agentic_rag.evaluation.running.runner import run_evaluation
from agentic_rag.evaluation.running.tally import RunProgress
from agentic_rag.evaluation.running.variants import variants_of
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models.chat import given_model
from agentic_rag.strategies.reply import Prompt, Reply, stream_reply


async def test_no_more_requests_than_allowed_fall_into_any_minute() -> None:
    pace = Pace(3, minute=0.3)
    sent: list[float] = []

    async def worker() -> None:
        for _ in range(3):
            await pace.turn()
            sent.append(time.monotonic())

    await asyncio.gather(*(worker() for _ in range(3)))

    assert len(sent) == 9
    assert all(later - earlier >= 0.29 for earlier, later in zip(sent, sent[3:], strict=False))


async def test_a_pause_holds_everyone() -> None:
    pace = Pace(None)
    pace.pause(0.2)
    began = time.monotonic()

    await asyncio.gather(*(pace.turn() for _ in range(5)))

    assert time.monotonic() - began >= 0.19


async def test_waiting_for_a_turn_is_no_silence_of_the_model() -> None:
    def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("yes")])

    async def streams(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "yes"

    chat = paced(given_model(FunctionModel(says, stream_function=streams)), Pace(1, minute=0.5))
    assert chat.connect is not None

    async def ask() -> str:
        assert chat.connect is not None
        async with chat.connect() as model:
            pieces = stream_reply(model, Prompt("", "Well?"), ModelSettings(), silence=0.2)
            return next(p.text for p in [piece async for piece in pieces] if isinstance(p, Reply))

    began = time.monotonic()
    assert set(await asyncio.gather(ask(), ask(), ask())) == {"yes"}
    assert time.monotonic() - began >= 0.99


def test_a_pause_grows_and_a_provider_that_wants_too_long_a_one_is_not_waited_for() -> None:
    pace = Pace(None)

    assert pace.waits(refused(None), 1) and pace.paused == pytest.approx(2, abs=0.2)
    assert pace.waits(refused(None), 3) and pace.paused == pytest.approx(8, abs=0.2)
    assert pace.waits(refused("1"), 4) and pace.paused == pytest.approx(8, abs=0.2)
    assert pace.waits(refused("60"), 1) and pace.paused == pytest.approx(60, abs=0.2)
    assert not pace.waits(refused("3600"), 1)
    assert not pace.waits(refused("1"), 7)
    assert not pace.waits(ModelHTTPError(500, "any"), 1)
    assert pace.paused == pytest.approx(60, abs=0.2)


def refused(retry_after: str | None) -> Exception:
    headers = {"Retry-After": retry_after} if retry_after else None
    return ModelHTTPError(429, "any", {"error": {"message": "slow down"}}, headers=headers)


async def test_workers_that_are_refused_again_and_again_get_their_answers_all_the_same(
    kb: KnowledgeBase, dataset: Dataset, tmp_path: Path
) -> None:
    seen: list[RunProgress] = []
    with limited_server(retry_after=1, refuse=range(2, 12)) as (address, (refused, _)):
        settings = Settings(model="openai:any", base_url=address, evaluation=Evaluation(workers=4))
        end = await run_evaluation(
            dataset,
            variants_of("naive"),
            kb=kb,
            run_dir=tmp_path,
            settings=settings,
            on_progress=seen.append,
        )

    assert len(refused) == 10
    assert [progress.pause for progress in seen if progress.pause] == [
        pytest.approx(1, abs=0.1) for _ in refused
    ]
    assert "failed" not in {result.outcome for result in end.run.results}
    assert len(end.run.results) == 7


async def test_after_a_429_no_worker_sends_before_the_time_it_names(
    kb: KnowledgeBase, dataset: Dataset, tmp_path: Path
) -> None:
    with limited_server(retry_after=1) as (address, times):
        settings = Settings(model="openai:any", base_url=address, evaluation=Evaluation(workers=4))
        end = await run_evaluation(
            dataset, variants_of("naive"), kb=kb, run_dir=tmp_path, settings=settings
        )

    assert "failed" not in {result.outcome for result in end.run.results}
    assert len(end.run.results) == 7
    refused, asked = times
    assert len(refused) == 1
    # Those that were on their way with it had been sent before the answer came.
    later = [one for one in asked if one > refused[0] + 0.1]
    assert later and min(later) >= refused[0] + 0.95


@contextmanager
def limited_server(
    retry_after: int, refuse: Container[int] = (2,)
) -> Iterator[tuple[str, tuple[list[float], list[float]]]]:
    """A model server that refuses some requests, its second one, for the rate; the times of refusal
    and of all requests."""
    refused: list[float] = []
    asked: list[float] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                asked.append(time.monotonic())
                refusing = len(asked) in refuse
            if refusing:
                refused.append(time.monotonic())
                self._send(429, b'{"error": {"message": "slow down"}}', "application/json")
                return
            pieces = [{"role": "assistant", "content": "Ada Brown."}, {}]
            lines = b"".join(
                b"data: " + json.dumps(_chunk(delta, last=not delta)).encode() + b"\n\n"
                for delta in pieces
            )
            self._send(200, lines + b"data: [DONE]\n\n", "text/event-stream")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", (refused, asked)
    finally:
        server.shutdown()
        server.server_close()


def _chunk(delta: dict[str, str], *, last: bool) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": "stop" if last else None}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "any",
        "choices": [choice],
    }
