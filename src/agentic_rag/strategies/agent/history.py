"""The messages of one question, as they are sent, and how many o200k tokens they are."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
    from pydantic_ai.tools import ToolDefinition

    from agentic_rag.strategies.agent.requests import Call

_MESSAGE = 4  # o200k tokens that a message or a part costs beside its text
# Our count misses what each provider wraps around messages and tools.
_FRAME = 20


@dataclass(frozen=True, slots=True)
class Answered:
    """The one reply to a call; `failed` marks an error."""

    call: "Call"
    text: str
    failed: bool = False


@dataclass(slots=True)
class History:
    """Instructions, tools and messages; `tokens` is the size of the request they make."""

    instructions: str
    tools: "list[ToolDefinition]"
    messages: "list[ModelMessage]" = field(default_factory=list)
    tokens: int = 0

    def __post_init__(self) -> None:
        self.tokens = (
            _FRAME
            + count_tokens(self.instructions)
            + count_tokens(as_json(self.tools, indent=None))
        )

    def add_user(self, text: str) -> None:
        """Add a message of the user."""
        from pydantic_ai.messages import UserPromptPart

        self._request().parts = [*self._request().parts, UserPromptPart(text)]
        self.tokens += count_tokens(text) + _MESSAGE

    def add_turn(self, response: "ModelResponse") -> None:
        """Add a turn of the model, unless nothing of it is left."""
        if not response.parts:
            return
        self.messages.append(response)
        self.tokens += size_of(response)

    def add_replies(self, replies: Sequence[Answered]) -> None:
        """Add the replies to the calls of the last turn, in their order."""
        from pydantic_ai.messages import ToolReturnPart

        request = self._request()
        for reply in replies:
            name = reply.call.tool or reply.call.name
            part = ToolReturnPart(
                tool_name=name,
                content=reply.text,
                tool_call_id=reply.call.call_id,
                outcome="failed" if reply.failed else "success",
            )
            request.parts = [*request.parts, part]
            self.tokens += count_tokens(reply.text) + 2 * _MESSAGE

    def _request(self) -> "ModelRequest":
        """The request that is being put together: the last message, if it is one."""
        from pydantic_ai.messages import ModelRequest

        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            return last
        request = ModelRequest(parts=[], instructions=self.instructions)
        self.messages.append(request)
        return request


def size_of(response: "ModelResponse") -> int:
    """o200k tokens of a turn."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    size = _MESSAGE
    for part in response.parts:
        match part:
            case TextPart(content=text) | ThinkingPart(content=text):
                size += count_tokens(text)
            case ToolCallPart():
                size += count_tokens(part.tool_name + part.args_as_json_str()) + 2 * _MESSAGE
    return size


def as_json(tools: "Sequence[ToolDefinition]", indent: int | None = 2) -> str:
    """The tools as a provider gets them: name, description, parameters."""
    return json.dumps(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            }
            for tool in tools
        ],
        ensure_ascii=False,
        indent=indent,
    )
