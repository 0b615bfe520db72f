"""The pipeline, its model scripted: which stages run, what each sends, how routes come together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.config import Settings
from agentic_rag.errors import AragError
from agentic_rag.knowledge_base import Filter, KnowledgeBase
from agentic_rag.models.chat import given_model
from agentic_rag.models.reranker import Ranked, RerankFailed
from agentic_rag.strategies import reply, run
from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.events import Event, Notice, RunFinished, StepFinished, StepStarted
from agentic_rag.strategies.pipeline import parts
from agentic_rag.strategies.run import stream
from tests.strategies.conftest import chunk_of

QUESTION = "When was the Oriole Bridge opened?"
Reply = str | Callable[[str], str]


class Writer:
    """Replies in turn, the last one again and again; `sent` are (instructions, user message)."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = replies
        self.sent: list[tuple[str, str]] = []
        self.model = FunctionModel(stream_function=self._stream, model_name="scripted")

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        user = "\n".join(str(getattr(p, "content", "")) for m in messages for p in m.parts)
        self.sent.append((info.instructions or "", user))
        reply = self._replies[min(len(self.sent), len(self._replies)) - 1]
        yield ""
        yield reply(user) if callable(reply) else reply


async def events_of(
    kb: KnowledgeBase, model: Writer, question: str = QUESTION, **pipeline: Any
) -> list[Event]:
    settings = Settings(model="none", pipeline=pipeline)
    events = stream(kb, question, strategy="pipeline", model=model.model, settings=settings)
    return [event async for event in events]


def answer_of(events: Sequence[Event]) -> Answer:
    last = events[-1]
    assert isinstance(last, RunFinished)
    return last.answer


def stages_of(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, StepFinished)]


def output_of(events: Sequence[Event], name: str) -> dict[str, Any]:
    found = [e for e in events if isinstance(e, StepFinished) and e.name == name]
    return dict(found[-1].output)


