"""One request to the model with tools: pieces of text and thought, then the whole turn.

The history is ours: text without thoughts in it, call ids that are all different, tool names
that a provider takes back. What a provider refuses of the settings, or streaming, is left out and
asked again.
"""

import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.errors import AragError
from agentic_rag.models.cures import Cures
from agentic_rag.strategies.agent import effort
from agentic_rag.strategies.agent.prompts import TOOLS
from agentic_rag.strategies.agent.text_calls import find_text_calls
from agentic_rag.strategies.failures import Failure, provider_message, refusal
from agentic_rag.strategies.reply import (
    ModelCallFailed,
    Retrying,
    has_no_end,
    tried_twice,
    usage_of,
)
from agentic_rag.strategies.streaming import Said, streamed, told_apart, whole
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.strategies.trace import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

_REFUSALS = {400, 404, 405, 422, 500, 501}
_NO_TOOLS = re.compile(
    r"(?=.*\b(?:tools?|functions?)\b)"
    r"(?=.*\b(?:support\w*|unsupported|requires?|enable\w*|allow\w*|unknown|unrecognized|"
    r"unexpected|not available|permitted)\b)",
    re.IGNORECASE | re.DOTALL,
)
# What a server may not know, and how it calls it in its complaint.
_DISPENSABLE = {
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "parallel_tool_calls": re.compile(r"parallel.tool.calls", re.IGNORECASE),
    **{name: re.compile(r"reasoning|thinking|effort", re.IGNORECASE) for name in effort.NAMES},
    "cache": re.compile(r"cache.control", re.IGNORECASE),
}
STREAMING = "streaming"  # among what is left out; our own setting
_NO_STREAM = re.compile(r"\bstream", re.IGNORECASE)
_TOO_LONG = Failure(
    "What is to be sent does not fit the model's context",
    "set `context_tokens` to its size, or lower `agent.token_budget`",
    too_long=True,
)
_CUT_ARGUMENTS = 200  # characters kept of arguments that are no object


class ModelWithoutTools(AragError):
    """The model, or its server, cannot call tools, and the agent needs them; `requests` were
    made."""

    def __init__(self, message: str, requests: int = 0) -> None:
        super().__init__(message)
        self.requests = requests


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `tool` is None for a tool that does not exist; `name` is what it was called.
    `arguments`: an object, or text that was none."""

    call_id: str
    name: str
    tool: str | None
    arguments: object


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """A whole turn of the model.

    `text` is without thoughts and, where calls were written as text, without those. `response`
    is what goes into the history. `cut_off`: it ended at the token limit; `unclosed`: inside its
    thoughts; `broken_off`: the stream ended without an end mark.
    """

    text: str
    thoughts: str
    calls: tuple[Call, ...]
    response: "ModelResponse"
    cut_off: bool
    unclosed: bool
    broken_off: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A model setting that the provider refused, or streaming, so that it is not sent any more;
    `reason` is the status and what it said, and `requests` were made until then."""

    name: str
    reason: str
    requests: int = 1


