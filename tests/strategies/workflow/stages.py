"""A scripted model for the workflow: it tells the stages apart by their instructions."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.strategies.events import Event, StepFinished
from agentic_rag.strategies.run import stream

Reply = str | Exception | Callable[[str], str]

GOOD = {
    "relevance": {"score": 9, "reason": "on the matter"},
    "completeness": {"score": 9, "reason": ""},
    "accuracy": {"score": 8, "reason": ""},
    "coverage": {"score": 8, "reason": ""},
    "suggestions": [],
}
POOR = {**GOOD, "completeness": {"score": 1, "reason": "the date is missing"}}
REWRITTEN = {
    "query": "year in which the Oriole Bridge was opened",
    "variants": ["opening of the Oriole Bridge", "history of the bridge over the Tamar"],
    "keywords": ["Oriole Bridge", "opened"],
    "field": "engineering",
    "kind": "a number",
}


class Stages:
    """Replies of each stage in turn, the last one again and again; `sent` are (stage, prompt)."""

    def __init__(
        self,
        rewrite: Sequence[Reply] = (json.dumps(REWRITTEN),),
        evaluate: Sequence[Reply] = (json.dumps(GOOD),),
        answer: Sequence[Reply] = ("It was opened in 1932 [1-1].",),
        rerank: Sequence[Reply] = ("",),
    ) -> None:
        self._replies = {
            "rewrite": rewrite,
            "evaluate": evaluate,
            "answer": answer,
            "rerank": rerank,
        }
        self.sent: list[tuple[str, str]] = []
        self.settings: list[dict[str, Any]] = []
        self.model = FunctionModel(stream_function=self._stream, model_name="scripted")

    def asked(self, stage: str) -> list[str]:
        """The user messages of a stage."""
        return [prompt for one, prompt in self.sent if one == stage]

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        instructions = info.instructions or ""
        stage = "answer"
        if '"variants"' in instructions:
            stage = "rewrite"
        elif '"completeness"' in instructions:
            stage = "evaluate"
        elif '"order"' in instructions:
            stage = "rerank"
        user = "\n".join(str(getattr(p, "content", "")) for m in messages for p in m.parts)
        self.sent.append((stage, user))
        self.settings.append({"stage": stage, **(info.model_settings or {})})
        replies = self._replies[stage]
        reply = replies[min(len(self.asked(stage)), len(replies)) - 1]
        yield ""
        if isinstance(reply, Exception):
            raise reply
        yield reply(user) if callable(reply) else reply


async def events_of(kb: KnowledgeBase, question: str, model: Stages, **more: Any) -> list[Event]:
    """Every event of a question answered by the workflow."""
    events = stream(kb, question, strategy="workflow", model=model.model, **more)
    return [event async for event in events]


def stages_of(events: Sequence[Event]) -> list[str]:
    """The names of the stages that were run, in order."""
    return [event.name for event in events if isinstance(event, StepFinished)]


def output_of(events: Sequence[Event], name: str) -> dict[str, Any]:
    """What the last stage of that name came to."""
    found = [e for e in events if isinstance(e, StepFinished) and e.name == name]
    return dict(found[-1].output)
