"""What the stages share: the run at hand, and one plain request to the chat model."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.errors import AragError
from agentic_rag.models.reranker import Reranker, resolve_reranker
from agentic_rag.strategies.events import Event, HitRecord, Notice, StepFinished, Usage
from agentic_rag.strategies.listwise import Listwise
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.reply import ModelCallFailed, Prompt, Reply, Retrying, stream_reply
from agentic_rag.strategies.support import Passage
from agentic_rag.strategies.thoughts import Piece
from agentic_rag.text.language import is_chinese
from agentic_rag.text.tokens import count_tokens

if TYPE_CHECKING:
    from agentic_rag.config import Pipeline, Settings
    from agentic_rag.knowledge_base import Hit
    from agentic_rag.retrieval.coarse import Coarse
    from agentic_rag.strategies.agent.prompts import Language


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best chunks of a route or of all routes, and what of them goes into a prompt."""

    name: str
    hits: "tuple[Hit, ...]"
    passages: list[Passage]


@dataclass(slots=True)
class Run:
    """One question on its way through the stages."""

    question: Question
    settings: "Pipeline"
    reranker: Reranker | None
    language: "Language"
    step: int = 0
    usage: Usage = field(default_factory=Usage)
    sparse: list[str] = field(default_factory=list)
    dense: list[str] = field(default_factory=list)
    coarse: "Coarse | None" = None
    rankings: list[Ranking] = field(default_factory=list)
    unreachable: str = ""  # why the last request reached no server, as a sentence

    def next_step(self) -> str:
        self.step += 1
        return str(self.step)


def opened(question: Question) -> Run:
    """The run of a question."""
    settings = question.settings
    return Run(
        question=question,
        settings=settings.pipeline,
        reranker=resolve_reranker(settings, question.chat, listwise=Listwise),
        language="zh" if is_chinese(question.text) else "en",
    )


def check_pipeline(settings: "Settings") -> None:
    """Raise the error of a setting that names what there is not: before a question, never in its
    middle."""
    resolve_reranker(settings, None)


async def text_from(
    run: Run, prompt: Prompt, request: Mapping[str, Any] | None = None
) -> AsyncGenerator[Notice | Piece | Reply | str, None]:
    """Ask the chat model: pieces as they come, a notice where it is asked again and what came so
    far does not count; last its `Reply`, or a sentence that says why there is none."""
    from pydantic_ai.exceptions import ModelConnectionError

    settings, chat = run.question.settings, run.question.chat
    assert chat.connect is not None
    wanted = dict(request or {})
    most = wanted.pop("max_tokens", settings.max_output_tokens)
    asked: dict[str, Any] = {
        "max_tokens": min(most, chat.max_output_tokens or most),
        "timeout": settings.model_timeout,
        "max_retries": 0,  # tried again in reply.py, where it is told
        **wanted,
    }
    if settings.temperature is not None:
        asked["temperature"] = settings.temperature
    elif chat.demonstration:
        asked["temperature"] = 0.0
    received: list[str] = []
    tries = 1
    try:
        async with chat.connect() as model:
            replies = stream_reply(
                model,
                prompt,
                cast("Any", asked),
                silence=settings.model_timeout,
                cost=chat.cost,
                cures=chat.cures,
            )
            async with aclosing(replies) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Retrying):
                        tries += 1
                        yield Notice(level="info", code="model_retried", message=piece.reason)
                        continue
                    if isinstance(piece, Reply):
                        run.usage += piece.usage
                        run.unreachable = ""
                    else:
                        received.append(piece.text)
                    yield piece
    except ModelCallFailed as failure:
        run.usage += Usage(model_requests=failure.requests, cost=chat.cost)
        if isinstance(failure.__cause__, ModelConnectionError):
            run.unreachable = str(failure)
        yield str(failure)
    except AragError as error:  # the model's file or endpoint, before any request
        yield str(error)
    except asyncio.CancelledError:  # what is stopped has cost something all the same
        run.usage += Usage(
            input_tokens=count_tokens(prompt.instructions + prompt.user),
            output_tokens=count_tokens("".join(received)),
            model_requests=tries,
            cost=chat.cost,
            estimated=True,
        )
        raise


def finished(
    step: str,
    name: str,
    started: float,
    output: Mapping[str, Any],
    *,
    usage: Usage | None = None,
    hits: tuple[HitRecord, ...] = (),
    error: str = "",
) -> Event:
    """The end of a stage."""
    used = usage or Usage()
    return StepFinished(
        step=step,
        name=name,
        output=dict(output),
        hits=hits,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        retrieved_tokens=used.retrieved_tokens,
        duration=time.monotonic() - started,
        error=error or None,
    )
