"""The requests to a judge model, and its one word back.

The instructions are Markdown files beside this module, one for each language; the language is that
of the question.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.strategies.reply import Prompt
from agentic_rag.text.language import is_chinese

Task = Literal["judge", "why_wrong"]

_PROMPTS = Path(__file__).parent / "prompts"
_TAG = re.compile(r"<(?=\s*/?\s*(?:question|gold_answer|answer)\b)", re.IGNORECASE)
_TURN = re.compile(r"<(?=[|｜])")
# Each word of a verdict with what it means; a longer word stands before one that is in it.
_WORDS: Mapping[Task, Mapping[str, str]] = {
    "judge": {
        "incorrect": "incorrect",
        "correct": "correct",
        "不正确": "incorrect",
        "错误": "incorrect",
        "正确": "correct",
    },
    "why_wrong": {
        "entity": "wrong_entity",
        "question": "misread_question",
        "other": "other",
        "实体": "wrong_entity",
        "问题": "misread_question",
        "其他": "other",
        "其它": "other",
    },
}
_NEGATED = re.compile(r"\bnot\b|n't\b|\bno\b|并非|不是|没有")


@dataclass(frozen=True, slots=True)
class Item:
    """What is judged: an answer to a question whose gold answers are known."""

    question: str
    golds: tuple[str, ...]
    answer: str

    @property
    def hash(self) -> str:
        """Equal for equal items."""
        text = json.dumps([self.question, list(self.golds), self.answer], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def item_of(gold: GoldQuestion, answer: str) -> Item:
    """The item of an answer; `answer` is without its citation marks."""
    return Item(gold.question, gold.golds, answer.strip())


def prompt_of(task: Task, item: Item) -> Prompt:
    """The request for a verdict on `item`, its texts as data in marked blocks."""
    language = "zh" if is_chinese(item.question) else "en"
    user = Template(_read(f"item.{language}.md")).substitute(
        question=_escaped(item.question),
        golds="\n".join(_escaped(gold) for gold in item.golds),
        answer=_escaped(item.answer),
    )
    return Prompt(_read(f"{task}.{language}.md"), user)


def prompt_hash(task: Task) -> str:
    """Changes when an instruction of `task` does, in whatever language."""
    names = (f"{name}.{language}.md" for name in (task, "item") for language in ("en", "zh"))
    return hashlib.sha256("\0".join(map(_read, names)).encode()).hexdigest()[:16]


def verdict_in(task: Task, reply: str) -> str | None:
    """The meaning of the one word that a reply without thoughts comes to: "correct", "incorrect",
    or an error kind. None where it names two, none, or negates one."""
    said = unicodedata.normalize("NFKC", reply).lower()
    words = _WORDS[task]
    pattern = "|".join(rf"\b{word}\b" if word.isascii() else word for word in words)
    meant = {words[word] for word in re.findall(pattern, said)}
    return meant.pop() if len(meant) == 1 and not _NEGATED.search(said) else None


def _escaped(text: str) -> str:
    return _TURN.sub("< ", _TAG.sub("&lt;", text))


@cache
def _read(name: str) -> str:
    return (_PROMPTS / name).read_text(encoding="utf-8").strip()
