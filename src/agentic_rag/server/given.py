"""What requests may hold, with bounds: texts, filters, limits of a question."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from agentic_rag.config import AgentSettings, Effort, Settings
from agentic_rag.knowledge_base.records import Filter
from agentic_rag.strategies.question import Turn

_TEXT = 50_000  # characters; about 12,000 tokens
_SHORT = 1_000


def _said(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("empty", "it is empty")
    return text


def _known_file(model: str) -> str:
    # Whoever may ask may not read the server's files, or load one into its memory.
    if model.startswith("local:"):
        message = "a model file is named in the server's own settings, not in a request"
        raise PydanticCustomError("model_file", message)
    return model


Text = Annotated[str, StringConstraints(max_length=_TEXT), AfterValidator(_said)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=_SHORT)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=60)]
ModelName = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(_known_file)
]


class Body(BaseModel):
    """A request's body; a field that there is not is an error, so that none is misspelt."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Filtered(Body):
    """Which documents count: those whose path fits one of the globs `path` and that have all of
    `metadata`."""

    path: Annotated[list[Short], Field(max_length=100, examples=[["*/laws/*"]])] = []
    metadata: Annotated[dict[Short, Short], Field(max_length=100)] = {}

    def filter(self) -> Filter | None:
        """The same for the knowledge base; None where every document counts."""
        if not self.path and not self.metadata:
            return None
        return Filter(tuple(self.path), dict(self.metadata))


class EarlierTurn(Body):
    """An earlier question of the conversation, and its answer."""

    question: Text
    answer: Text


class QuestionBody(Filtered):
    """A question. What is not given is as the server's settings say."""

    question: Annotated[Text, Field(examples=["How long is the notice period?"])]
    strategy: Annotated[str | None, Field(max_length=40, examples=["naive"])] = None
    model: ModelName | None = None
    max_steps: Annotated[int | None, Field(ge=1, le=1000)] = None
    token_budget: Annotated[int | None, Field(ge=1000, le=10_000_000)] = None
    max_cost: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None
    effort: Effort | None = None
    stream: bool = False

    def settings(self, settings: Settings) -> Settings:
        """The settings with the limits that are given. A cost above the server's own is that."""
        cost = self.max_cost
        most = settings.agent.max_cost
        limits = {
            "max_steps": self.max_steps,
            "token_budget": self.token_budget,
            "max_cost": min(cost, most) if cost and most else cost,
            "effort": self.effort,
        }
        given = {name: value for name, value in limits.items() if value is not None}
        if not given:
            return settings
        agent: AgentSettings = settings.agent.model_copy(update=given)
        return settings.model_copy(update={"agent": agent})


class AskBody(QuestionBody):
    """A question, alone or in a conversation: one that is kept (`session`), or one that the
    caller keeps (`history`, the oldest turn first)."""

    session: Id | None = None
    history: Annotated[list[EarlierTurn], Field(max_length=100)] = []

    def turns(self) -> tuple[Turn, ...]:
        """The earlier turns as strategies take them."""
        return tuple(Turn(one.question, one.answer) for one in self.history)
