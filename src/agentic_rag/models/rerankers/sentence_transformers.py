"""Cross-encoders of the sentence-transformers library, run in this process.

BGE-reranker-v2-m3 (arXiv 2402.03216) and the like have a head that gives one score. Qwen3-Reranker
(arXiv 2506.05176) is a causal model that is asked whether a document meets a query: its score is
the probability of "yes" against "no". The library loads with the first text.
"""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentic_rag.models.reranker import Ranked, RerankFailed
from agentic_rag.models.rerankers.in_process import best_first, clean, said

if TYPE_CHECKING:
    from agentic_rag.config import Rerank

# The prompt of Qwen3-Reranker's model card, to the letter.
_QWEN_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
_QWEN_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_QWEN_AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
_LONGEST = 8192  # tokens of query and text together; both models' own


class _Scorer(Protocol):
    def scores(self, query: str, texts: Sequence[str], batch_size: int) -> list[float]: ...


class SentenceTransformersReranker:
    """`model` is a folder, or a name on the Hugging Face Hub. Implements `Reranker`."""

    def __init__(self, model: str, section: "Rerank") -> None:
        path = Path(model).expanduser()
        self._source = str(path) if path.is_dir() else model
        self.name = f"sentence-transformers:{path.resolve().name if path.is_dir() else model}"
        self._batch_size = section.batch_size
        self._scorer: _Scorer | None = None
        self._lock = threading.Lock()  # one query at a time through one model

    async def rerank(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        """As in `Reranker`; the work is done in a thread, and loads the model at first."""
        if not texts:
            return []
        return await asyncio.to_thread(self._ranked, clean(query), [clean(t) for t in texts])

    def _ranked(self, query: str, texts: Sequence[str]) -> list[Ranked]:
        with self._lock:
            scorer = self._loaded()
            # Texts of a batch are filled up to its longest: those of one length go together.
            order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
            try:
                scores = scorer.scores(query, [texts[i] for i in order], self._batch_size)
            except Exception as error:  # torch raises all kinds
                raise RerankFailed(
                    f"The reranker {self.name} failed ({said(error)}); lower rerank.batch_size "
                    "if memory is short, or check the model."
                ) from None
        return best_first(zip(order, scores, strict=True))

    def _loaded(self) -> _Scorer:
        if self._scorer is None:
            try:
                import sentence_transformers  # noqa: F401
            except ImportError:
                raise RerankFailed(
                    f"The reranker {self.name} needs a package that is not installed; run "
                    "`pip install 'agentic-rag[sentence-transformers]'`."
                ) from None
            try:
                self._scorer = _load(self._source)
            except RerankFailed:
                raise
            except Exception as error:  # the library, the hub and torch raise all kinds
                raise RerankFailed(
                    f"The reranker '{self._source}' cannot be loaded ({said(error)}); name a "
                    "folder with a cross-encoder, or one on the Hugging Face Hub that this "
                    "machine can reach."
                ) from None
        return self._scorer


def _load(source: str) -> _Scorer:
    from transformers import AutoConfig

    architectures = AutoConfig.from_pretrained(source).architectures or [""]
    if architectures[0].endswith("ForCausalLM"):
        return _YesOrNo(source)
    if not architectures[0].endswith("ForSequenceClassification"):
        raise RerankFailed(
            f"The model '{source}' is no reranker ({architectures[0] or 'of no known kind'}); name "
            "a cross-encoder such as BAAI/bge-reranker-v2-m3."
        )
    return _CrossEncoder(source)


class _CrossEncoder:
    """A model with a head of one number; its sigmoid is the score."""

    def __init__(self, source: str) -> None:
        from sentence_transformers import CrossEncoder

        self._model = CrossEncoder(source)
        if self._model.num_labels != 1:
            raise RerankFailed(
                f"The model '{source}' gives {self._model.num_labels} scores for a text, where a "
                "reranker gives one; name a cross-encoder such as BAAI/bge-reranker-v2-m3."
            )

    def scores(self, query: str, texts: Sequence[str], batch_size: int) -> list[float]:
        pairs = [(query, text) for text in texts]
        found = self._model.predict(pairs, batch_size=batch_size, show_progress_bar=False)
        return [float(score) for score in found]


class _YesOrNo:
    """A causal model whose next word is "yes" or "no"."""

    def __init__(self, source: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._words = AutoTokenizer.from_pretrained(source, padding_side="left")
        self._yes, self._no = self._only("yes", source), self._only("no", source)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = AutoModelForCausalLM.from_pretrained(source, dtype="auto").eval().to(device)
        self._before = self._words.encode(_QWEN_BEFORE, add_special_tokens=False)
        self._after = self._words.encode(_QWEN_AFTER, add_special_tokens=False)

    def _only(self, word: str, source: str) -> int:
        tokens: list[int] = self._words.encode(word, add_special_tokens=False)
        if len(tokens) != 1 or tokens[0] == self._words.unk_token_id:
            raise RerankFailed(
                f"The model '{source}' has no word '{word}' of its own, as Qwen3-Reranker has; "
                "name that, or a cross-encoder such as BAAI/bge-reranker-v2-m3."
            )
        return tokens[0]

    def scores(self, query: str, texts: Sequence[str], batch_size: int) -> list[float]:
        import torch

        found: list[float] = []
        for start in range(0, len(texts), batch_size):
            inputs = self._inputs(query, texts[start : start + batch_size])
            with torch.inference_mode():
                logits = self._model(**inputs, logits_to_keep=1).logits[:, -1].float()
            found += torch.sigmoid(logits[:, self._yes] - logits[:, self._no]).tolist()
        return found

    def _inputs(self, query: str, texts: Sequence[str]) -> Any:
        pairs = [f"<Instruct>: {_QWEN_TASK}\n<Query>: {query}\n<Document>: {t}" for t in texts]
        most = min(_LONGEST, self._words.model_max_length) - len(self._before) - len(self._after)
        encoded = self._words(pairs, truncation=True, max_length=most, add_special_tokens=False)
        whole = [self._before + tokens + self._after for tokens in encoded["input_ids"]]
        return self._words.pad({"input_ids": whole}, return_tensors="pt").to(self._model.device)
