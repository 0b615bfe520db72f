"""The layer-wise reranker on a small random model: 6 layers, heads from the 2nd.

Random weights order texts at random; what is measured is how many layers are run.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch  # noqa: F401 - without it there is nothing to measure

from agentic_rag.config import Rerank
from agentic_rag.models.rerankers.layerwise import LayerwiseReranker
from tests.models.rerankers.test_layerwise import LAYERS, built

_EARLY = 3
_BATCH = 32  # EasyRAG's


def rankings(query: str, texts: Sequence[str]) -> Iterator[tuple[str, int, int, float]]:
    """For each way: its name, the layer whose scores count, layer-steps, seconds."""
    ways: dict[str, dict[str, Any]] = {
        "off": {},
        "maximum, threshold .1": {"exit": "maximum", "exit_threshold": 0.1},
        "maximum, threshold .4": {"exit": "maximum", "exit_threshold": 0.4},
        "entropy, threshold .4": {"exit": "entropy", "exit_threshold": 0.4},
    }
    with tempfile.TemporaryDirectory() as folder:
        model = built(Path(folder) / "small")
        for name, way in ways.items():
            section = Rerank(
                model=f"layerwise:{model}",
                layer=LAYERS,
                early_layer=_EARLY,
                batch_size=_BATCH,
                **way,
            )
            reranker = LayerwiseReranker(str(model), section)
            asyncio.run(reranker.ranking(query, texts[:1]))  # loads the model
            began = time.perf_counter()
            found = asyncio.run(reranker.ranking(query, texts))
            yield name, found.layer, found.layer_steps, time.perf_counter() - began
