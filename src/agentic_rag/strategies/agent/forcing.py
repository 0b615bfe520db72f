"""The end of a run that did not end by itself: at a limit, or when the model fails.

In order: the answer is asked for with tools forbidden; if the model calls on, its calls are
answered and one plain request without tools follows; if that fails too, the best passages are
the answer.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.draft import Draft
from agentic_rag.strategies.agent.evidence import find_evidence
from agentic_rag.strategies.agent.finishing import model_answer, passages_answer
from agentic_rag.strategies.agent.found import Evidence
from agentic_rag.strategies.agent.limits import Limit, least_budget
from agentic_rag.strategies.agent.prompts import filled, read
from agentic_rag.strategies.agent.requests import ModelTurn, ModelWithoutTools, Requests
from agentic_rag.strategies.agent.state import State
from agentic_rag.strategies.agent.turns import put_aside, run_calls, take_turn
from agentic_rag.strategies.events import AnswerReset, Event, Notice
from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.phrases import Phrase
from agentic_rag.strategies.reply import ModelCallFailed
from agentic_rag.strategies.support import Passage
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

_FRAME = 30  # o200k tokens around a passage in its block
_LEAST = 60  # o200k tokens; less of a passage says nothing
_PHRASES: Mapping[str, Phrase] = {
    "model_failed": "model_failed",
    "empty_reply": "empty_reply",
    "no_answer_cut_off": "cut_off_thinking",
}


async def force_answer(
    state: State, requests: Requests, limit: Limit | None
) -> AsyncGenerator[Event, None]:
    """The answer from what there is; `limit` is what cut the search short (None: empty replies)."""
    too_long = state.failure is not None and state.failure.too_long
    if state.tools.tracker.results == 0 and not state.earlier:
        async with aclosing(_passages(state, limit)) as events:
            async for event in events:
                yield event
        return
    ways = [_plain(state, requests, limit, halved=too_long)]
    if not too_long:
        ways.insert(0, _forbidden(state, requests, limit))
    for way in ways:
        async with aclosing(way) as events:
            async for event in events:
                yield event
        turn = state.last
        if turn is not None and turn.text and not turn.calls:
            return
        if state.failure is not None and not _is_refusal(state.failure):
            break
    for way in ways[1:]:
        await way.aclose()
    async with aclosing(_passages(state, limit)) as events:
        async for event in events:
            yield event


async def model_failed(state: State, draft: Draft) -> AsyncGenerator[Event, None]:
    """A request failed for good: what was found is the answer."""
    message = f"{state.failure} The best passages stand in for an answer."
    yield Notice(level="error", code="model_failed", message=message)
    if draft.shown:
        yield AnswerReset(reason=message)
    async with aclosing(_stand_in(state, None, "model_failed")) as events:
        async for event in events:
            yield event


async def _forbidden(
    state: State, requests: Requests, limit: Limit | None
) -> AsyncGenerator[Event, None]:
    """Ask with the history as it is and tools forbidden."""
    state.history.add_user(read("final", state.language))
    draft = Draft(state.passages())
    async with aclosing(_ask(state, requests, draft)) as events:
        async for event in events:
            yield event
    turn = state.last
    if turn and turn.calls:
        async with aclosing(run_calls(state, turn, draft, forbidden=True)) as events:
            async for event in events:
                yield event
        return
    async with aclosing(_ended(state, draft, limit)) as events:
        async for event in events:
            yield event


async def _plain(
    state: State, requests: Requests, limit: Limit | None, *, halved: bool
) -> AsyncGenerator[Event, None]:
    """Ask anew, without tools, with all that was shown as passages."""
    draft = Draft(state.passages())
    messages, size = _plain_messages(state, halved)
    without = replace(requests, tools=[])
    async with aclosing(_ask(state, without, draft, (messages, size))) as events:
        async for event in events:
            yield event
    requests.learn_from(without)
    turn = state.last
    if turn and turn.calls:  # written as text
        for one in put_aside(draft, turn, state.step):
            yield one
        return
    async with aclosing(_ended(state, draft, limit)) as events:
        async for event in events:
            yield event


async def _ask(
    state: State,
    requests: Requests,
    draft: Draft,
    plain: "tuple[list[ModelMessage], int] | None" = None,
) -> AsyncGenerator[Event, None]:
    turn = take_turn(state, requests, draft, name="answer", may_call=False, plain=plain)
    try:
        async with aclosing(turn) as events:
            async for event in events:
                yield event
    except ModelWithoutTools as error:  # it had some: it is forbidding them that it does not know
        state.failure = ModelCallFailed(str(error), error.requests)


async def _ended(state: State, draft: Draft, limit: Limit | None) -> AsyncGenerator[Event, None]:
    turn = state.last
    if turn is not None and turn.text:
        ended = model_answer(state.ending(limit), draft, turn, partial(find_evidence, state))
        async with aclosing(ended) as events:
            async for event in events:
                yield event
        return
    for event in _no_answer(state, draft):
        yield event


def _no_answer(state: State, draft: Draft) -> Iterator[Event]:
    code, message = without_answer(state.failure or state.last)
    if message not in state.complaints:  # both ways of asking may end alike
        state.complaints.add(message)
        yield Notice(level="error", code=code, message=message)
    if draft.shown:
        yield AnswerReset(reason=message)


def without_answer(end: "ModelCallFailed | ModelTurn | None") -> tuple[str, str]:
    """How a request ended that gave no answer: for programs, and as a sentence."""
    if isinstance(end, ModelCallFailed):
        return "model_failed", str(end)
    if end is None or not end.unclosed:
        return "empty_reply", "The model's reply was empty."
    return "no_answer_cut_off", "The model was cut off while it was still thinking."


def too_small(state: State, limit: Limit) -> Notice:
    """That a limit allows no request at all, and what would."""
    limits, chat = state.limits, state.question.chat
    least = least_budget(state.question.settings, chat, limits, state.history.tokens)
    if limit == "cost":
        message = (
            f"The limit of cost, ${limits.max_cost:g}, is too small to ask even once; raise "
            "`agent.max_cost`."
        )
    elif limits.by_context:
        message = (
            f"The model's context, {limits.budget:,} tokens, is too small to ask even once; "
            f"at least {least:,} are needed. {chat.more_context}"
        )
    else:
        message = (
            f"The budget, {limits.budget:,} tokens, is too small to ask even once; set "
            f"`agent.token_budget` to at least {least:,}."
        )
    return Notice(level="warning", code="never_asked", message=message.strip())


async def _passages(state: State, limit: Limit | None) -> AsyncGenerator[Event, None]:
    phrase: Phrase
    if limit is not None:
        phrase = "cut_short" if state.tools.tracker.shown else "no_model"
    else:
        phrase = _PHRASES[without_answer(state.failure or state.last)[0]]
    async with aclosing(_stand_in(state, limit, phrase)) as events:
        async for event in events:
            yield event


async def _stand_in(
    state: State, limit: Limit | None, phrase: Phrase
) -> AsyncGenerator[Event, None]:
    """The best passages as the answer, found by a search that is told."""
    async with aclosing(find_evidence(state)) as events:
        async for event in events:
            if not isinstance(event, Evidence):
                yield event
                continue
            ended = passages_answer(state.ending(limit), phrase, event.hits, "model_failed")
            for one in ended:
                yield one


def _is_refusal(failure: ModelCallFailed) -> bool:
    """Whether a request was refused for what it was, so that another one may be taken."""
    status = getattr(failure.__cause__, "status_code", None)
    return failure.__cause__ is None or failure.too_long or status in (400, 404, 422, 500, 501)


def _plain_messages(state: State, halved: bool) -> "tuple[list[ModelMessage], int]":
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    system = read("system", state.language)
    around = count_tokens(system) + count_tokens(read("plain", state.language) + state.asked)
    room = state.limits.left(around)
    if halved:
        room = min(room, max(_LEAST, (state.history.tokens - around) // 2))
    block = passages_block(_fitting(state.passages(), room))
    user = filled("plain", state.language, passages=block, question=state.asked)
    request = ModelRequest(parts=[UserPromptPart(user)], instructions=system)
    return [request], count_tokens(system + user)


def _fitting(passages: list[Passage], room: int) -> list[Passage]:
    """The passages from the first on that fit into `room` o200k tokens; the last one cut."""
    out: list[Passage] = []
    for passage in passages:
        size = count_tokens(passage.text)
        if size + _FRAME > room:
            if room - _FRAME >= _LEAST:
                out.append(replace(passage, text=prefix_of_tokens(passage.text, room - _FRAME)))
            break
        out.append(passage)
        room -= size + _FRAME
    return out
