"""The first stage: the question in the words the documents may use, and what to search for.

Rules first (full-width forms, white space), then the model: colloquial wording becomes that of the
field. What fails falls back to the question as it stands, and says so.
"""

import re
import time
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from agentic_rag.strategies.agent.conversation import told
from agentic_rag.strategies.events import Event, Notice, StepStarted, UsageReported
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.structured import Structured
from agentic_rag.strategies.workflow.parts import Run, finished, object_from
from agentic_rag.strategies.workflow.prompts import filled

_FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")
_LONGEST = 1_000  # characters of a query; what is longer is no query


class Rewritten(BaseModel):
    """What the model makes of a question."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    query: str
    variants: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    field: str = ""
    kind: str = ""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        query = data.get("query")
        if not isinstance(query, str) or not query.strip() or len(query) > _LONGEST:
            raise ValueError("a rewriting has a query")
        return {
            "query": " ".join(query.split()),
            "variants": _listed(data.get("variants")),
            "keywords": _listed(data.get("keywords")),
            "field": str(data.get("field") or ""),
            "kind": str(data.get("kind") or ""),
        }


def _listed(value: Any) -> list[str]:
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [" ".join(s.split()) for s in items if isinstance(s, str) and 0 < len(s) <= _LONGEST]


def by_rules(text: str) -> str:
    """A question with full-width letters and digits made plain and white space made single;
    Chinese punctuation stays."""
    return " ".join(_FULL_WIDTH.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text).split())


async def rewrite(run: Run) -> AsyncGenerator[Event, None]:
    """Fill in `run.main_query` and `run.queries`."""
    text = by_rules(run.question.text)
    run.main_query, run.queries = text, [text]
    rewriter = run.rewriter
    able = rewriter.connect is not None and not rewriter.demonstration
    by_model = able and run.settings.rewrite == "model"
    step, started = run.next_step(), time.monotonic()
    known: dict[str, Any] = {"model": run.rewriter.name} if by_model else {}
    yield StepStarted(step=step, name="rewrite", input={"question": text, **known})
    if not by_model:
        yield finished(step, "rewrite", started, {"query": text})
        return
    made: Structured[Rewritten] | None = None
    asked = object_from(run, run.rewriter, rewrite_prompt(run), Rewritten, "rewrite", tries=1)
    async with aclosing(asked) as pieces:
        async for piece in pieces:
            if isinstance(piece, Structured):
                made = piece
            else:
                yield piece
    assert made is not None  # it is the last of the pieces
    output: dict[str, Any] = {"query": text}
    if made.value is None:
        message = f"The question is searched for as it stands: {made.problem}"
        yield Notice(level="warning", code="not_rewritten", message=message)
    else:
        new = made.value
        run.main_query = new.query
        variants = new.variants[: run.settings.variants]
        keywords = [" ".join(new.keywords)] if new.keywords else []
        # The question's own words stay among the queries: a rewriting may lose a name.
        run.queries = list(dict.fromkeys([new.query, text, *variants, *keywords]))
        output = new.model_dump(mode="json")
    yield finished(step, "rewrite", started, output, usage=made.usage, error=made.problem)
    yield UsageReported(usage=run.usage)


def rewrite_prompt(run: Run) -> Prompt:
    """The request for a rewriting."""
    turns = told(run.question.history, run.language)
    name = "rewrite.conversation" if turns else "rewrite.question"
    user = filled(name, run.language, question=by_rules(run.question.text), turns=turns)
    system = filled("rewrite", run.language, variants=run.settings.variants)
    return Prompt(instructions=system, user=user)
