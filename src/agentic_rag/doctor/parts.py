"""The configured parts, each tried once: settings, knowledge base, OCR, embedder, chat model,
strategy.

A trial costs one embedded text and a few tokens of the chat model.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.doctor.chat_model import NOT_TRIED, chat_model
from agentic_rag.doctor.records import Finding, Part
from agentic_rag.doctor.wording import cure_of, said

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.models.chat import ChatModel

_TEXT = "The pump was replaced in 2019."
_WHY_AGENT = {
    True: "The chat model can call tools.",
    False: "The chat model was taken to be one that can call tools, and is not.",
    None: "The chat model is taken to be one that can call tools.",
}
_REPORT = "Install agentic-rag anew; if that does not help, please report it."


def settings_part(file: Path | None) -> Part:
    """Where the settings come from."""
    named = sorted(name for name in os.environ if name.startswith("ARAG_"))
    why = f"the environment sets {', '.join(named)}" if named else ""
    return Part("settings", str(file) if file else "no arag.toml: the defaults", why, works=True)


def failed_settings(error: Exception) -> Part:
    """The same where the settings cannot be used; then nothing else can be tried."""
    cure = cure_of(error, "Check that this folder and the arag.toml in force can be read.")
    return Part("settings", "", works=False, detail=said(error), cure=cure)


def parts(settings: "Settings", *, calls: bool = True) -> Iterator[Part]:
    """Every part but the settings themselves, in the order in which they are needed.

    Without `calls` nothing is embedded and no model is asked.
    """
    yield _knowledge_base(settings)
    yield _ocr(settings, calls)
    yield _embedder(settings, calls)
    chat, takes_tools, part = chat_model(settings, calls)
    yield part
    yield _strategy(settings, chat, takes_tools)


def failures(parts: list[Part]) -> list[Finding]:
    """A finding for each part that does not work."""
    return [
        Finding(part.code or part.name.replace(" ", "_"), f"{part.name}: {part.detail}", part.cure)
        for part in parts
        if part.works is False
    ]


def with_findings(part: Part, count: int) -> Part:
    """The part whose check-up has `count` findings: it can be opened, and fails all the same."""
    told = "1 finding" if count == 1 else f"{count} findings"
    return replace(part, works=False, detail=f"{part.detail}; {told}, told below")


def _knowledge_base(settings: "Settings") -> Part:
    from agentic_rag.knowledge_base import DamagedKnowledgeBase, KnowledgeBase, NoKnowledgeBase

    name, value = "knowledge base", str(settings.kb)
    began = time.monotonic()
    try:
        documents = KnowledgeBase.open(settings.kb, settings=settings, create=False).documents()
    except NoKnowledgeBase:
        detail, cure = _none_there(settings.kb)
        return Part(name, value, works=False, detail=detail, cure=cure)
    except Exception as error:  # whatever is wrong with it, the other parts are still looked at
        cure = cure_of(error, "Check the path and who may read it.")
        code = "unreadable" if isinstance(error, DamagedKnowledgeBase) else ""
        return Part(name, value, works=False, detail=said(error), cure=cure, code=code)
    counts = {status: sum(d.status == status for d in documents) for status in ("failed", "empty")}
    chunks = sum(d.chunks for d in documents)
    plural = "" if len(documents) == 1 else "s"
    told = [f"{len(documents):,} document{plural}, {chunks:,} chunks"]
    told += [f"{count} {status}" for status, count in counts.items() if count]
    return Part(name, value, works=True, detail=", ".join(told), seconds=time.monotonic() - began)


def _none_there(directory: Path) -> tuple[str, str]:
    """How that looks where there is no knowledge base, and what to do."""
    from agentic_rag.knowledge_base.tables import is_knowledge_base

    elsewhere = "Name another place by `--kb` or the setting `kb`."
    try:
        if directory.exists() and not directory.is_dir():
            return f"{directory} is a file, not a directory", elsewhere
        others = (path for path in directory.iterdir() if not path.name.startswith("writer."))
        if not is_knowledge_base(directory) and any(others):
            return f"{directory} holds other files and is none", elsewhere
    except OSError:
        pass  # then nothing more can be said of it
    return (
        f"there is none at {directory}",
        "`arag index PATH` makes it; `--kb` or the setting `kb` names another place.",
    )


def _ocr(settings: "Settings", calls: bool) -> Part:
    from agentic_rag.documents import Reading, ocr

    name, reading = "ocr", Reading(settings.ocr)
    if not reading.reads_pictures:
        off = "not installed" if not ocr.is_installed() else "switched off"
        why = f"Scanned pages and pictures are not read; {reading.cure}"
        return Part(name, off, why, works=None)
    value = "PP-OCR, by rapidocr"
    if not calls:
        return Part(name, value, works=None)
    began = time.monotonic()
    try:
        read = ocr.try_out()
    except Exception as error:  # the models may raise anything
        cure = f"Install the extra anew: {ocr.INSTALL}"
        return Part(name, value, works=False, detail=said(error), cure=cure)
    if read != "1906":
        detail = f"it read {read!r} where 1906 was drawn"
        return Part(name, value, works=False, detail=detail, cure=_REPORT)
    return Part(name, value, works=True, seconds=time.monotonic() - began)


def _embedder(settings: "Settings", calls: bool) -> Part:
    import numpy as np

    from agentic_rag.knowledge_base import DamagedKnowledgeBase, KnowledgeBase, NoKnowledgeBase
    from agentic_rag.models.embedder import resolve_embedder
    from agentic_rag.models.embedders.watched import WatchedEmbedder, usable

    name, value = "embedder", settings.embedding.model
    wanted: int | None = None
    began = time.monotonic()
    try:
        embedder = resolve_embedder(settings.embedding)
        value = embedder.name
        with suppress(NoKnowledgeBase, DamagedKnowledgeBase):  # that is told elsewhere
            store = KnowledgeBase.open(settings.kb, settings=settings, create=False)
            store.embedder()
            wanted = store.snapshot().head.dimensions
        if not calls:
            return Part(name, value, works=None, detail=NOT_TRIED)
        if isinstance(embedder, WatchedEmbedder):  # a server is waited for as long as for a query
            vector = np.asarray(embedder.embed_query(_TEXT), np.float64)
        else:
            vector = np.asarray(embedder.embed_passages([_TEXT])[0], np.float64)
    except Exception as error:  # an engine may raise anything
        cure = cure_of(error, _REPORT)
        return Part(name, value, works=False, detail=said(error), cure=cure)
    unit, wrong = usable(vector, wanted or vector.size)
    if unit is None:
        cure = "Set embedding.model to another one, or check the model on its server."
        return Part(name, value, works=False, detail=wrong, cure=cure)
    seconds = time.monotonic() - began
    return Part(name, value, works=True, detail=f"{unit.size} dimensions", seconds=seconds)


def _strategy(settings: "Settings", chat: "ChatModel | None", takes_tools: bool | None) -> Part:
    from agentic_rag.strategies.run import STRATEGIES

    name = "strategy"
    if settings.strategy:
        value, why = settings.strategy, "The setting or option `strategy` names it."
    elif chat is None:
        return Part(name, "", detail="not known, as the chat model decides it")
    elif chat.connect is None:
        value, why = "naive", "There is no chat model."
    elif chat.tools:
        value, why = "agent", _WHY_AGENT[takes_tools]
    else:
        value, why = "naive", "The chat model is not known to call tools."
    if value not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        return Part(
            name,
            value,
            why,
            works=False,
            detail=f"there is no strategy {value!r}",
            cure=f"Set `strategy` to one of: {known}; or leave it empty.",
        )
    if value == "agent" and chat is not None and not chat.tools:
        lack = "there is none" if chat.connect is None else f"{chat.name} is not known to be one"
        return Part(
            name,
            value,
            why,
            works=False,
            detail=f"the agent needs a model that can call tools, and {lack}",
            cure="Set `strategy` to naive, or `model` to one that calls tools.",
        )
    return Part(name, value, why)
