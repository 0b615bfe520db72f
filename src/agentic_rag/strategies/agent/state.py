"""The state of one run of the agent: what was sent, shown, spent, and where it stands."""

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agentic_rag.knowledge_base.records import Hit
from agentic_rag.strategies.agent.arguments import loosely_read
from agentic_rag.strategies.agent.finishing import Ending
from agentic_rag.strategies.agent.history import History
from agentic_rag.strategies.agent.limits import STATUS, Limit, Limits, limits_of
from agentic_rag.strategies.agent.prompts import Language, note, read, system_prompt
from agentic_rag.strategies.agent.tools import Retrieval, definitions
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.trace import HitRecord, Usage
from agentic_rag.text.language import is_chinese
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from agentic_rag.strategies.agent.requests import ModelTurn
    from agentic_rag.strategies.question import Question
    from agentic_rag.strategies.reply import ModelCallFailed


@dataclass(slots=True)
class State:
    """`asked`: the question as the model gets it. `earlier`: chunks that earlier answers of the
    conversation rest on. `last` or `failure`: how the latest request ended. `next_costs`: about
    what one more step and the answer after it cost. `gave_up`: the model called no tool.
    `complaints`: what a reader was told already of replies without an answer."""

    question: "Question"
    language: Language
    tools: Retrieval
    history: History
    limits: Limits
    asked: str
    usage: Usage = field(default_factory=lambda: Usage(cost=0.0))
    step: int = 0
    earlier: list[Passage] = field(default_factory=list)
    last: "ModelTurn | None" = None
    failure: "ModelCallFailed | None" = None
    next_costs: float | None = None
    price_unknown: bool = False
    gave_up: bool = False
    complaints: set[str] = field(default_factory=set)

    @property
    def never_asked(self) -> bool:
        """Whether no step was taken."""
        return self.last is None and self.failure is None

    def remind(self, name: str) -> None:
        """Say something to the model in the user's place."""
        self.history.add_user(note(name, self.language))

    def passages(self) -> list[Passage]:
        """What may be cited: all that was shown, and what earlier answers rest on."""
        shown = self.tools.tracker.passages()
        ids = {passage.chunk_id for passage in shown}
        return [*shown, *(passage for passage in self.earlier if passage.chunk_id not in ids)]

    def cites_earlier(self, text: str) -> bool:
        """Whether a text names a chunk that an earlier answer rests on."""
        return any(f"[{passage.chunk_id}" in text for passage in self.earlier)

    def ending(self, limit: Limit | None) -> Ending:
        """What an answer needs besides its text."""
        return Ending(self.question, self.usage, STATUS[limit] if limit else None)


def begun(question: "Question") -> State:
    """The state before anything was sent."""
    language: Language = "zh" if is_chinese(question.text) else "en"
    settings = question.settings
    return State(
        question=question,
        language=language,
        tools=Retrieval(question.snapshot, settings, language, question.where),
        history=History(
            system_prompt(language, settings.agent.tools),
            definitions(language, settings.search.top_k, settings.agent.tools),
        ),
        limits=limits_of(settings, question.chat, count_tokens(read("final", language))),
        asked=question.text,
    )


def hit_record(hit: Hit) -> HitRecord:
    """A hit for the trace."""
    return HitRecord(**asdict(hit))


def json_value(arguments: object) -> JsonValue:
    """Arguments for the trace: an object, or the text that was sent instead of one."""
    if isinstance(arguments, str):
        try:
            read_as = loosely_read(arguments)
        except (ValueError, RecursionError):
            return arguments
        arguments = read_as if isinstance(read_as, dict) else arguments
    value: JsonValue = json.loads(json.dumps(arguments, default=str))
    return value
