"""A conversation as it is kept: its turns, each a question and its answer with citations.

The trace of an answer is not kept: citations hold their own snippets, and `arag ask --trace`
writes one where it is wanted. `evidence` names the chunks that a follow-up may look at again.
"""

from datetime import datetime
from typing import Literal

from agentic_rag.strategies.answer import Answer
from agentic_rag.strategies.trace import Record, ToolReturned

_EVIDENCE = 20  # chunk ids of one turn that a follow-up is told about
_TITLE = 80  # characters


class SessionTurn(Record):
    """One question and its answer. `asked` is when, in ISO 8601 with the offset."""

    question: str
    answer: Answer
    evidence: tuple[str, ...] = ()
    asked: str


class Session(Record):
    """A conversation. `id` is empty until it is saved for the first time."""

    version: Literal[1] = 1
    id: str = ""
    started: str
    turns: tuple[SessionTurn, ...] = ()

    @property
    def title(self) -> str:
        """The first question on one line, cut to be listed."""
        first = " ".join(self.turns[0].question.split()) if self.turns else ""
        return first if len(first) <= _TITLE else f"{first[: _TITLE - 1]}…"

    def with_turn(self, question: str, answer: Answer) -> "Session":
        """This conversation with one more turn."""
        turn = SessionTurn(
            question=question,
            answer=answer.model_copy(update={"trace": ()}),
            evidence=evidence_of(answer),
            asked=now(),
        )
        return self.model_copy(update={"turns": (*self.turns, turn)})


class SessionInfo(Record):
    """What a list of conversations shows. `problem` says why one cannot be read, if so."""

    id: str
    title: str
    turns: int
    changed: str
    problem: str = ""


def new_session() -> Session:
    """A conversation without turns."""
    return Session(started=now())


def evidence_of(answer: Answer) -> tuple[str, ...]:
    """The chunks that bear an answer: those cited, then those that were read on the way to it."""
    cited = [citation.chunk_id for citation in answer.citations]
    read = [
        hit.chunk_id
        for event in answer.trace
        if isinstance(event, ToolReturned) and event.name == "read_chunk"
        for hit in event.hits
    ]
    return tuple(dict.fromkeys(chunk for chunk in (*cited, *read) if chunk))[:_EVIDENCE]


def now() -> str:
    """The time as sessions write it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")
