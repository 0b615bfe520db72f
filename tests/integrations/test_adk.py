"""The workflow as an ADK agent, in ADK's in-memory runner, its model scripted."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (pip install 'agentic-rag[adk]')"
)

from google.genai import types
from pydantic_ai.exceptions import ModelHTTPError

from agentic_rag.config import Settings
from agentic_rag.integrations.adk import STATE_KEYS, root_agent, workflow_agent
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies import reply
from tests.integrations.adk_session import Session, keys_in_order, texts
from tests.strategies.scripted_server import Turn
from tests.strategies.scripted_server import serving as serving_model
from tests.strategies.workflow.stages import GOOD, POOR, REWRITTEN, Stages
from tests.web_search.provider_server import Asked, Reply, serving

QUESTION = "When did that old bridge open?"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "_PAUSE", 0.01)


def bridge(kb: KnowledgeBase) -> str:
    return kb.chunks(kb.document("bridge.md").number)[0].chunk_id


def answering(kb: KnowledgeBase, **replies: Any) -> Stages:
    return Stages(**{"answer": [f"It was opened in 1932 [{bridge(kb)}]."], **replies})


async def test_the_state_holds_what_each_stage_came_to_as_it_is_done(kb: KnowledgeBase) -> None:
    session = Session(workflow_agent(kb=kb, model=answering(kb).model))
    events = await session.ask(QUESTION)

    assert keys_in_order(events) == [
        STATE_KEYS,  # emptied
        ("rewritten_query",),
        ("retrieval_results",),
        ("quality_evaluation", "quality_score", "quality_passed"),
        ("final_answer",),
    ]
    state = await session.state()
    assert set(state) == set(STATE_KEYS)
    assert state["rewritten_query"] == REWRITTEN["query"]
    assert state["retrieval_results"][0]["chunk_id"] == bridge(kb)
    assert state["retrieval_results"][0]["vector_score"] > 0
    assert state["quality_score"] == 34
    assert state["quality_passed"] is True
    assert state["quality_evaluation"]["dimensions"]["relevance"] == GOOD["relevance"]
    assert state["web_search_results"] is None  # not searched
    json.dumps(state)  # any session service can keep it


async def test_the_answer_is_one_text_with_numbered_sources(kb: KnowledgeBase) -> None:
    session = Session(workflow_agent(kb=kb, model=answering(kb).model))
    events = await session.ask(QUESTION)

    source = f"- [1] Oriole Bridge ({bridge(kb)}), {kb.document('bridge.md').uri}"
    whole = f"It was opened in 1932 [1].\n\nSources:\n\n{source}"
    assert texts(events) == [whole]
    assert events[-1].is_final_response()
    assert events[-1].author == "agentic_rag"
    assert (await session.state())["final_answer"] == whole
    answer = (events[-1].custom_metadata or {})["answer"]
    assert answer["status"] == "answered"
    assert answer["citations"][0]["snippet"] == "The Oriole Bridge was opened in 1932 by Ada Brown."


async def test_a_chinese_question_has_its_sources_in_chinese(kb: KnowledgeBase) -> None:
    chunk = kb.chunks(kb.document("泵站.txt").number)[0].chunk_id
    model = Stages(answer=[f"建成于1999年 [{chunk}]。"])
    events = await Session(workflow_agent(kb=kb, model=model.model)).ask("蓝桥泵站哪年建成？")
    assert texts(events)[0].startswith("建成于1999年 [1]。\n\n来源：\n\n- [1] ")


async def test_what_the_web_adds_is_in_the_state_until_the_next_question(
    kb: KnowledgeBase,
) -> None:
    def answered(asked: Asked) -> Reply:
        found = {"url": "http://example.org/b", "title": "Bridges", "content": "A band played."}
        return Reply({"query": "q", "results": [found]})

    model = answering(
        kb,
        evaluate=[json.dumps(POOR), json.dumps(GOOD)],
        answer=["A band played [0-1].", f"In 1932 [{bridge(kb)}]."],
    )
    with serving(answered) as server:
        web = {"provider": "searxng", "url": server.url, "read_pages": False}
        settings = Settings(model="none", web_search=web)
        session = Session(workflow_agent(kb=kb, model=model.model, settings=settings))
        events = await session.ask(QUESTION)
        state = await session.state()
        await session.ask("In which year?")
        later = await session.state()

    assert keys_in_order(events)[4] == ("web_search_results",)
    assert state["quality_passed"] is False
    assert state["web_search_results"] == [
        {"title": "Bridges", "uri": "http://example.org/b", "snippet": "A band played."}
    ]
    assert "- [1] Bridges (web), http://example.org/b" in state["final_answer"]
    assert later["quality_passed"] is True
    assert later["web_search_results"] is None


async def test_pieces_come_where_the_runner_streams_and_are_the_whole(kb: KnowledgeBase) -> None:
    agent = workflow_agent(kb=kb, model=answering(kb).model)
    streamed = await Session(agent).ask(QUESTION, streaming=True)
    pieces = texts(streamed, partial=True)
    assert len(pieces) > 1
    assert ["".join(pieces)] == texts(streamed)
    assert texts(await Session(agent).ask(QUESTION), partial=True) == []


async def test_pieces_that_do_not_count_are_told(kb: KnowledgeBase) -> None:
    turns = (
        Turn([json.dumps(REWRITTEN)]),
        Turn([json.dumps(GOOD)]),
        # Thoughts whose beginning is not marked: they are told from the answer at their end.
        Turn(["It was opened in 1923. ", "Or so", "</think>", f"It was 1932 [{bridge(kb)}]."]),
    )
    with serving_model(*turns) as script:
        settings = Settings(model="scripted", base_url=script.address)
        agent = workflow_agent(kb=kb, settings=settings)
        events = await Session(agent).ask(QUESTION, streaming=True)

    before, told, after = "".join(texts(events, partial=True)).partition(
        "\n\n(The text above does not count.)\n\n"
    )
    assert before.startswith("It was opened in 1923.")
    assert told
    assert [after] == texts(events)
    assert after.startswith("It was 1932 [1].")


async def test_earlier_turns_belong_to_the_question(kb: KnowledgeBase) -> None:
    model = answering(kb)
    session = Session(workflow_agent(kb=kb, model=model.model))
    await session.ask(QUESTION)
    assert "Q: " not in model.asked("rewrite")[0]
    await session.ask("And by whom?")

    prompt = model.asked("rewrite")[1]
    assert f"Q: {QUESTION}\nA: It was opened in 1932.\n\nQuestion: And by whom?" in prompt
    assert "Sources" not in prompt


async def test_turns_that_were_rewound_do_not_count(kb: KnowledgeBase) -> None:
    model = answering(kb)
    session = Session(workflow_agent(kb=kb, model=model.model))
    await session.ask(QUESTION)
    undone = await session.ask("And by whom?")
    await session.runner.rewind_async(
        user_id="u",
        session_id=session.id,
        rewind_before_invocation_id=undone[0].invocation_id,
    )
    await session.ask("And the river?")
    assert "And by whom?" not in model.asked("rewrite")[2]
    assert f"Q: {QUESTION}" in model.asked("rewrite")[2]


async def test_a_knowledge_base_that_is_not_there_is_one_message_until_it_is(
    tmp_path: Path, kb: KnowledgeBase
) -> None:
    model = Stages(answer=[f"It was opened in 1932 [{bridge(kb)}]."])
    session = Session(workflow_agent(kb=tmp_path / "kb", model=model.model))
    events = await session.ask(QUESTION)
    assert texts(events) == [
        f"There is no knowledge base at {tmp_path / 'kb'}; make one with 'arag index PATH'."
    ]
    assert events[-1].error_code == "NoKnowledgeBase"
    assert (await session.state())["final_answer"] is None

    shutil.copytree(kb.directory, tmp_path / "kb")
    again = await session.ask(QUESTION)
    assert texts(again)[0].startswith("It was opened in 1932 [1].")
    assert "Q: " not in model.asked("rewrite")[0]  # a question without an answer is no turn


async def test_a_model_that_refuses_leaves_the_passages_and_says_why(kb: KnowledgeBase) -> None:
    refused = ModelHTTPError(401, "scripted", {"error": {"message": "bad key"}})
    model = Stages(rewrite=[refused], evaluate=[refused], answer=[refused])
    events = await Session(workflow_agent(kb=kb, model=model.model)).ask(
        "When was the Oriole Bridge opened?"
    )
    (text,) = texts(events)
    assert "opened in 1932 by Ada Brown. [1]" in text
    notes = text.partition("\n\nNotes:\n\n")[2].splitlines()
    assert len(notes) == 1
    assert "bad key" in notes[0]


async def test_that_the_web_could_not_be_searched_is_said_with_the_answer(
    kb: KnowledgeBase,
) -> None:
    model = answering(kb, evaluate=[json.dumps(POOR)])
    events = await Session(workflow_agent(kb=kb, model=model.model)).ask(QUESTION)
    assert (
        "\n\nNotes:\n\n- The documents fall short, and no web search is set up" in texts(events)[0]
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"ARAG_WORKFLOW__PROFILE": "legl"}, "neither one of general, legal"),
        ({"ARAG_WORKFLOW__THRESHOLD": "400"}, "workflow.threshold"),
        ({"ARAG_MODEL": "opnai:x"}, "opnai"),
    ],
)
async def test_a_wrong_setting_is_one_message(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("ARAG_KB", str(kb.directory))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    events = await Session(workflow_agent()).ask(QUESTION)
    (text,) = texts(events)
    assert said in text
    assert "\n" not in text


async def test_a_message_without_words_is_answered_with_a_sentence(kb: KnowledgeBase) -> None:
    picture = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    events = await Session(workflow_agent(kb=kb, model=Stages().model)).send(picture)
    assert texts(events) == ["The question is empty; ask something."]


async def test_the_root_agent_answers_over_the_settings_knowledge_base(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_KB", str(kb.directory))
    monkeypatch.setenv("ARAG_MODEL", "none")
    session = Session(root_agent)
    events = await session.ask("When was the Oriole Bridge opened?")
    assert "opened in 1932 by Ada Brown. [1]" in texts(events)[0]
    state = await session.state()
    assert state["quality_passed"] is True
    assert state["quality_score"] is None  # there is no model to judge


def test_the_program_in_the_documentation_runs(
    kb: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "adk.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert '"notes.arag"' in lines
    lines = lines.replace('"notes.arag"', repr(str(kb.directory)))
    exec(lines.replace("the second pump replaced", "the Oriole Bridge opened"), {})
    assert "opened in 1932 by Ada Brown. [1]" in capsys.readouterr().out
    assert all(f"| `{key}` |" in page for key in STATE_KEYS)
