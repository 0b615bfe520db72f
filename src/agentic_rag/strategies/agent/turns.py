"""Turns of the model as events: one request, and the calls that came of it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agentic_rag.strategies.agent import effort
from agentic_rag.strategies.agent.arguments import EXAMPLES
from agentic_rag.strategies.agent.draft import Draft
from agentic_rag.strategies.agent.history import Answered, size_of
from agentic_rag.strategies.agent.limits import price
from agentic_rag.strategies.agent.prompts import note
from agentic_rag.strategies.agent.requests import (
    STREAMING,
    Call,
    LeftOut,
    ModelTurn,
    ModelWithoutTools,
    Requests,
)
from agentic_rag.strategies.agent.state import State, hit_record, json_value
from agentic_rag.strategies.agent.tools import TOOLS, Result
from agentic_rag.strategies.events import (
    AnswerDelta,
    AnswerReset,
    Event,
    Notice,
    StepFinished,
    StepStarted,
    Thought,
    ThoughtDelta,
    ToolCalled,
    ToolReturned,
    Usage,
    UsageReported,
)
from agentic_rag.strategies.reply import ModelCallFailed, Retrying
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


async def take_turn(
    state: State,
    requests: Requests,
    draft: Draft,
    *,
    name: str = "think",
    may_call: bool = True,
    plain: "tuple[list[ModelMessage], int] | None" = None,
) -> AsyncGenerator[Event, None]:
    """One request; leaves its turn in `state.last`, or its failure in `state.failure`.

    `plain` are messages to send instead of the history, with their size.
    """
    state.step += 1
    step, started = str(state.step), time.monotonic()
    state.last = state.failure = None
    messages, size = plain or (state.history.messages, state.history.tokens)
    model = state.question.chat.name
    sent: dict[str, JsonValue] = {"model": model, "request_tokens": size}
    if len(state.history.tools) < len(TOOLS):  # a trace tells what the model could not do
        sent["tools"] = [tool.name for tool in state.history.tools]
    yield StepStarted(step=step, name=name, input=sent)
    received: list[str] = []
    tries = 1
    try:
        async with aclosing(requests.ask(messages, size, may_call=may_call)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelTurn):
                    state.last = piece
                    continue
                if isinstance(piece, LeftOut):
                    tries += 1  # where it was tried twice, that is counted already
                    for event in left_out(state, piece):
                        yield event
                    continue
                if isinstance(piece, Retrying):
                    tries += 1
                elif piece.kind == "restart":  # what came comes again, as thoughts
                    received.clear()
                else:
                    received.append(piece.text)
                for event in _shown(piece, draft):
                    yield event
    except ModelCallFailed as error:
        state.failure = error
    except ModelWithoutTools as error:
        state.usage += Usage(model_requests=error.requests, cost=state.question.chat.cost)
        yield UsageReported(usage=state.usage)
        raise
    except asyncio.CancelledError:  # the question is stopped: what came is told before the end
        if shown := draft.break_off():
            yield AnswerDelta(text=shown, citations=draft.take_sources())
        state.usage += Usage(
            input_tokens=size,
            output_tokens=count_tokens("".join(received)),
            model_requests=tries,
            cost=state.question.chat.cost,
            estimated=True,
        )
        yield UsageReported(usage=state.usage)
        raise
    turn, failure = state.last, state.failure
    made = failure.requests if failure else 1
    used = turn.usage if turn else Usage(model_requests=made, cost=state.question.chat.cost)
    state.usage += used
    if turn and turn.thoughts:
        yield Thought(text=turn.thoughts, step=step)
    yield StepFinished(
        step=step,
        name=name,
        output={"text": turn.text if turn else "", "calls": len(turn.calls) if turn else 0},
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        duration=time.monotonic() - started,
        error=str(failure) if failure else None,
    )
    yield UsageReported(usage=state.usage)
    if turn and _price_gets_unknown(state, turn):
        message = "The price of this model is not known, so `agent.max_cost` cannot be kept."
        yield Notice(level="warning", code="price_unknown", message=message)


def _shown(piece: Piece | Retrying, draft: Draft) -> Iterator[Event]:
    match piece:
        case Retrying(reason=reason):
            yield Notice(level="info", code="model_retried", message=reason)
            if draft.shown:
                yield AnswerReset(reason=reason)
            draft.restart()
        case Piece(kind="restart"):
            if draft.shown:
                yield AnswerReset(reason="What came so far were the model's thoughts.")
            draft.restart()
        case Piece(kind="thought", text=text):
            yield ThoughtDelta(text=text)
        case Piece(text=text):
            if shown := draft.feed(text):
                yield AnswerDelta(text=shown, citations=draft.take_sources())


def left_out(state: State, what: LeftOut) -> Iterator[Event]:
    """Tell of a setting that was refused, if it was the user who set it."""
    settings = state.question.settings
    if what.name == STREAMING:
        message = (
            "Whole replies are asked for, since streaming was refused; set `agent.streaming` to "
            f"false to ask so at once. The server said {what.reason}."
        )
        yield Notice(level="warning", code="streaming_refused", message=message)
        return
    if what.name in effort.NAMES:
        name = "agent.effort"
    elif what.name == "temperature" and settings.temperature is not None:
        name = "temperature"
    else:
        return
    message = f"`{name}` is not sent any more, since it was refused {what.reason}."
    yield Notice(level="warning", code="setting_refused", message=message)


def _price_gets_unknown(state: State, turn: ModelTurn) -> bool:
    """Foresee what one more step and the answer after it cost; True when that is first found to
    be impossible."""
    if state.limits.max_cost is None or state.question.chat.cost == 0:
        return False
    grown = state.history.tokens + size_of(turn.response)
    most = state.question.settings.agent.result_tokens
    parts = [price(turn.response, grown + most * n, state.limits.answer) for n in (1, 2)]
    known = [part for part in parts if part is not None]
    state.next_costs = sum(known) if len(known) == len(parts) else None
    first = state.next_costs is None and not state.price_unknown
    state.price_unknown = state.next_costs is None
    return first


def put_aside(draft: Draft, turn: ModelTurn, step: int) -> Iterator[Event]:
    """A turn's text turned out to be no answer: it is shown as progress only."""
    if draft.shown:
        yield AnswerReset(reason="This was not the answer yet: the model goes on.")
    if turn.text:
        yield ThoughtDelta(text=turn.text)
        yield Thought(text=turn.text, step=str(step))