async def test_both_routes_are_fused_drafted_from_and_refined(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    model = Writer(f"In 1932 [{bridge}].", f"In 1932 [{bridge}]. Ada Brown opened it [{bridge}].")
    events = await events_of(kb, model)

    assert stages_of(events) == ["retrieve", "rank", "draft", "answer"]
    counts = output_of(events, "retrieve")
    assert counts["by_words"] >= 1 and counts["by_vectors"] == 4
    assert counts["ms_by_words"] >= 0 and counts["ms_by_vectors"] >= 0
    assert output_of(events, "rank")["both"][0] == bridge
    answer = answer_of(events)
    assert answer.text == "In 1932 [1]. Ada Brown opened it [1]."
    assert (answer.status, answer.strategy) == ("answered", "pipeline")
    assert answer.usage.model_requests == 2
    _, refining = model.sent[1]
    assert f"In 1932 [{bridge}]." in refining
    assert refining.count("<passage ") == 1  # the best one alone


async def test_without_refining_one_request_writes_the_answer(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    events = await events_of(kb, Writer(f"In 1932 [{bridge}]."), refine=False)
    assert stages_of(events) == ["retrieve", "rank", "answer"]
    assert answer_of(events).text == "In 1932 [1]."


async def test_a_draft_that_finds_nothing_is_not_refined(kb: KnowledgeBase) -> None:
    model = Writer("Not in the documents: the toll.")
    answer = answer_of(await events_of(kb, model, "What is the toll of the Oriole Bridge?"))
    assert answer.status == "insufficient"
    assert len(model.sent) == 1


async def test_the_longer_of_two_answers_is_kept(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    long = f"The Oriole Bridge was opened in 1932 [{bridge}]."
    model = Writer(f"1932 [{bridge}].", long)
    events = await events_of(kb, model, fusion="longer", refine=False)
    assert stages_of(events) == ["retrieve", "rank", "draft", "draft"]
    assert answer_of(events).text == "The Oriole Bridge was opened in 1932 [1]."
    assert answer_of(events).raw_text == long


async def test_two_answers_can_be_joined(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    model = Writer(f"In 1932 [{bridge}].", f"By Ada Brown [{bridge}].")
    events = await events_of(kb, model, fusion="joined", refine=False)
    assert answer_of(events).text == "In 1932 [1].\n\nBy Ada Brown [1]."


async def test_two_answers_that_are_the_same_are_one(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    model = Writer(f"In 1932 [{bridge}].", f"In 1932 [{bridge}].")
    events = await events_of(kb, model, fusion="joined", refine=False)
    assert answer_of(events).text == "In 1932 [1]."


async def test_a_server_that_is_not_there_is_not_asked_in_every_stage(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)
    monkeypatch.setenv("SCRIPTED_KEY", "key")
    settings = Settings(
        model="openai:any",
        base_url="http://127.0.0.1:1/v1",
        api_key_env="SCRIPTED_KEY",
        pipeline={"expansion": "both", "fusion": "longer"},
    )
    events = [e async for e in stream(kb, QUESTION, strategy="pipeline", settings=settings)]
    assert stages_of(events) == ["keywords", "retrieve", "rank", "draft"]
    answer = answer_of(events)
    assert answer.status == "model_failed"
    assert answer.usage.model_requests == 4  # two tries to expand, two to answer
    assert answer.citations[0].chunk_id == chunk_of(kb, "bridge.md")
    told = [notice.code for notice in answer.notices if notice.level != "info"]
    assert told == ["not_expanded", "not_expanded", "model_failed"]


async def test_keywords_and_a_hypothetical_answer_widen_the_search(kb: KnowledgeBase) -> None:
    model = Writer(
        "opening inauguration", "The bridge was opened by the mayor in 1930.", "In 1932."
    )
    events = await events_of(kb, model, expansion="both", refine=False)
    assert stages_of(events)[:2] == ["keywords", "hyde"]
    started = next(e for e in events if isinstance(e, StepStarted) and e.name == "retrieve")
    hypothetical = "The bridge was opened by the mayor in 1930."
    assert started.input["sparse"] == [QUESTION, "opening inauguration", hypothetical]
    assert started.input["dense"] == [QUESTION, hypothetical]


@pytest.mark.parametrize(
    "expansion",
    [
        {"expansion": "none"},
        {"expansion": "keywords"},
        {"expansion": "hyde"},
        {"expansion": "both"},
        {"expansion": "hyde", "hyde_with_text": True},
    ],
)
async def test_the_prompt_that_is_shown_is_the_first_one_sent(
    kb: KnowledgeBase, expansion: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Writer("opening")
    monkeypatch.setattr(run, "_chat_model", lambda settings, _: given_model(model.model))
    settings = Settings(pipeline=expansion)
    shown = run.shown_prompt(kb, QUESTION, strategy="pipeline", settings=settings)
    assert model.sent == []
    await events_of(kb, model, **expansion)
    assert model.sent[0] == (shown.system, shown.user)


async def test_the_hypothetical_answer_can_stand_alone_and_see_a_text(kb: KnowledgeBase) -> None:
    model = Writer("It was opened in 1930.", "In 1932.")
    events = await events_of(
        kb, model, expansion="hyde", hyde_alone=True, hyde_with_text=True, refine=False
    )
    started = next(e for e in events if isinstance(e, StepStarted) and e.name == "retrieve")
    assert started.input["sparse"] == started.input["dense"] == ["It was opened in 1930."]
    assert "crosses the river Tamar" in model.sent[0][1]


async def test_an_expansion_that_fails_is_told_and_the_question_stands(kb: KnowledgeBase) -> None:
    events = await events_of(kb, Writer("", "In 1932."), expansion="keywords", refine=False)
    assert next(e.code for e in events if isinstance(e, Notice)) == "not_expanded"
    started = next(e for e in events if isinstance(e, StepStarted) and e.name == "retrieve")
    assert started.input["sparse"] == [QUESTION]


@pytest.mark.parametrize(
    ("form", "said"),
    [("markdown", "itemised list"), ("thoughts", "<think>"), ("focused", "first passage")],
)
async def test_the_prompt_has_four_forms(kb: KnowledgeBase, form: str, said: str) -> None:
    model = Writer("In 1932.")
    await events_of(kb, model, prompt=form, refine=False)
    assert said in model.sent[0][0]
    plain = Writer("In 1932.")
    await events_of(kb, plain, refine=False)
    assert said not in plain.sent[0][0]


async def test_thoughts_are_no_part_of_the_answer(kb: KnowledgeBase) -> None:
    bridge = chunk_of(kb, "bridge.md")
    model = Writer(f"<think>Maybe 1871 [{bridge}].</think>In 1932 [{bridge}].")
    answer = answer_of(await events_of(kb, model, prompt="thoughts"))
    assert answer.text == "In 1932 [1]."
    assert "1871" not in model.sent[1][1]  # nor of the next prompt


async def test_passages_can_be_compressed(kb: KnowledgeBase) -> None:
    whole, short = Writer("In 1932."), Writer("In 1932.")
    await events_of(kb, whole, refine=False)
    await events_of(kb, short, refine=False, compression="bm25", compression_rate=0.8)
    assert "opened in 1932" in short.sent[0][1]
    assert len(short.sent[0][1]) < 0.95 * len(whole.sent[0][1])


async def test_without_a_model_the_best_passages_answer(kb: KnowledgeBase) -> None:
    events = [e async for e in stream(kb, QUESTION, strategy="pipeline")]
    answer = answer_of(events)
    assert answer.usage.model_requests == 0
    assert answer.citations[0].chunk_id == chunk_of(kb, "bridge.md")


async def test_an_empty_knowledge_base_says_so_without_a_model(empty_kb: KnowledgeBase) -> None:
    model = Writer("x")
    answer = answer_of(await events_of(empty_kb, model))
    assert answer.status == "insufficient"
    assert model.sent == []


async def test_a_filter_holds_on_every_route(kb: KnowledgeBase) -> None:
    settings = Settings(model="none")
    only = Filter(paths=("*clocks*",))
    events = [
        e async for e in stream(kb, QUESTION, strategy="pipeline", settings=settings, where=only)
    ]
    assert {c.uri.rpartition("/")[2] for c in answer_of(events).citations} == {"clocks.md"}


class Backwards:
    """A reranker that turns every list round, and keeps what it was asked."""

    name = "backwards"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        await asyncio.sleep(0)
        self.asked.append((query, list(texts)))
        return [Ranked(i, float(i)) for i in reversed(range(len(texts)))]


async def test_each_route_is_reranked_and_its_text_begins_with_the_path(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = Backwards()
    monkeypatch.setattr(parts, "resolve_reranker", lambda *_, **__: reranker)
    plain = await events_of(kb, Writer("x"), refine=False, fusion="longer")
    assert len(reranker.asked) == 2
    assert all("/" in text.splitlines()[0] for _, texts in reranker.asked for text in texts)
    dense = output_of(plain, "rank")["dense"]
    assert dense[-1] == chunk_of(kb, "bridge.md")  # the best one before


async def test_candidates_can_be_merged_before_they_are_reranked(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = Backwards()
    monkeypatch.setattr(parts, "resolve_reranker", lambda *_, **__: reranker)
    await events_of(kb, Writer("x"), refine=False, fusion="merged")
    assert [len(texts) for _, texts in reranker.asked] == [4]


async def test_a_reranker_that_fails_leaves_the_order_of_the_searches(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Backwards):
        async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
            raise RerankFailed("The reranker is away; start it.")

    monkeypatch.setattr(parts, "resolve_reranker", lambda *_, **__: Failing())
    events = await events_of(kb, Writer("x"), refine=False)
    notice = next(e for e in events if isinstance(e, Notice))
    assert notice.message == "The reranker is away; start it. The order of the searches stands."
    assert output_of(events, "rank")["both"][0] == chunk_of(kb, "bridge.md")


async def test_a_wrong_reranker_is_told_before_the_question(kb: KnowledgeBase) -> None:
    settings = Settings(model="none", rerank={"model": "nosuch:thing"})
    events = stream(kb, QUESTION, strategy="pipeline", settings=settings)
    with pytest.raises(AragError, match="nosuch"):
        await anext(events)