@dataclass(slots=True)
class Requests:
    """How the model is asked. `settings` lose what the provider refuses."""

    model: "Model"
    settings: "ModelSettings"
    tools: "list[ToolDefinition]"
    silence: float  # seconds that the model may say nothing
    cost: float | None = None  # overrides the price list
    streaming: bool = True
    cures: Cures = Cures()  # noqa: RUF009  frozen

    async def ask(
        self, messages: "list[ModelMessage]", sent: int, *, may_call: bool = True
    ) -> AsyncGenerator[Piece | Retrying | LeftOut | ModelTurn, None]:
        """Pieces as they come, and last the turn. `sent` is our count of the request's tokens.

        `may_call` off forbids tools and keeps their definitions, so that a provider's prompt
        cache lives. Raises `ModelCallFailed`, `ModelWithoutTools`. Closing the iterator or
        cancelling its task ends the request.
        """
        retries = earlier = 0
        while True:
            try:
                tried = tried_twice(
                    lambda: self._request(messages, sent, may_call), self.silence, self.cures
                )
                async with aclosing(tried) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Retrying):
                            retries += 1
                        elif isinstance(piece, ModelTurn):
                            count = 1 + retries + earlier
                            usage = piece.usage.model_copy(update={"model_requests": count})
                            piece = replace(piece, usage=usage)
                        yield piece
                return
            except ModelCallFailed as failure:
                made, retries = failure.requests, 0
                name = self._refused(failure.__cause__)
                if name is None or failure.too_long:
                    self._check_tools(failure, earlier + made)
                    told = _TOO_LONG if failure.too_long else failure.failure
                    raise ModelCallFailed(told, earlier + made) from failure.__cause__
                earlier += made
                reason = refusal(cast("BaseException", failure.__cause__))
                yield LeftOut(name, reason, made)
                if name == STREAMING:
                    self.streaming = False
                self.settings = cast(
                    "ModelSettings", {k: v for k, v in self.settings.items() if k != name}
                )

    def learn_from(self, other: "Requests") -> None:
        """Leave out what `other`, a copy, was refused."""
        self.settings, self.streaming = other.settings, other.streaming

    def _refused(self, error: BaseException | None) -> str | None:
        """The setting that the provider complains of, if it can be left out."""
        if getattr(error, "status_code", None) not in _REFUSALS or error is None:
            return None
        said = provider_message(error)
        if self.streaming and _NO_STREAM.search(said):
            return STREAMING
        known = (n for n, complaint in _DISPENSABLE.items() if complaint.search(said))
        return next((name for name in known if name in self.settings), None)

    def _check_tools(self, failure: ModelCallFailed, made: int) -> None:
        """Raise `ModelWithoutTools` where the provider refuses tools."""
        error = failure.__cause__
        if error is None or getattr(error, "status_code", None) not in _REFUSALS:
            return
        if self.tools and _NO_TOOLS.search(provider_message(error)) and not failure.too_long:
            raise ModelWithoutTools(
                f"The model {self.model.model_name} cannot call tools, which the strategy `agent` "
                "needs; use `--strategy naive`, which works without, or set `model` to another.",
                made,
            ) from failure

    # -- one request

    async def _request(
        self, messages: "list[ModelMessage]", sent: int, may_call: bool
    ) -> AsyncGenerator[Piece | ModelTurn, None]:
        from pydantic_ai.models import ModelRequestParameters

        settings: dict[str, Any] = dict(self.settings)
        if not self.tools:
            settings.pop("parallel_tool_calls", None)
        elif not may_call:
            settings["tool_choice"] = "none"
        parameters = ModelRequestParameters(function_tools=self.tools)
        chosen = cast("ModelSettings", settings)
        said = streamed if self.streaming else whole
        parts = said(self.model, messages, chosen, self.silence, parameters)
        async with aclosing(told_apart(parts)) as pieces:
            async for piece in pieces:
                yield piece if isinstance(piece, Piece) else self._turn(piece, sent)

    def _turn(self, said: Said, sent: int) -> ModelTurn:
        from pydantic_ai.messages import ToolCallPart

        response, text, thoughts = said.response, said.text.strip(), said.thoughts
        made = [part for part in response.parts if isinstance(part, ToolCallPart)]
        calls = [
            Call(part.tool_call_id, part.tool_name, canonical(part.tool_name), part.args)
            for part in made
        ]
        sent_back = text + thoughts + "".join(part.args_as_json_str() for part in made)
        if not calls:
            written = find_text_calls(text, canonical)
            calls = [Call("", tool, tool, arguments) for tool, arguments in written.calls]
            text = written.before
        calls = _with_own_ids(calls)
        return ModelTurn(
            text=text,
            thoughts=thoughts,
            calls=tuple(calls),
            response=replace(response, parts=_parts_to_keep(response, text, calls)),
            cut_off=response.finish_reason == "length",
            unclosed=said.unclosed or (not text and not calls and bool(thoughts)),
            broken_off=self.streaming and has_no_end(response),
            usage=usage_of(response, lambda: sent, sent_back, self.cost),
        )


def canonical(name: str) -> str | None:
    """The tool that a model means by `name`: `functions.keyword_search`, `KeywordSearch`."""
    plain = re.sub(r"[\W_]", "", name).lower()
    return next((tool for tool in TOOLS if plain.endswith(tool.replace("_", ""))), None)


def _with_own_ids(calls: list[Call]) -> list[Call]:
    """The calls, each with an id that no other has."""
    seen: set[str] = set()
    out: list[Call] = []
    for call in calls:
        if not call.call_id or call.call_id in seen:
            call = replace(call, call_id=f"call_{uuid.uuid4().hex[:20]}")
        seen.add(call.call_id)
        out.append(call)
    return out


def _parts_to_keep(
    response: "ModelResponse", text: str, calls: list[Call]
) -> "list[ModelResponsePart]":
    """What of a turn goes into the history.

    Of thoughts only those that the provider gave in a field of its own and wants back there: in
    the text of a later prompt they would only mislead.
    """
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    kept: list[ModelResponsePart] = []
    left = [_call_part(call) for call in calls]
    for part in response.parts:
        if isinstance(part, ThinkingPart):
            if part.signature or (part.id and part.id != "content"):
                kept.append(part)
        elif isinstance(part, TextPart) and text:
            kept.append(TextPart(text))
            text = ""
        elif isinstance(part, ToolCallPart) and left:
            kept.append(left.pop(0))
    return [*kept, *left]


def _call_part(call: Call) -> "ModelResponsePart":
    from pydantic_ai.messages import ToolCallPart

    name = call.tool or re.sub(r"[^\w-]", "_", call.name, flags=re.ASCII)[:64] or "unknown"
    return ToolCallPart(name, _sendable(call.arguments), call.call_id)


def _sendable(arguments: object) -> str | dict[str, Any] | None:
    if isinstance(arguments, dict):
        return {str(name): value for name, value in arguments.items()}
    if isinstance(arguments, str):
        return arguments if arguments.rstrip().endswith("}") else arguments[:_CUT_ARGUMENTS]
    return {"value": arguments} if arguments is not None else None
