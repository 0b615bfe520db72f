"""What the stages share: the run at hand, and the parts that its settings name."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel

from agentic_rag.errors import AragError
from agentic_rag.models.chat import ChatModel, resolve_chat_model
from agentic_rag.models.reranker import Reranker, resolve_reranker
from agentic_rag.strategies.events import Event, HitRecord, Notice, StepFinished, Usage
from agentic_rag.strategies.listwise import Listwise
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.reply import Prompt
from agentic_rag.strategies.structured import Structured, ask_for
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.workflow.quality import Quality
from agentic_rag.strategies.workflow.templates import template
from agentic_rag.text.language import is_chinese
from agentic_rag.web_search import Provider, resolve_provider

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.config import Workflow as WorkflowSettings
    from agentic_rag.retrieval import ScoredHit
    from agentic_rag.strategies.agent.prompts import Language

T = TypeVar("T", bound=BaseModel)
Stage = Literal["rewrite", "evaluate", "answer"]


@dataclass(slots=True)
class Run:
    """One question on its way through the graph."""

    question: Question
    settings: "WorkflowSettings"
    rewriter: ChatModel
    provider: Provider | None
    reranker: Reranker | None
    language: "Language"
    template: str
    step: int = 0
    usage: Usage = field(default_factory=Usage)
    main_query: str = ""
    queries: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)
    hits: "tuple[ScoredHit, ...]" = ()
    related: bool = False
    passages: list[Passage] = field(default_factory=list)
    web: list[Passage] = field(default_factory=list)
    web_problem: str = ""
    quality: Quality | None = None
    passed: bool = False

    def next_step(self) -> str:
        self.step += 1
        return str(self.step)

    def suggested_queries(self) -> list[str]:
        """What the evaluation suggests to look for, and has not been looked for yet."""
        suggested = self.quality.suggestions if self.quality else ()
        return [query for query in suggested if query not in self.looked_for]


def opened(question: Question) -> Run:
    """The run of a question, with the parts that its settings name."""
    settings = question.settings
    rewriter, provider = check_workflow(settings)
    return Run(
        question=question,
        settings=settings.workflow,
        rewriter=rewriter or question.chat,
        provider=provider,
        reranker=resolve_reranker(settings, question.chat, listwise=Listwise),
        language="zh" if is_chinese(question.text) else "en",
        template=template(settings.workflow.profile, question.text),
    )


def check_workflow(settings: "Settings") -> tuple[ChatModel | None, Provider | None]:
    """The rewriter's model where it has one of its own, and the web search. Raises the error of
    the first setting that names what there is not: before a question, never in its middle."""
    template(settings.workflow.profile, "")
    provider = resolve_provider(settings)
    resolve_reranker(settings, None)
    rewriter = None
    if settings.workflow.rewrite_model:
        chosen = settings.model_copy(update={"model": settings.workflow.rewrite_model})
        rewriter = resolve_chat_model(chosen)
    return rewriter, provider


async def object_from(
    run: Run, chat: ChatModel, prompt: Prompt, schema: type[T], stage: Stage, tries: int
) -> AsyncGenerator[Notice | Structured[T], None]:
    """Ask `chat` for an object; last the `Structured`."""
    settings = run.question.settings
    max_tokens = run.settings.rewrite_tokens
    if stage == "evaluate":
        max_tokens = run.settings.evaluate_tokens
    request: dict[str, Any] = {
        "max_tokens": min(max_tokens, chat.max_output_tokens or max_tokens),
        "timeout": settings.model_timeout,
        "max_retries": 0,  # tried again in reply.py, where it is told
        **sampling(run, chat, stage),
    }
    assert chat.connect is not None
    try:
        async with chat.connect() as model:
            asked = ask_for(
                schema,
                model,
                chat,
                prompt,
                cast("Any", request),
                silence=settings.model_timeout,
                tries=tries,
            )
            async with aclosing(asked) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Structured):
                        run.usage += piece.usage
                        yield piece
                    else:
                        yield Notice(level="info", code="model_retried", message=piece.reason)
    except AragError as error:  # the model's file or endpoint, before any request
        yield Structured(None, str(error), Usage())


def sampling(run: Run, chat: ChatModel, stage: Stage) -> dict[str, Any]:
    """Temperature and top_p of a stage; the user's own temperature goes before."""
    own = run.question.settings.temperature
    if own is not None:
        return {"temperature": own}
    if chat.demonstration:
        return {"temperature": 0.0}
    every = run.settings
    temperatures = {
        "rewrite": every.rewrite_temperature,
        "evaluate": every.evaluate_temperature,
        "answer": every.answer_temperature,
    }
    tops = {
        "rewrite": every.rewrite_top_p,
        "evaluate": every.evaluate_top_p,
        "answer": every.answer_top_p,
    }
    temperature, top_p = temperatures[stage], tops[stage]
    return {
        "temperature": every.temperature if temperature is None else temperature,
        "top_p": every.top_p if top_p is None else top_p,
    }


def finished(
    step: str,
    name: str,
    started: float,
    output: dict[str, Any],
    *,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    hits: tuple[HitRecord, ...] = (),
    error: str = "",
) -> Event:
    """The end of a stage."""
    return StepFinished(
        step=step,
        name=name,
        output=output,
        hits=hits,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        duration=time.monotonic() - started,
        error=error or None,
    )
