"""What whoever runs the server sees of it: logs, metrics, spans, readiness, the API's page."""

import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.server import spans
from agentic_rag.server.request_log import log_as_json
from tests.server.conftest import Api
from tests.strategies.agent.playing import Model, search


@pytest.fixture
def _loggers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_loggers_as_before")
async def test_each_request_is_a_line_of_json_with_its_id_and_nothing_secret(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    log_as_json()
    async with api() as client:
        headers = {"X-Request-ID": "abc-1", "Authorization": "Bearer very-secret"}
        named = await client.get("/api/search?query=private-question", headers=headers)
        other = await client.get("/api/nowhere", headers={"X-Request-ID": 'a"}\n{"x": '})
        await client.get("/api/health")

    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    mine = [line for line in lines if line["message"] == "request"]
    assert [line["request"] for line in mine] == ["abc-1", other.headers["x-request-id"]]
    assert [line["status"] for line in mine] == [200, 404]
    assert mine[0]["path"] == "/api/search" and mine[0]["milliseconds"] > 0
    assert named.headers["x-request-id"] == "abc-1"
    assert re.fullmatch("[0-9a-f]{16}", other.headers["x-request-id"])
    assert "private" not in err and "very-secret" not in err
    assert out == ""


@pytest.mark.usefixtures("_loggers_as_before")
async def test_what_went_wrong_stands_in_the_log_under_the_id_that_the_client_got(
    api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: KnowledgeBase) -> None:
        raise RuntimeError("the cause")

    log_as_json()
    async with api() as client:
        monkeypatch.setattr(KnowledgeBase, "snapshot", broken)
        failed = await client.get("/api/chunks/1-1")

    assert failed.status_code == 500
    said = failed.json()["error"]["message"]
    assert failed.headers["x-request-id"] in said and "cause" not in said
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [told] = [line for line in lines if "exception" in line]
    assert told["request"] == failed.headers["x-request-id"]
    assert told["exception"].endswith("RuntimeError: the cause")


async def test_metrics_count_requests_questions_tokens_and_documents(api: Api, fees: str) -> None:
    model = Model(search("fee"), f"It is 12 euros [{fees}].")
    async with api(model.model) as client:
        await client.post("/api/ask", json={"question": "What is the fee?"})
        await client.get(f"/api/chunks/{fees}")
        await client.get("/api/chunks/9-9")
        for path in ("/nowhere/1", "/nowhere/2"):
            await client.get(path)
        text = (await client.get("/metrics")).text

    assert 'arag_documents{status="ready"} 4.0' in text
    assert 'arag_question_seconds_count{status="answered",strategy="agent"} 1.0' in text
    assert "arag_questions_running 0.0" in text
    route = 'method="GET",route="/api/chunks/{chunk_id}"'
    assert f'arag_request_seconds_count{{{route},status="200"}} 1.0' in text
    assert f'arag_request_seconds_count{{{route},status="404"}} 1.0' in text
    assert "/nowhere" not in text  # a path of its own for each stranger would fill the memory
    retrieved = re.search(r'arag_tokens_total\{kind="retrieved"\} ([\d.]+)', text)
    assert retrieved and float(retrieved[1]) > 5
    if sys.platform == "linux":
        assert "process_resident_memory_bytes" in text


async def test_each_step_of_a_question_is_a_span_and_no_text_is_in_it(
    api: Api, fees: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    model = Model(search("fee"), f"It is 12 euros [{fees}].")
    async with api(model.model) as client:
        await client.post("/api/ask", json={"question": "What is the fee?"})

    made = exporter.get_finished_spans()
    [whole] = [span for span in made if span.name == "question"]
    [searched] = [span for span in made if span.name == "keyword_search"]
    assert whole.attributes and whole.attributes["arag.strategy"] == "agent"
    assert whole.attributes["arag.status"] == "answered"
    assert searched.attributes and searched.attributes["arag.hits"] == 1
    assert {span.context.trace_id for span in made if span.context} == {whole.context.trace_id}
    for span in made:
        assert span.start_time and span.end_time and span.start_time <= span.end_time
        assert "fee" not in str(span.attributes)


def test_spans_are_set_up_only_where_an_exporter_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []
    monkeypatch.setattr(trace, "set_tracer_provider", made.append)
    assert spans.configure() == "" and made == []
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert spans.configure() == "" and made == []
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nobodys")
    assert "install" in spans.configure() and made == []
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    assert spans.configure() == "" and len(made) == 1


async def test_a_server_whose_knowledge_base_is_gone_runs_but_is_not_ready(
    kb: KnowledgeBase, api: Api
) -> None:
    async with api() as client:
        assert (await client.get("/api/ready")).status_code == 200
        (kb.directory / "head.json").rename(kb.directory / "head.away")
        assert (await client.get("/api/health")).status_code == 200
        unready = await client.get("/api/ready")
        assert unready.status_code == 503
        assert "is gone" in unready.json()["error"]["message"]
        assert (await client.get("/metrics")).status_code == 200
        (kb.directory / "head.away").rename(kb.directory / "head.json")
        assert (await client.get("/api/ready")).status_code == 200


async def test_the_page_of_the_api_shows_every_operation_and_loads_nothing(api: Api) -> None:
    async with api() as client:
        page = await client.get("/docs")
        schema = (await client.get("/openapi.json")).json()

    read = BeautifulSoup(page.text, "html.parser")
    shown = {element.get_text() for element in read.select(".path")}
    assert shown == set(schema["paths"])
    assert not read.find_all(["script", "link", "img", "iframe"])
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert operation["summary"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("PUT", "/api/ask", 405), ("GET", "/api/ask", 405)],
)
async def test_what_is_not_there_is_told_in_the_same_shape(
    api: Api, method: str, path: str, status: int
) -> None:
    async with api() as client:
        told = await client.request(method, path)

    assert told.status_code == status
    assert told.json()["error"]["message"].endswith("/docs lists what there is.") or status == 405
