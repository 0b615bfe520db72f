"""The limits of one question: steps, tokens of a request, cost. They are ours alone.

The token limit concerns the request about to be sent: system prompt, tool schemas and history,
with room kept for the final answer. It is not the sum of what was billed.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from agentic_rag.strategies.answer import Status

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel

Limit = Literal["steps", "tokens", "cost"]

STATUS: dict[Limit, Status] = {
    "steps": "forced_by_steps",
    "tokens": "forced_by_budget",
    "cost": "forced_by_cost",
}
_LEAST_RESULT = 150  # o200k tokens; a step that could bring in less is not worth making
_ANSWER_SHARE = 4  # at most this part of a small budget is kept for the answer


@dataclass(frozen=True, slots=True)
class Limits:
    """`budget` and `answer` (room kept free, the final message included) in o200k tokens;
    `by_context`: it is the model's context that sets the budget."""

    steps: int
    budget: int
    answer: int
    max_cost: float | None
    by_context: bool = False

    def left(self, tokens: int) -> int:
        """Tokens that a history of `tokens` may still grow by."""
        return self.budget - self.answer - tokens

    def reached(self, tokens: int, next_costs: float | None, spent: float | None) -> Limit | None:
        """The limit that forbids one more turn with tools. `next_costs` is about what that turn
        and the final answer after it would cost together."""
        if self.left(tokens) < _LEAST_RESULT:
            return "tokens"
        if self.max_cost is not None and spent is not None:
            ahead = next_costs or 0.0
            if spent + ahead > self.max_cost or spent >= self.max_cost:
                return "cost"
        return None


def limits_of(settings: "Settings", chat: "ChatModel", final_message: int) -> Limits:
    """The limits in force; `final_message` is the size of the message that asks for the answer."""
    budget = settings.agent.token_budget
    by_context = chat.context_tokens is not None and chat.context_tokens < budget
    if chat.context_tokens is not None:
        budget = min(budget, chat.context_tokens)
    answer = longest_reply(settings, chat, budget) + final_message
    return Limits(settings.agent.max_steps, budget, answer, settings.agent.max_cost, by_context)


def least_budget(settings: "Settings", chat: "ChatModel", limits: Limits, tokens: int) -> int:
    """The smallest budget that lets a history of `tokens` be sent, in whole hundreds."""
    final_message = limits.answer - longest_reply(settings, chat, limits.budget)
    needed = tokens + _LEAST_RESULT + final_message
    least = min(
        needed + longest_reply(settings, chat, _ANSWER_SHARE * settings.max_output_tokens),
        -(-needed * _ANSWER_SHARE // (_ANSWER_SHARE - 1)),
    )
    return -(-least // 100) * 100


def longest_reply(settings: "Settings", chat: "ChatModel", budget: int) -> int:
    """Tokens of the longest reply that is asked for."""
    most = min(settings.max_output_tokens, chat.max_output_tokens or settings.max_output_tokens)
    return min(most, budget // _ANSWER_SHARE)


def price(response: "ModelResponse", input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for a request of this size to the model that gave `response`, by the price list;
    None where no price is known."""
    from pydantic_ai.usage import RequestUsage

    usage = RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(replace(response, usage=usage).cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
