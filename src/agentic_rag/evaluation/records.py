"""What an evaluation reads and keeps: questions with their gold answers, and what became of each.

A run is a directory: `run.json` (a `RunInfo`) says what was asked of what, and `results.jsonl`
has one `Result` a line, appended the moment a question is finished.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.trace import Record

Outcome = Literal["answered", "unanswered", "failed"]


class GoldQuestion(Record):
    """A question whose answer is known.

    `answer` is empty where none is known (then only retrieval is measured); `aliases` are other
    right forms of it. `supporting` names what bears the answer: the ids of given chunks, chunk ids
    (`12-3`), or documents by path or name. `kind` groups questions in tables ("bridge", "2hop").
    """

    qid: str
    question: str
    answer: str = ""
    aliases: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    kind: str = ""

    @property
    def golds(self) -> tuple[str, ...]:
        """Every right form of the answer, the main one first."""
        return tuple(dict.fromkeys(gold for gold in (self.answer, *self.aliases) if gold))


class Variant(Record):
    """One system under test: a strategy with the settings that make it differ from the others.

    `overrides` are settings by their dotted names, as in `{"agent.max_steps": 5}`; they come
    last, over those of the knowledge base and the run.
    """

    name: str
    strategy: str
    overrides: Mapping[str, JsonValue] = Field(default_factory=dict)


class RunInfo(Record):
    """What a run asks: the dataset by its directory and the hashes of its files, the systems, the
    model by name, and how many questions in which order (`seed` None: those of the file, in its
    order). `settings` are those that answers come of and that are not as they come, by dotted
    names."""

    version: Literal[1] = 1
    dataset: str
    dataset_hash: str
    chunks_hash: str = ""
    knowledge_base: str
    variants: tuple[Variant, ...]
    model: str
    limit: int | None = None
    seed: int | None = None
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)
    started: str = ""  # ISO 8601
    program: str = ""  # the version of this package


class Result(Record):
    """What became of one question in one variant.

    `outcome`: "answered"; "unanswered" when the system said the documents do not hold the answer,
    or was cut short without one; "failed" when it or its model ended in `error`. `answer` is kept
    of failed questions too where there was anything, with its trace. `tries` counts the times it
    was asked.
    """

    variant: str
    qid: str
    outcome: Outcome
    answer: Answer | None = None
    error: str = ""
    tries: int = 1
    finished: str = ""  # ISO 8601

    @property
    def key(self) -> tuple[str, str]:
        """What a result is known by; of two with one key the later counts."""
        return self.variant, self.qid
