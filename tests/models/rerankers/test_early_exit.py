"""When the layer-wise reranker leaves early, and what needs no model: settings, and no torch."""

import math
import sys

import pytest

from agentic_rag.config import Rerank, Settings
from agentic_rag.models.reranker import Reranker, RerankFailed, UnknownReranker, resolve_reranker
from agentic_rag.models.rerankers.layerwise import leaves_early


def reranker(**settings: object) -> Reranker:
    made = resolve_reranker(Settings(rerank=Rerank(**settings)), None)  # type: ignore[arg-type]
    assert made is not None
    return made


THREE_TO_ONE = [math.log(3), 0.0]  # softmax: 0.75 and 0.25
ITS_ENTROPY = 0.8112781  # of 0.75 and 0.25 in bits, of which two texts can have 1


@pytest.mark.parametrize(
    ("scores", "rule", "threshold", "leaves"),
    [
        (THREE_TO_ONE, "maximum", 0.74, True),
        (THREE_TO_ONE, "maximum", 0.76, False),
        ([0.0] * 4, "maximum", 0.25, True),  # reached is enough
        ([0.0] * 4, "maximum", 0.26, False),
        ([-900.0, 900.0], "maximum", 1.0, True),
        ([5.0, 1.0], "maximum", 1.01, False),
        (THREE_TO_ONE, "entropy", ITS_ENTROPY + 1e-6, True),
        (THREE_TO_ONE, "entropy", ITS_ENTROPY - 1e-6, False),
        ([0.0] * 7, "entropy", 0.999, False),  # undecided: all of the entropy there can be
        ([0.0] * 7, "entropy", 1.001, True),
        ([-900.0, 900.0, 0.0], "entropy", 0.0, True),
        ([3.0], "maximum", 1.0, True),  # of one text there is only one order
        ([3.0], "entropy", 0.0, True),
        ([math.nan, 1.0], "maximum", 0.0, False),
        ([math.inf, 1.0], "entropy", 1.0, False),
        ([], "maximum", 0.0, False),
    ],
)
def test_the_first_batch_decides(
    scores: list[float], rule: str, threshold: float, leaves: bool
) -> None:
    assert leaves_early(scores, rule, threshold) is leaves


def test_without_leaving_early_the_early_layer_may_be_any() -> None:
    assert reranker(model="layerwise:some/model", layer=12).name == "layerwise:some/model"


def test_the_model_is_kept_for_the_process_and_its_settings() -> None:
    first = reranker(model="layerwise:some/model")
    assert first is reranker(model="layerwise:some/model")
    assert first is not reranker(model="layerwise:some/model", exit="entropy")
    with pytest.raises(UnknownReranker, match="did you mean 'layerwise:x'"):
        reranker(model="layer-wise:x")
    with pytest.raises(UnknownReranker, match="'layerwise:NAME_OR_PATH'"):
        reranker(model="layerwise:")


async def test_no_texts_load_nothing() -> None:
    assert await reranker(model="layerwise:/no/such/folder").rerank("fee", []) == []


async def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "agentic_rag.models.rerankers.layers", raising=False)
    with pytest.raises(RerankFailed, match=r"pip install 'agentic-rag\[sentence-transformers\]'"):
        await reranker(model="layerwise:never/loaded").rerank("fee", ["a text"])
