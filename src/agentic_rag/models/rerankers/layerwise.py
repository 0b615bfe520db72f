"""The layer-wise reranker of EasyRAG (arXiv 2410.10315): a decoder that can be cut at any layer
with a head, and that leaves early where an early layer has decided already.

The model is `bge-reranker-v2-minicpm-layerwise`, or any decoder that says "Yes" or "No". It loads
with the first text.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag.models.reranker import Ranked, RerankFailed
from agentic_rag.models.rerankers.in_process import best_first, clean, said

if TYPE_CHECKING:
    from agentic_rag.config import Rerank
    from agentic_rag.models.rerankers.layers import LayeredModel

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LayerwiseRanking:
    """One query's texts, best first, by the scores of `layer` (0 where there were none).

    `layer_steps` is the work done: layers times texts that went through them.
    """

    ranked: tuple[Ranked, ...]
    layer: int
    layer_steps: int


def layerwise_reranker(model: str, section: "Rerank") -> "LayerwiseReranker":
    """The reranker `model`, a folder or a name on the Hugging Face Hub; one a process, so that the
    model is loaded once."""
    return _made(model, section)


@cache
def _made(model: str, section: "Rerank") -> "LayerwiseReranker":
    return LayerwiseReranker(model, section)


def leaves_early(scores: Sequence[float], rule: str, threshold: float) -> bool:
    """Whether the scores of the first batch at the early layer decide the query.

    With p = softmax(scores) over the n texts of that batch:

    - "maximum", as published: max(p) >= threshold;
    - "entropy": -sum(p ln p) / ln n <= threshold, the entropy as a part of the greatest there can
      be (0 for one text). The code of EasyRAG has ">=" here, and so leaves early on the queries
      that are least decided.
    """
    if not scores or not all(map(math.isfinite, scores)):
        return False
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    total = sum(weights)
    parts = [weight / total for weight in weights]
    if rule == "maximum":
        return max(parts) >= threshold
    if rule == "entropy":
        entropy = -sum(part * math.log(part) for part in parts if part)
        return entropy / math.log(len(parts)) <= threshold if len(parts) > 1 else threshold >= 0
    return False


class LayerwiseReranker:
    """`model` is a folder, or a name on the Hugging Face Hub. Implements `Reranker`."""

    def __init__(self, model: str, section: "Rerank") -> None:
        path = Path(model).expanduser()
        self._source = str(path) if path.is_dir() else model
        self.name = f"layerwise:{path.resolve().name if path.is_dir() else model}"
        self._section = section
        self._model: LayeredModel | None = None
        self._lock = threading.Lock()  # one query at a time through one model

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        """As in `Reranker`; the work is done in a thread, and loads the model at first."""
        return list((await self.ranking(query, texts)).ranked)

    async def ranking(self, query: str, texts: Sequence[str]) -> LayerwiseRanking:
        """As `rerank`, with the layer that gave the scores and the work that was done.

        The first batch is the first `rerank.batch_size` of `texts`, which are expected best first
        by the search before; it alone decides, by `leaves_early`, for all of them. The others go
        straight to the layer chosen, those of one length together. Raises RerankFailed.
        """
        if not texts:
            return LayerwiseRanking((), 0, 0)
        return await asyncio.to_thread(self._ranking, clean(query), [clean(t) for t in texts])

    def _ranking(self, query: str, texts: Sequence[str]) -> LayerwiseRanking:
        with self._lock:
            model = self._loaded()
            try:
                ranking = self._run(model, query, texts)
            except Exception as error:  # torch raises all kinds
                raise RerankFailed(
                    f"The reranker {self.name} failed ({said(error)}); lower rerank.batch_size "
                    "if memory is short, or check the model."
                ) from None
        _logger.debug(
            "%s: %d texts by layer %d, %d layer-steps",
            self.name,
            len(texts),
            ranking.layer,
            ranking.layer_steps,
        )
        return ranking

    def _run(self, model: "LayeredModel", query: str, texts: Sequence[str]) -> LayerwiseRanking:
        section = self._section
        inputs = model.inputs(query, texts, section.max_tokens)
        size = section.batch_size
        # Inputs of a batch are filled up to its longest: those of one length go together.
        rest = sorted(range(size, len(inputs)), key=lambda index: len(inputs[index]))
        batches = [list(range(min(size, len(inputs))))]
        batches += [rest[start : start + size] for start in range(0, len(rest), size)]
        scores: list[tuple[int, float]] = []
        layer, steps = model.depth, 0
        for number, batch in enumerate(batches):
            passages = model.begin([inputs[index] for index in batch])
            if number == 0 and section.exit != "off":
                steps += model.run(passages, section.early_layer)
                early = model.scores(passages)
                if leaves_early(early, section.exit, section.exit_threshold):
                    layer = section.early_layer
            steps += model.run(passages, layer)
            scores += zip(batch, model.scores(passages), strict=True)
        return LayerwiseRanking(tuple(best_first(scores)), layer, steps)

    def _loaded(self) -> "LayeredModel":
        if self._model is None:
            try:
                from agentic_rag.models.rerankers import layers
            except ImportError:
                raise RerankFailed(
                    f"The reranker {self.name} needs a package that is not installed; run "
                    "`pip install 'agentic-rag[sentence-transformers]'`."
                ) from None
            section = self._section
            early = section.early_layer if section.exit != "off" else None
            try:
                self._model = layers.load(self._source, section.layer, early)
            except RerankFailed:
                raise
            except Exception as error:  # the library, the hub and torch raise all kinds
                raise RerankFailed(
                    f"The reranker '{self._source}' cannot be loaded ({said(error)}); name a "
                    "folder with a layer-wise or a yes-or-no reranker, or one on the Hugging Face "
                    "Hub that this machine can reach."
                ) from None
        return self._model
