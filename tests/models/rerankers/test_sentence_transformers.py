"""Cross-encoders of sentence-transformers: tiny ones of both kinds, built here at random.

What counts is how they are driven: prompt, batches, order, threads. They know nothing.
"""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Rerank, Settings
from agentic_rag.models.reranker import Reranker, RerankFailed, resolve_reranker

pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is absent")

TEXTS = ["The fee is twelve.", "敏感 个人 信息", "word " * 50, "a", "the fee the fee", "\ud800\0"]
QUERY = "what is the fee"
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "the", "The", "fee", "is", "twelve", "word", "a"]
WORDS += ["yes", "no", "Query", "Document", "Instruct", ":", "<", ">", "|", "what", ".", "think"]


def tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=512,
    ).save_pretrained(folder)


def built(folder: Path, architecture: str, **more: Any) -> Path:
    """A model of `architecture` with random weights of some size, so that scores differ."""
    import torch
    import transformers

    torch.manual_seed(3)
    family = architecture.partition("For")[0].removesuffix("Model")
    shared: dict[str, Any] = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 520,
        "pad_token_id": 1,
        "initializer_range": 0.5,
    }
    if family == "Qwen3":
        shared |= {"num_key_value_heads": 2, "head_dim": 8}
    config = getattr(transformers, f"{family}Config")(**shared, **more)
    getattr(transformers, architecture)(config).eval().save_pretrained(folder)
    tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-bge-reranker"
    return built(folder, "XLMRobertaForSequenceClassification", num_labels=1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("models") / "Qwen3-Reranker-tiny", "Qwen3ForCausalLM")


def reranker(folder: Path | str, batch_size: int = 16) -> Reranker:
    section = Rerank(model=f"sentence-transformers:{folder}", batch_size=batch_size)
    made = resolve_reranker(Settings(rerank=section), None)
    assert made is not None
    return made


def clean(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def bge_by_hand(folder: Path, query: str, text: str) -> float:
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        pair = words(query, clean(text), return_tensors="pt", truncation=True)
        return float(torch.sigmoid(model(**pair).logits[0, 0]))


def qwen_by_hand(folder: Path, query: str, text: str) -> float:
    """As on the model card: softmax over "no" and "yes", one text at a time, so without padding."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    before = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
        'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
        "<|im_start|>user\n"
    )
    task = "Given a web search query, retrieve relevant passages that answer the query"
    inner = f"<Instruct>: {task}\n<Query>: {query}\n<Document>: {clean(text)}"
    after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ids: list[int] = []
    for piece in (before, inner, after):
        ids += words.encode(piece, add_special_tokens=False)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1]
    yes, no = words.convert_tokens_to_ids("yes"), words.convert_tokens_to_ids("no")
    return float(torch.softmax(logits[[no, yes]], dim=0)[1])


@pytest.mark.parametrize("batch_size", [1, 2, 16])
@pytest.mark.parametrize("kind", ["bge", "qwen"])
async def test_scores_are_the_models_own_whatever_the_batch(
    kind: str, batch_size: int, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    by_hand = bge_by_hand if kind == "bge" else qwen_by_hand
    wanted = [by_hand(folder, QUERY, text) for text in TEXTS]
    ranked = await reranker(folder, batch_size).rerank(QUERY, TEXTS)
    assert sorted(one.index for one in ranked) == list(range(len(TEXTS)))
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    for one in ranked:
        assert one.score == pytest.approx(wanted[one.index], abs=1e-4)
    assert len({round(one.score, 4) for one in ranked}) > 3  # it does tell texts apart


async def test_a_text_longer_than_the_model_takes_is_cut_and_not_refused(
    bge: Path, qwen: Path
) -> None:
    for folder in (bge, qwen):
        ranked = await reranker(folder).rerank(QUERY, ["word " * 2_000, "fee"])
        assert {one.index for one in ranked} == {0, 1}


async def test_no_texts_load_nothing() -> None:
    assert await reranker("/no/such/folder").rerank(QUERY, []) == []


async def test_the_event_loop_goes_on_while_a_model_works(bge: Path) -> None:
    made = reranker(bge)
    seen: set[int] = set()

    async def beat() -> None:
        while True:
            seen.add(threading.get_ident())
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    found = await asyncio.gather(*(made.rerank(QUERY, TEXTS) for _ in range(3)))
    heart.cancel()
    assert found[0] == found[1] == found[2]
    assert seen == {threading.get_ident()}


async def test_what_is_no_reranker_is_one_clear_sentence(tmp_path: Path) -> None:
    many = built(tmp_path / "many", "XLMRobertaForSequenceClassification", num_labels=3)
    with pytest.raises(RerankFailed, match="gives 3 scores for a text, where a reranker gives one"):
        await reranker(many).rerank(QUERY, TEXTS)
    encoder = built(tmp_path / "encoder", "XLMRobertaModel")
    with pytest.raises(RerankFailed, match=r"is no reranker \(XLMRobertaModel\)"):
        await reranker(encoder).rerank(QUERY, TEXTS)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(RerankFailed, match="cannot be loaded") as caught:
        await reranker(tmp_path / "nothing").rerank(QUERY, TEXTS)
    assert "\n" not in str(caught.value)
