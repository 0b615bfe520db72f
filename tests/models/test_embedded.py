"""The embedded model itself, in this process, from question to checked answer."""

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import agentic_rag
from agentic_rag.config import Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models import embedded
from agentic_rag.models.embedded import ModelFileUnusable
from agentic_rag.strategies.run import ask
from tests.web_search.provider_server import Reply, serving

TEXT = "The Oriole Bridge crosses the river Tamar. It was opened in 1932 by Ada Brown."


def run(program: str) -> "subprocess.CompletedProcess[str]":
    """Runs `program` in a process of its own, at most a minute."""
    source = str(Path(agentic_rag.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "bridge.md").write_text(f"# Oriole Bridge\n\n{TEXT}\n", encoding="utf-8")
    (folder / "pumps.txt").write_text("蓝桥泵站于1999年建成，由王芳主持设计。\n", encoding="utf-8")
    settings = Settings(kb=tmp_path_factory.mktemp("kb"))
    made = KnowledgeBase.open(settings.kb, settings=settings)
    made.add([folder])
    return made


async def test_it_answers_with_a_source_and_says_what_it_is(
    smollm2: Path, kb: KnowledgeBase
) -> None:
    answer = await ask(kb, "When was the Oriole Bridge opened?", model=f"local:{smollm2}")

    assert answer.status == "answered"
    assert "1932" in answer.text
    assert "demonstration model" in answer.text
    assert answer.citations[0].uri.endswith("bridge.md")
    assert answer.usage.cost == 0.0
    assert answer.usage.input_tokens > 50
    assert answer.unsupported == () or answer.citations


async def test_a_chinese_question_gets_the_best_passages(smollm2: Path, kb: KnowledgeBase) -> None:
    answer = await ask(kb, "蓝桥泵站是谁设计的？", model=f"local:{smollm2}")

    assert "由王芳主持设计" in answer.text
    assert "演示模型不懂中文" in answer.text
    assert answer.usage.model_requests == 0


def test_a_file_is_loaded_once_a_process(smollm2: Path) -> None:
    first = embedded.load(smollm2, 4096)
    began = time.monotonic()

    assert embedded.load(smollm2, 4096) == first
    assert time.monotonic() - began < 0.05


def test_its_endpoint_is_on_loopback_and_refuses_strangers(smollm2: Path) -> None:
    endpoint = embedded.load(smollm2, 4096)
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()

    def status(key: str) -> int:
        request = urllib.request.Request(
            f"{endpoint.base_url}/chat/completions",
            data=body,
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            return int(opener.open(request, timeout=60).status)
        except urllib.error.HTTPError as error:
            return error.code

    assert endpoint.base_url.startswith("http://127.0.0.1:")
    assert status("guess") == 401
    assert status(endpoint.api_key) == 200
    assert endpoint.api_key not in repr(endpoint)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF\x03\x00\x00\x00 and then nothing of use")

    with pytest.raises(ModelFileUnusable, match=r"cannot load .*damaged\.gguf"):
        embedded.load(damaged, 512)


def test_nothing_is_printed_and_the_process_ends_by_itself(smollm2: Path) -> None:
    program = f"""
        import asyncio
        from pathlib import Path
        from agentic_rag.models.chat import resolve_chat_model
        from agentic_rag.config import Settings
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest

        async def main():
            chat = resolve_chat_model(Settings(model="local:" + {str(smollm2)!r}))
            async with chat.connect() as model:
                ask = ModelRequest.user_text_prompt("Say yes.")
                reply = await model_request(model, [ask], model_settings={{"max_tokens": 4}})
                assert reply.usage.output_tokens > 0

        asyncio.run(main())
    """
    ran = run(program)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_process_that_ends_in_the_middle_of_an_answer_ends_cleanly(smollm2: Path) -> None:
    program = f"""
        import asyncio
        from agentic_rag.models.chat import resolve_chat_model
        from agentic_rag.config import Settings
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import ModelRequest

        async def main():
            chat = resolve_chat_model(Settings(model="local:" + {str(smollm2)!r}))
            async with chat.connect() as model:
                ask = ModelRequest.user_text_prompt("Count from one to five hundred.")
                async with model_request_stream(model, [ask]) as stream:
                    async for event in stream:
                        return

        asyncio.run(main())
        raise SystemExit(7)
    """
    began = time.monotonic()
    ran = run(program)

    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "", "")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("question", "stages"),
    [
        ("When was the Oriole Bridge opened?", ["rewrite", "retrieve", "evaluate", "answer"]),
        ("王芳主持设计的蓝桥泵站是哪年建成的？", ["rewrite", "retrieve", "evaluate"]),
    ],
)
async def test_the_workflow_takes_the_direct_path_with_it(
    smollm2: Path, kb: KnowledgeBase, question: str, stages: list[str]
) -> None:
    answer = await ask(kb, question, strategy="workflow", model=f"local:{smollm2}")
    assert [e.name for e in answer.trace if e.type == "step_finished"] == stages
    assert answer.status == "answered"
    assert answer.citations


async def test_the_workflow_takes_the_web_path_with_it(
    smollm2: Path, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERPAPI_API_KEY", raising=False)
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    found = {"url": "http://127.0.0.1:9/tea", "title": "Tea", "content": "Steep tea three minutes."}
    with serving(lambda request: Reply({"query": "q", "results": [found]})) as server:
        settings = Settings(web_search={"provider": "searxng", "url": server.url})
        answer = await ask(
            kb,
            "How long should green tea steep in hot water?",
            strategy="workflow",
            model=f"local:{smollm2}",
            settings=settings,
        )
    names = [e.name for e in answer.trace if e.type == "step_finished"]
    assert names == ["rewrite", "retrieve", "evaluate", "web_search", "answer"]
    assert any(notice.code == "page_not_read" for notice in answer.notices)


async def test_the_pipeline_runs_to_its_end_with_it(smollm2: Path, kb: KnowledgeBase) -> None:
    settings = Settings(pipeline={"expansion": "hyde", "compression": "bm25"})
    answer = await ask(
        kb,
        "When was the Oriole Bridge opened?",
        strategy="pipeline",
        model=f"local:{smollm2}",
        settings=settings,
    )
    names = [e.name for e in answer.trace if e.type == "step_finished"]
    assert names == ["hyde", "retrieve", "rank", "answer"]
    assert answer.citations
