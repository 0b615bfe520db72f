"""The embedded demonstration model within strategies made for larger ones.

It writes no objects, so it neither rewrites nor judges; it reads no Chinese; and it follows one
short instruction. What it cannot do is left out, so that every strategy runs offline to its end.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from agentic_rag.strategies.passages import passages_block
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.support import Passage
from agentic_rag.text.language import is_chinese

_PROMPTS = Path(__file__).parent / "prompts"


def readable(question: Question, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that the model of `question` can be shown; for one that is no demonstration
    model, all."""
    if not question.chat.demonstration:
        return list(passages)
    if is_chinese(question.text):
        return []
    return [passage for passage in passages if not is_chinese(passage.text)]


def demonstration_prompt(question: Question, passages: Sequence[Passage]) -> Prompt:
    """The request to a demonstration model for an answer."""
    user = Template(_read("naive.question.en.md"))
    return Prompt(
        instructions=_read("naive.demonstration.md"),
        user=user.substitute(passages=passages_block(passages), question=question.text),
    )


@cache
def _read(name: str) -> str:
    return (_PROMPTS / name).read_text(encoding="utf-8").strip()
