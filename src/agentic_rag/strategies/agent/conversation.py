"""A question within a conversation: made self-contained, with what came before it in brief."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentic_rag.strategies.agent.display import escaped, title_line
from agentic_rag.strategies.agent.prompts import Language, filled, read
from agentic_rag.strategies.reply import ModelCallFailed, Prompt, Reply, Retrying, stream_reply
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.tokens import prefix_of_tokens

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.knowledge_base import Chunk
    from agentic_rag.strategies.question import Turn

_TURNS = 6  # so many of the latest turns are given
_ANSWER_TOKENS = 300  # o200k tokens of each earlier answer
_LONGEST = 1000  # characters; a longer rewriting is no question
_MARKS = re.compile(r"\s?\[\d+\]")
_MOST_EVIDENCE = 30


@dataclass(frozen=True, slots=True)
class Standalone:
    """The question as it is understood alone; `reply` is what the model said, None if it failed
    (`problem` says why)."""

    text: str
    reply: Reply | None
    problem: str = ""
    requests: int = 1


async def stand_alone(
    question: str,
    turns: "tuple[Turn, ...]",
    language: Language,
    model: "Model",
    settings: "ModelSettings",
    *,
    silence: float,
    cost: float | None,
    unreachable: str,
) -> AsyncGenerator[Piece | Retrying | Standalone, None]:
    """Pieces of the model's reply, and last the question made self-contained.

    Where the model fails, or writes anything but a question, the question stays as it is.
    """
    prompt = Prompt(
        read("standalone", language),
        filled("standalone.question", language, turns=told(turns, language), question=question),
    )
    reply: Reply | None = None
    try:
        replies = stream_reply(
            model, prompt, settings, silence=silence, cost=cost, unreachable=unreachable
        )
        async with aclosing(replies) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply = piece
                else:
                    yield piece
    except ModelCallFailed as failure:
        yield Standalone(question, None, str(failure), failure.requests)
        return
    text = " ".join(reply.text.strip("\"'“”「」 \n").split()) if reply else ""
    if reply is None or not text or reply.cut_off or len(text) > _LONGEST + len(question):
        yield Standalone(question, reply, "The model did not make it self-contained.")
        return
    yield Standalone(text, reply)


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
    question: str, turns: "tuple[Turn, ...]", evidence: "list[Chunk]", language: Language
) -> str:
    """The question as it is sent: what came before it in brief, evidence by id and title only."""
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
        evidence=shown or "–",
        question=question,
    )


def evidence_ids(turns: "tuple[Turn, ...]") -> list[str]:
    """Ids of the chunks that earlier answers rest on, the latest turn's first."""
    return list(dict.fromkeys(one for turn in reversed(turns) for one in turn.evidence))
