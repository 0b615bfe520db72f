"""A question within a conversation: made self-contained, with what came before it in brief."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.display import escaped, title_line
from agentic_rag.strategies.agent.prompts import Language, filled, read, read_again
from agentic_rag.strategies.agent.requests import LeftOut, ModelTurn, Requests
from agentic_rag.strategies.reply import ModelCallFailed, Retrying
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import count_tokens, prefix_of_tokens

if TYPE_CHECKING:
    from agentic_rag.knowledge_base import Chunk
    from agentic_rag.strategies.question import Turn

_TURNS = 6  # so many of the latest turns are given
_ANSWER_TOKENS = 300  # o200k tokens of each earlier answer
_LONGEST = 1000  # characters; a longer rewriting is no question
_MARKS = re.compile(r"\s?\[\d+\]")
_MOST_EVIDENCE = 30


@dataclass(frozen=True, slots=True)
class Standalone:
    """The question as it is understood alone; `turn` is what the model said, None if it failed
    (`problem` says why)."""

    text: str
    turn: ModelTurn | None
    problem: str = ""
    requests: int = 1


async def stand_alone(
    question: str, turns: "tuple[Turn, ...]", language: Language, requests: Requests
) -> AsyncGenerator[Piece | Retrying | LeftOut | Standalone, None]:
    """Pieces of the model's reply, and last the question made self-contained.

    Where the model fails, or writes anything but a question, the question stays as it is.
    """
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    system = read("standalone", language)
    user = filled("standalone.question", language, turns=told(turns, language), question=question)
    message = ModelRequest(parts=[UserPromptPart(user)], instructions=system)
    turn: ModelTurn | None = None
    try:
        async with aclosing(requests.ask([message], count_tokens(system + user))) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelTurn):
                    turn = piece
                else:
                    yield piece
    except ModelCallFailed as failure:
        yield Standalone(question, None, str(failure), failure.requests)
        return
    text = " ".join(turn.text.strip("\"'“”「」 \n").split()) if turn else ""
    if turn is None or not text or turn.cut_off or len(text) > _LONGEST + len(question):
        yield Standalone(question, turn, "The model did not make it self-contained.")
        return
    yield Standalone(text, turn)


def told(turns: "tuple[Turn, ...]", language: Language) -> str:
    """Earlier questions and answers, each answer cut to its beginning."""
    q, a = ("问", "答") if language == "zh" else ("Q", "A")
    lines = []
    for turn in turns[-_TURNS:]:
        answer = prefix_of_tokens(_MARKS.sub("", turn.answer_text), _ANSWER_TOKENS)
        cut = "…" if len(answer) < len(_MARKS.sub("", turn.answer_text)) else ""
        lines.append(f"{q}: {turn.question}\n{a}: {' '.join(answer.split())}{cut}")
    return "\n\n".join(lines)


def user_message(
    question: str,
    turns: "tuple[Turn, ...]",
    evidence: "list[Chunk]",
    language: Language,
    given: Sequence[str],
) -> str:
    """The question as it is sent: what came before it in brief, evidence by id and title only.
    `given` are the tools that the model has."""
    if not turns:
        return filled("question", language, question=question)
    shown = "; ".join(
        f"[{chunk.chunk_id}] {title_line(chunk.title, chunk.section, chunk.page)}".strip()
        for chunk in evidence[:_MOST_EVIDENCE]
    )
    return filled(
        "conversation",
        language,
        turns=escaped(told(turns, language)),
        again=read_again(language, given),
        evidence=shown or "–",
        question=question,
    )


def evidence_ids(turns: "tuple[Turn, ...]") -> list[str]:
    """Ids of the chunks that earlier answers rest on, the latest turn's first."""
    return list(dict.fromkeys(one for turn in reversed(turns) for one in turn.evidence))
