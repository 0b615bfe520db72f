"""A model as the judge of answers, as A-RAG has it (arXiv 2602.03442): correct if the answer holds
the gold answer's key information, is consistent with it and contradicts nothing; one word back.

The judge is set apart from the model that answers: `evaluation.judge_model`, with an address and
a key of its own. Every verdict is kept in the run's directory, so that none is paid for twice.
"""

from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agentic_rag.errors import AragError
from agentic_rag.evaluation.measures.matching import answer_words
from agentic_rag.evaluation.measures.prompting import (
    Item,
    Task,
    item_of,
    prompt_hash,
    prompt_of,
    verdict_in,
)
from agentic_rag.evaluation.measures.scored import ERROR_KINDS, ErrorKind, Judgement
from agentic_rag.evaluation.measures.verdicts import Verdict, Verdicts
from agentic_rag.evaluation.measures.why_wrong import READ_BUT_LOST, Texts, error_kind, no_texts
from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.models.chat import ChatModel, given_model, resolve_chat_model
from agentic_rag.strategies.reply import ModelCallFailed, Reply, stream_reply
from agentic_rag.strategies.trace import Usage

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from agentic_rag.config import Settings

_TRIES = 2  # an unclear verdict is asked for once more
_KEPT = 200  # characters of what the judge said; a verdict is one word


class NoJudge(AragError):
    """There is no model that can judge."""


@dataclass(slots=True)
class Judge:
    """A judge model with the verdicts of one run. `usage` is what it spent since it was opened."""

    chat: ChatModel
    settings: "Settings"
    verdicts: Verdicts
    usage: Usage = field(default_factory=lambda: Usage(cost=0.0))


def open_judge(
    settings: "Settings", run_dir: Path, model: "str | Model | None" = None
) -> Judge | None:
    """The judge that `settings.evaluation` or `model` names, for the run in `run_dir`; None where
    neither names one. Raises `NoJudge`, or what choosing a model raises."""
    wanted = settings.evaluation
    name = wanted.judge_model if model is None else model
    if not name:
        return None
    own = settings.model_copy(
        update={
            "base_url": wanted.judge_base_url,
            "api_key_env": wanted.judge_api_key_env,
            "context_tokens": None,
            **({"model": name} if isinstance(name, str) else {}),
        }
    )
    chat = resolve_chat_model(own) if isinstance(name, str) else given_model(name)
    if chat.connect is None or chat.demonstration:
        raise NoJudge(
            f"The model {chat.name!r} cannot judge answers; set evaluation.judge_model to a "
            "chat model such as openai:gpt-6-luna."
        )
    return Judge(chat, own, Verdicts(run_dir))


async def judge_result(
    judge: Judge, result: Result, gold: GoldQuestion, texts: Texts = no_texts
) -> Judgement | None:
    """What the judge says of a result; None where no gold answer is known.

    A failed or unanswered question is incorrect without being asked. Of an answer that was lost
    though its evidence had been read it is also asked why. What is known already is not asked
    again; a judge that fails leaves the answer without a verdict, for a later call.
    """
    if not gold.golds:
        return None
    if result.outcome != "answered" or result.answer is None:
        return Judgement(correct=False, model=judge.chat.name)
    item = item_of(gold, answer_words(result.answer))
    verdict = await _verdict(judge, "judge", item)
    if isinstance(verdict, str):
        return Judgement(None, model=judge.chat.name, problem=verdict)
    judgement = _judgement(verdict)
    if judgement.correct is False:
        placed = error_kind(result, gold, right=False, texts=texts)
        if placed == READ_BUT_LOST:
            await _verdict(judge, "why_wrong", item)
    return judgement


def known_judgement(
    verdicts: Verdicts, result: Result, gold: GoldQuestion, judge: tuple[str, str]
) -> Judgement | None:
    """As `judge_result`, from what is known alone; `judge` is a model and its instructions' hash.
    An answer that it was not asked about has no verdict."""
    if not gold.golds:
        return None
    model, prompt = judge
    if result.outcome != "answered" or result.answer is None:
        return Judgement(correct=False, model=model)
    found = verdicts.find("judge", model, prompt, item_of(gold, answer_words(result.answer)))
    return _judgement(found) if found else Judgement(None, model=model)


def known_why(
    verdicts: Verdicts, result: Result, gold: GoldQuestion, model: str
) -> ErrorKind | None:
    """How `model` placed an answer that was lost; None where it was not asked or was not clear."""
    if result.answer is None:
        return None
    item = item_of(gold, answer_words(result.answer))
    found = verdicts.find("why_wrong", model, prompt_hash("why_wrong"), item)
    return next((kind for kind in ERROR_KINDS if found and kind == found.meant), None)


def _judgement(verdict: Verdict) -> Judgement:
    correct = {"correct": True, "incorrect": False}.get(verdict.meant)
    return Judgement(correct, verdict.said, verdict.model)


async def _verdict(judge: Judge, task: Task, item: Item) -> Verdict | str:
    """The verdict, or in a sentence why the judge could not be asked."""
    name, prompt = judge.chat.name, prompt_hash(task)
    known = judge.verdicts.find(task, name, prompt, item)
    if known is not None and known.meant:
        if judge.verdicts.judged_by(task) != (name, prompt):
            judge.verdicts.add(known)  # the judge asked for last is the one that counts
        return known
    usage, said, meant = Usage(cost=0.0), "", ""
    try:
        for _ in range(_TRIES):
            reply = await _reply(judge, task, item)
            usage += reply.usage
            said = reply.text
            if found := verdict_in(task, said):
                meant = found
                break
    except AragError as error:
        made = error.requests if isinstance(error, ModelCallFailed) else 0
        judge.usage += usage + Usage(model_requests=made, cost=judge.chat.cost)
        return str(error)
    judge.usage += usage
    verdict = Verdict(
        task=task,
        model=name,
        prompt=prompt,
        item=item.hash,
        said=said[:_KEPT],
        meant=meant,
        usage=usage,
    )
    judge.verdicts.add(verdict)
    return verdict


async def _reply(judge: Judge, task: Task, item: Item) -> Reply:
    chat, settings = judge.chat, judge.settings
    assert chat.connect is not None  # open_judge has seen to it
    async with chat.connect() as model:
        replies = stream_reply(
            model,
            prompt_of(task, item),
            _request(settings, chat, model),
            silence=settings.model_timeout,
            cost=chat.cost,
            cures=chat.cures,
        )
        async with aclosing(replies) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
    raise AssertionError("a reply ends in one")


def _request(settings: "Settings", chat: ChatModel, model: "Model") -> "ModelSettings":
    most = min(settings.max_output_tokens, chat.max_output_tokens or settings.max_output_tokens)
    request: dict[str, Any] = {
        "max_tokens": most,  # room for the thoughts of a reasoning model
        "timeout": settings.model_timeout,
        "max_retries": 0,
    }
    profile = model.profile
    if not (
        profile.get("openai_supports_reasoning", False)
        or profile.get("anthropic_disallows_sampling_settings", False)
    ):
        request["temperature"] = 0.0
    return cast("ModelSettings", request)
