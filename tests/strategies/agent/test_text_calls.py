"""Calls written as text: which texts are calls, and which are answers."""

import json

import pytest

from agentic_rag.strategies.agent.requests import canonical
from agentic_rag.strategies.agent.text_calls import find_text_calls

ARGUMENTS = {"keywords": ["Oriole"]}
JSON = json.dumps({"name": "keyword_search", "arguments": ARGUMENTS})


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"```\n{JSON}\n```",
        f"```tool_call\n{JSON}",
        f"Let me search.\n```json\n{JSON}\n```\n",
        f"<tool_call>\n{JSON}\n</tool_call>",
        f"<tool_call>{JSON}",
        f"<function_call>{JSON}</function_call>",
        f"<|tool_call|>{JSON}<|im_end|>",
        f"[TOOL_CALLS] [{JSON}]",
        f"[TOOL_CALLS]keyword_search{json.dumps(ARGUMENTS)}",
        f"<|python_tag|>{JSON}",
        f"[{JSON}]",
        f"<function=keyword_search>{json.dumps(ARGUMENTS)}</function>",
        '<tool_call><function=keyword_search><parameter=keywords>["Oriole"]</parameter>'
        "</function></tool_call>",
        f"Thought: I need it.\nAction: keyword_search\nAction Input: {json.dumps(ARGUMENTS)}",
        '{"name": "keyword_search", "parameters": {"keywords": ["Oriole"]}}',
        '{"tool": "keyword_search", "keywords": ["Oriole"]}',
        '{"function": {"name": "keyword_search", "arguments": "{\\"keywords\\": [\\"Oriole\\"]}"}}',
        '{"keyword_search": {"keywords": ["Oriole"]}}',
        '{"tool_calls": [' + JSON + "]}",
        "<tool_call>{'name': 'keyword_search', 'arguments': {'keywords': ['Oriole']}}</tool_call>",
    ],
)
def test_a_call_is_found_in_each_form(text: str) -> None:
    from agentic_rag.strategies.agent.arguments import KeywordSearch, understood

    found = find_text_calls(text, canonical)

    assert [understood(*call) for call in found.calls] == [KeywordSearch(("Oriole",))]
    assert "keyword_search" not in found.before


def test_several_calls_are_found_in_order() -> None:
    other = json.dumps({"name": "read_chunk", "arguments": {"chunk_ids": ["1-2"]}})
    text = f"First.\n<tool_call>{JSON}</tool_call>\n<tool_call>{other}</tool_call>"
    found = find_text_calls(text, canonical)

    assert [tool for tool, _ in found.calls] == ["keyword_search", "read_chunk"]
    assert found.before == "First."


@pytest.mark.parametrize(
    "text",
    [
        "It was opened in 1932 [1-1].",
        "I used keyword_search to find it [1-1].",
        f"An agent may send ```json\n{JSON}\n``` to its tools [1-1].",
        '{"year": 1932}',
        '```json\n{"name": "web_search", "arguments": {}}\n```',
        "[12-3] says so.",
        "<function=open>x</function>",
        "{" * 3000,
        "```" * 500,
        "",
    ],
)
def test_an_answer_is_no_call(text: str) -> None:
    found = find_text_calls(text, canonical)

    assert (found.calls, found.before) == ((), text)
