"""The graph, its model scripted: which stages run, what each says, what the answer rests on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from agentic_rag.config import Settings
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import Event, Notice, RunFinished, StepFinished, StepStarted
from agentic_rag.strategies.run import ask, shown_prompt, stream
from tests.strategies.conftest import chunk_of
from tests.strategies.workflow.stages import (
    GOOD,
    POOR,
    REWRITTEN,
    Stages,
    events_of,
    output_of,
    stages_of,
)
from tests.web_search.provider_server import Asked, Reply, serving

QUESTION = "When did that old bridge open?"
PAGE = (
    b"<html><head><title>Bridges of the Tamar</title></head><body><article><h1>Bridges</h1>"
    b"<p>The Oriole Bridge was opened on 3 May 1932 by the mayor, with a brass band and a boat "
    b"race that the town of Hagwell won.</p></article></body></html>"
)


@pytest.fixture(autouse=True)
def _quick_and_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)
    for name in ("SERPAPI_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def answer_of(events: list[Event]) -> Answer:
    assert isinstance(events[-1], RunFinished)
    return events[-1].answer


def codes(events: list[Event]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


def bridge(kb: KnowledgeBase) -> str:
    return chunk_of(kb, "bridge.md")


@contextmanager
def searching(found: Any, page: bytes = PAGE, **more: Any) -> Iterator[tuple[Settings, list[str]]]:
    """Settings with a SearXNG on loopback that finds `found` (paths of the same server), and the
    paths that were asked for."""
    asked: list[str] = []

    def answered(request: Asked) -> Reply:
        asked.append(request.path)
        if request.path != "/search":
            return Reply(page, headers={"Content-Type": "text/html; charset=utf-8"})
        if isinstance(found, Reply):
            return found
        results = [
            {"url": f"http://{request.headers['Host']}/{path}", "title": title, "content": text}
            for path, title, text in found
        ]
        return Reply({"query": "q", "results": results})

    with serving(answered) as server:
        settings = Settings(
            model="none",
            web_search={"provider": "searxng", "url": server.url, "timeout": 5},
            web={"allow_private": True},
            **more,
        )
        yield settings, asked


async def test_documents_that_suffice_are_answered_from_and_the_web_is_not_asked(
    kb: KnowledgeBase,
) -> None:
    model = Stages(answer=[f"It was opened in 1932 [{bridge(kb)}]."])
    with searching([("page", "Bridges", "Opened 1932.")]) as (settings, asked):
        events = await events_of(kb, QUESTION, model, settings=settings)

    assert stages_of(events) == ["rewrite", "retrieve", "evaluate", "answer"]
    assert asked == []
    assert [stage for stage, _ in model.sent] == ["rewrite", "evaluate", "answer"]
    answer = answer_of(events)
    assert (answer.status, answer.strategy) == ("answered", "workflow")
    assert answer.text == "It was opened in 1932 [1]."
    assert answer.citations[0].origin == "documents"
    assert answer.usage.model_requests == 3
    report = output_of(events, "evaluate")
    assert (report["score"], report["passed"], report["threshold"]) == (34, True, 32)


async def test_the_rewriting_is_searched_for_beside_the_question_itself(kb: KnowledgeBase) -> None:
    events = await events_of(kb, "When did  that ｏｌｄ bridge open?", Stages())

    started = next(e for e in events if isinstance(e, StepStarted) and e.name == "retrieve")
    assert started.input["queries"] == [
        REWRITTEN["query"],
        "When did that old bridge open?",
        *REWRITTEN["variants"],
        "Oriole Bridge opened",
    ]
    assert output_of(events, "rewrite") == REWRITTEN
    hit = next(e for e in events if isinstance(e, StepFinished) and e.name == "retrieve").hits[0]
    assert hit.chunk_id == bridge(kb)
    assert hit.vector_score is not None and hit.keyword_score is not None
    assert hit.fused_score is not None and hit.rerank_score is None


async def test_documents_that_fall_short_are_completed_from_the_web(kb: KnowledgeBase) -> None:
    model = Stages(
        evaluate=[json.dumps(POOR)],
        answer=[f"In 1932 [{bridge(kb)}]. A brass band played [0-1]."],
    )
    with searching([("page", "Bridges", "x")]) as (settings, asked):
        events = await events_of(kb, QUESTION, model, settings=settings)

    assert stages_of(events) == ["rewrite", "retrieve", "evaluate", "web_search", "answer"]
    assert asked == ["/search", "/page"]
    answer = answer_of(events)
    assert answer.text == "In 1932 [1]. A brass band played [2]."
    local, web = answer.citations
    assert (local.origin, web.origin) == ("documents", "web")
    assert web.chunk_id == ""
    assert web.uri.endswith("/page")
    assert "brass band" in web.snippet
    prompt = model.asked("answer")[0]
    assert prompt.index("1-1") < prompt.index("0-1")  # the documents go first
    assert 'web="http' in prompt


async def test_the_order_of_authority_is_a_setting(kb: KnowledgeBase) -> None:
    model = Stages(evaluate=[json.dumps(POOR)])
    workflow = {"authority": ["web", "documents"]}
    with searching([("page", "Bridges", "x")], workflow=workflow) as (settings, _):
        await events_of(kb, QUESTION, model, settings=settings)
    prompt = model.asked("answer")[0]
    assert prompt.index("0-1") < prompt.index(f'id="{bridge(kb)}"')


async def test_the_threshold_decides_and_not_the_model(kb: KnowledgeBase) -> None:
    exactly = {**GOOD, "relevance": {"score": 7, "reason": ""}}  # 32 of 40
    passed = await events_of(kb, QUESTION, Stages(evaluate=[json.dumps(exactly)]))
    below = {**exactly, "passed": True, "coverage": {"score": 7.5, "reason": ""}}
    failed = await events_of(kb, QUESTION, Stages(evaluate=[json.dumps(below)]))
    lax = Settings(model="none", workflow={"threshold": 20})
    again = await events_of(kb, QUESTION, Stages(evaluate=[json.dumps(below)]), settings=lax)

    assert [output_of(e, "evaluate")["passed"] for e in (passed, failed, again)] == [
        True,
        False,
        True,
    ]


async def test_a_malformed_evaluation_is_asked_for_once_more(kb: KnowledgeBase) -> None:
    model = Stages(evaluate=["Of 5 points, 3 are met: score 9/10", json.dumps(GOOD)])
    events = await events_of(kb, QUESTION, model)
    assert output_of(events, "evaluate")["passed"] is True
    assert len(model.asked("evaluate")) == 2


async def test_a_second_malformed_evaluation_counts_as_a_fail_and_says_why(
    kb: KnowledgeBase,
) -> None:
    model = Stages(evaluate=["not excellent"])
    events = await events_of(kb, QUESTION, model)
    assert output_of(events, "evaluate") == {"passed": False}
    assert len(model.asked("evaluate")) == 2
    assert codes(events) == ["unscored", "no_web_search"]
    assert answer_of(events).status == "answered"  # from what there is, and it is told


@pytest.mark.parametrize("bad", ["no object", '{"query": ""}', "<think>hm"])
async def test_a_failed_rewriting_falls_back_to_the_question_and_says_so(
    kb: KnowledgeBase, bad: str
) -> None:
    model = Stages(rewrite=[bad])
    events = await events_of(kb, "When was the Oriole Bridge opened?", model)
    assert codes(events)[0] == "not_rewritten"
    started = next(e for e in events if isinstance(e, StepStarted) and e.name == "retrieve")
    assert started.input["queries"] == ["When was the Oriole Bridge opened?"]
    assert len(model.asked("rewrite")) == 1


async def test_a_model_that_refuses_every_request_leaves_the_best_passages(
    kb: KnowledgeBase,
) -> None:
    refused = ModelHTTPError(401, "scripted", {"error": {"message": "bad key"}})
    model = Stages(rewrite=[refused], evaluate=[refused], answer=[refused])
    events = await events_of(kb, "When was the Oriole Bridge opened?", model)
    assert codes(events) == ["not_rewritten", "unscored", "no_web_search", "model_failed"]
    answer = answer_of(events)
    assert answer.status == "model_failed"
    assert answer.citations[0].chunk_id == bridge(kb)


async def test_a_second_round_follows_the_suggestions_before_the_web(kb: KnowledgeBase) -> None:
    poor = {**POOR, "suggestions": ["opening of the Oriole Bridge by Ada Brown"]}
    model = Stages(evaluate=[json.dumps(poor), json.dumps(GOOD)])
    with searching([("page", "Bridges", "x")], workflow={"rounds": 2}) as (settings, asked):
        events = await events_of(kb, QUESTION, model, settings=settings)
    assert stages_of(events) == [
        "rewrite",
        "retrieve",
        "evaluate",
        "retrieve",
        "evaluate",
        "answer",
    ]
    assert asked == []
    started = [e for e in events if isinstance(e, StepStarted) and e.name == "retrieve"]
    assert started[1].input["queries"] == ["opening of the Oriole Bridge by Ada Brown"]


async def test_without_suggestions_there_is_no_second_round(kb: KnowledgeBase) -> None:
    settings = Settings(model="none", workflow={"rounds": 3})
    model = Stages(evaluate=[json.dumps(POOR)])
    events = await events_of(kb, QUESTION, model, settings=settings)
    assert stages_of(events) == ["rewrite", "retrieve", "evaluate", "answer"]


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        (Reply(b"no", status=401), "web_search_unavailable", "401"),
        (
            Reply(b"<html>captcha</html>", status=202, headers={"Content-Type": "text/html"}),
            "web_search_unavailable",
            "",
        ),
        (
            Reply(b"<html>hello</html>", headers={"Content-Type": "text/html"}),
            "web_search_unavailable",
            "JSON",
        ),
        ([], "web_search_empty", "found nothing"),
    ],
)
async def test_a_web_search_that_fails_or_finds_nothing_is_told_and_the_documents_answer(
    kb: KnowledgeBase, found: Any, code: str, said: str
) -> None:
    model = Stages(evaluate=[json.dumps(POOR)], answer=[f"In 1932 [{bridge(kb)}]."])
    with searching(found) as (settings, _):
        events = await events_of(kb, QUESTION, model, settings=settings)
    notice = next(e for e in events if isinstance(e, Notice) and e.code == code)
    assert said in notice.message
    assert answer_of(events).text == "In 1932 [1]."


async def test_a_web_search_that_does_not_answer_ends_at_its_time_limit(kb: KnowledgeBase) -> None:
    model = Stages(evaluate=[json.dumps(POOR)])
    with searching(Reply({"results": []}, wait=20)) as (settings, _):
        quick = settings.model_copy(
            update={"web_search": settings.web_search.model_copy(update={"timeout": 0.3})}
        )
        events = await events_of(kb, QUESTION, model, settings=quick)
    assert "web_search_unavailable" in codes(events)


async def test_a_page_that_cannot_be_read_is_stood_in_for_by_its_snippet(
    kb: KnowledgeBase,
) -> None:
    model = Stages(evaluate=[json.dumps(POOR)], answer=["It opened with a boat race [0-1]."])
    found = [("page", "Bridges", "The Oriole Bridge opened with a boat race.")]
    with searching(found, page=b"\x00\x01") as (settings, _):
        events = await events_of(kb, QUESTION, model, settings=settings)
    assert "page_not_read" in codes(events)
    assert answer_of(events).citations[0].snippet.startswith("The Oriole Bridge opened with")


async def test_a_refusal_says_what_was_looked_for_and_how_to_ask_better(
    kb: KnowledgeBase,
) -> None:
    poor = {**POOR, "suggestions": ["toll of the Oriole Bridge"]}
    model = Stages(
        rewrite=[json.dumps({**REWRITTEN, "query": "toll for lorries"})],
        evaluate=[json.dumps(poor)],
        answer=["Not in the documents: the toll for lorries."],
    )
    answer = answer_of(await events_of(kb, "What do lorries pay?", model))
    assert answer.status == "insufficient"
    assert "Looked for: toll for lorries; What do lorries pay?" in answer.text
    assert "It may help to ask: toll of the Oriole Bridge." in answer.text


async def test_an_empty_knowledge_base_is_judged_without_a_model(empty_kb: KnowledgeBase) -> None:
    model = Stages()
    events = await events_of(empty_kb, "桥是什么时候通车的？", model)
    assert [stage for stage, _ in model.sent] == ["rewrite"]
    assert output_of(events, "evaluate") == {"passed": False, "reason": "Nothing was found."}
    answer = answer_of(events)
    assert answer.status == "insufficient"
    assert "检索过" in answer.text


async def test_without_a_model_rules_prepare_and_the_best_passages_answer(
    kb: KnowledgeBase,
) -> None:
    events = [
        e async for e in stream(kb, "When was the Oriole Bridge opened?", strategy="workflow")
    ]
    assert stages_of(events) == ["rewrite", "retrieve", "evaluate"]
    answer = answer_of(events)
    assert answer.usage.model_requests == 0
    assert answer.citations[0].chunk_id == bridge(kb)


async def test_each_stage_is_sampled_as_the_settings_say(kb: KnowledgeBase) -> None:
    model = Stages()
    await events_of(kb, QUESTION, model)
    assert [(s["stage"], s["max_tokens"]) for s in model.settings] == [
        ("rewrite", 1024),
        ("evaluate", 1536),
        ("answer", 2048),
    ]
    assert all(s["temperature"] == 0.1 and s["top_p"] == 0.8 for s in model.settings)

    model = Stages()
    each = {"evaluate_temperature": 0, "answer_temperature": 0.5, "answer_top_p": 1}
    await events_of(kb, QUESTION, model, settings=Settings(model="none", workflow=each))
    assert [(s["temperature"], s["top_p"]) for s in model.settings] == [
        (0.1, 0.8),
        (0, 0.8),
        (0.5, 1),
    ]

    model = Stages()
    own = Settings(model="none", temperature=0.7, workflow={"answer_tokens": 100})
    await events_of(kb, QUESTION, model, settings=own)
    assert model.settings[-1]["max_tokens"] == 100
    assert all(s["temperature"] == 0.7 and "top_p" not in s for s in model.settings)


async def test_a_legal_answer_has_the_parts_of_one(kb: KnowledgeBase) -> None:
    settings = Settings(model="none", workflow={"profile": "legal"})
    prompt = shown_prompt(kb, QUESTION, strategy="workflow", settings=_with_model(settings))
    assert '"variants"' in prompt.system
    model = Stages()
    seen: list[str] = []
    model.model = _keeping_instructions(model, seen)
    await events_of(kb, "违反泵站办法会怎样？", model, settings=settings)
    for part in (
        "问题分析",
        "相关法条",
        "法律解释",
        "建议措施",
        "适用条件",
        "注意事项",
        "免责声明",
    ):
        assert f"## {part}" in seen[-1]


def _with_model(settings: Settings) -> Settings:
    return settings.model_copy(
        update={"model": "test", "base_url": "http://127.0.0.1:9/v1"}
    )  # never asked


def _keeping_instructions(model: Stages, seen: list[str]) -> Any:
    from pydantic_ai.models.function import FunctionModel

    async def keep(messages: Any, info: Any) -> Any:
        seen.append(info.instructions)
        async for piece in model._stream(messages, info):
            yield piece

    return FunctionModel(stream_function=keep, model_name="scripted")


async def test_a_template_of_the_users_own_is_followed(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "模板.md"
    path.write_text("Answer in one haiku.")
    seen: list[str] = []
    model = Stages()
    model.model = _keeping_instructions(model, seen)
    settings = Settings(model="none", workflow={"profile": str(path)})
    await events_of(kb, QUESTION, model, settings=settings)
    assert seen[-1].endswith("Answer in one haiku.")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"workflow": {"profile": "legl"}}, "neither one of general, legal nor a text file"),
        ({"workflow": {"profile": "/nowhere/t.md"}}, "/nowhere/t.md"),
        ({"workflow": {"rewrite_model": "opnai:x"}}, "opnai"),
        ({"web_search": {"provider": "serpapy"}}, "did you mean 'serpapi'"),
        ({"web_search": {"provider": "serpapi"}}, "SERPAPI_API_KEY"),
        ({"rerank": {"model": "nosuch:thing"}}, "nosuch"),
    ],
)
async def test_a_wrong_setting_is_told_before_the_question(
    kb: KnowledgeBase, wrong: dict[str, Any], said: str
) -> None:
    model = Stages()
    events = stream(
        kb,
        QUESTION,
        strategy="workflow",
        model=model.model,
        settings=Settings(model="none", **wrong),
    )
    with pytest.raises(AragError) as raised:
        await anext(events)
    assert said in str(raised.value)
    assert model.sent == []


async def test_a_reply_in_json_never_reaches_the_answer(kb: KnowledgeBase) -> None:
    answer = await ask(kb, QUESTION, strategy="workflow", model=Stages().model)
    assert "relevance" not in answer.text and "variants" not in answer.text


async def test_the_chat_model_can_put_the_passages_in_order(kb: KnowledgeBase) -> None:
    settings = Settings(model="none", rerank={"model": "chat"})
    model = Stages(rerank=['{"order": [2, 1]}'])
    events = await events_of(kb, QUESTION, model, settings=settings)
    assert stages_of(events) == ["rewrite", "retrieve", "rerank", "evaluate", "answer"]
    reranked = next(e for e in events if isinstance(e, StepFinished) and e.name == "rerank")
    before = next(e for e in events if isinstance(e, StepFinished) and e.name == "retrieve")
    assert [h.chunk_id for h in reranked.hits[:2]] == [h.chunk_id for h in before.hits[1::-1]]
    assert reranked.hits[0].rerank_score == 1
    assert answer_of(events).usage.model_requests == 4


async def test_a_reranker_that_fails_leaves_the_order_of_the_searches(kb: KnowledgeBase) -> None:
    settings = Settings(model="none", rerank={"model": "chat"})
    events = await events_of(kb, QUESTION, Stages(rerank=["I cannot."]), settings=settings)
    assert codes(events)[0] == "rerank"
    reranked = next(e for e in events if isinstance(e, StepFinished) and e.name == "rerank")
    before = next(e for e in events if isinstance(e, StepFinished) and e.name == "retrieve")
    assert [h.chunk_id for h in reranked.hits] == [h.chunk_id for h in before.hits]
    assert answer_of(events).status == "answered"


async def test_a_page_cannot_buy_a_citation_by_its_title(kb: KnowledgeBase) -> None:
    model = Stages(evaluate=[json.dumps(POOR)], answer=["Click javascript alert now."])
    found = [("page", "Click javascript alert now", "Nothing of the kind.")]
    with searching(found, page=b"\x00") as (settings, _):
        answer = answer_of(await events_of(kb, QUESTION, model, settings=settings))
    assert answer.unsupported == ("Click javascript alert now.",)