async def run_calls(
    state: State, turn: ModelTurn, draft: Draft, *, forbidden: bool = False
) -> AsyncGenerator[Event, None]:
    """Answer every call of a turn once, in order; `forbidden`: without running any."""
    for event in put_aside(draft, turn, state.step):
        yield event
    state.history.add_turn(turn.response)
    replies: list[Answered] = []
    run = 0
    for call in turn.calls:
        yield ToolCalled(
            call_id=call.call_id,
            name=call.name,
            arguments=json_value(call.arguments),
            step=str(state.step),
        )
        started = time.monotonic()
        if forbidden:
            result = Result(
                note("no_more_calls", state.language), error="no more calls are possible"
            )
        else:
            result = _turned_down(state, turn, call, run) or await _run(state, call, replies)
            run += result.error is None or not (result.unusable or call.tool is None)
        replies.append(Answered(call, result.text, result.error is not None))
        state.usage += Usage(retrieved_tokens=result.tokens)
        yield ToolReturned(
            call_id=call.call_id,
            name=call.name,
            text=result.text,
            hits=tuple(hit_record(hit) for hit in result.hits),
            retrieved_tokens=result.tokens,
            duration=time.monotonic() - started,
            error=result.error,
        )
        if result.damage is not None:  # no request more: whatever is searched for, it is not read
            raise result.damage
    state.history.add_replies(replies)


def _turned_down(state: State, turn: ModelTurn, call: Call, run: int) -> Result | None:
    """The reply to a call that is not run; None for one that is."""
    most = state.question.settings.agent.calls_per_turn
    given = state.question.settings.agent.tools
    if call.tool not in given:
        tools = ", ".join(given)
        text = note("unknown_tool", state.language, name=call.name[:60], tools=tools)
        return Result(text, error=f"there is no tool {call.name[:60]!r}", unusable=True)
    if run >= most:
        text = note("turn_full", state.language, most=most)
        said = "only one call a turn is run" if most == 1 else f"only {most} calls a turn are run"
        return Result(text, error=said, unusable=True)
    cut = turn.cut_off and call is turn.calls[-1] and isinstance(call.arguments, str)
    if cut and not str(call.arguments).rstrip().endswith(("}", "]")):
        text = note("cut_arguments", state.language, example=EXAMPLES[call.tool])
        return Result(text, error="the arguments were cut off", unusable=True)
    return None


async def _run(state: State, call: Call, replies: Sequence[Answered]) -> Result:
    assert call.tool is not None  # it would have been turned down
    waiting = sum(count_tokens(reply.text) for reply in replies)
    room = state.limits.left(state.history.tokens + waiting)
    return await asyncio.to_thread(state.tools.call, call.tool, call.arguments, room)
