"""Models of sentence-transformers: tiny ones of the architectures in use, built here at random.

What counts is how they are driven: prompts, pooling, length of vectors, order. They find nothing.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentic_rag.config import Embedding, Settings
from agentic_rag.knowledge_base import KnowledgeBase
from agentic_rag.models.embedder import Embedder, resolve_embedder
from agentic_rag.models.embedders.resolve import resolve
from agentic_rag.models.embedders.watched import EmbedderUnavailable

pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is absent")

TEXTS = ["The fee is twelve.", "敏感个人信息", "word " * 50, "a", "\ud800 lone\0"]
WIDTH = 16


def tokenizer(folder: Path) -> None:
    """A word-level tokenizer that knows a few words; every other is unknown."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", "the", "The", "fee", "is", "twelve", "word", "a"]
    words += ["Instruct", ":", "Query", "query", "passage", ".", "web", "search", "relevant"]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=128,
    ).save_pretrained(folder)


def build(folder: Path, architecture: str, pooling: str, prompts: dict[str, str]) -> Path:
    """A model of `architecture` with random weights, saved as sentence-transformers saves one."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    except ImportError:  # before version 6
        from sentence_transformers.models import Pooling, Transformer

    torch.manual_seed(1)
    shared: dict[str, Any] = {
        "vocab_size": 32,
        "hidden_size": WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 140,
        "pad_token_id": 1,
    }
    if architecture != "XLMRoberta":
        shared |= {"num_key_value_heads": 2}
    if architecture == "Qwen3":
        shared |= {"head_dim": 8}
    config = getattr(transformers, f"{architecture}Config")(**shared)
    base = folder / "base"
    getattr(transformers, f"{architecture}Model")(config).save_pretrained(base)
    tokenizer(base)
    first = Transformer(str(base), max_seq_length=128)
    model = SentenceTransformer(
        modules=[first, Pooling(WIDTH, pooling_mode=pooling)], prompts=prompts, device="cpu"
    )
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    resolve.cache_clear()

    def made(name: str, architecture: str, pooling: str, **prompts: str) -> Path:
        folder = tmp_path / name
        built = build(tmp_path / f"{name}-build", architecture, pooling, prompts)
        built.rename(folder)
        return folder

    return made


def embedder_of(folder: Path, **settings: Any) -> Embedder:
    return resolve_embedder(Embedding(model=f"sentence-transformers:{folder}", **settings))


def by_hand(folder: Path, texts: list[str], pooling: str) -> np.ndarray[Any, Any]:
    """The vectors as the model's paper has them, one text at a time, without the library."""
    import torch
    import transformers

    inner = transformers.AutoModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text in texts:
        with torch.no_grad():
            states = inner(**words(text, return_tensors="pt", truncation=True, max_length=128))
        state = states.last_hidden_state[0][0 if pooling == "cls" else -1]
        found.append((state / state.norm()).numpy())
    return np.array(found)


TASK = "Given a web search query, retrieve relevant passages that answer the query"
MODELS = [
    # BGE-M3 pools the first token and asks for nothing; the others pool the last one.
    ("bge-m3", "XLMRoberta", "cls", {}, "", ""),
    ("Qwen3-Embedding-0.6B", "Qwen3", "lasttoken", {}, f"Instruct: {TASK}\nQuery:", ""),
    ("gte-Qwen2-1.5B-instruct", "Qwen2", "lasttoken", {}, f"Instruct: {TASK}\nQuery: ", ""),
    ("multilingual-e5-small", "XLMRoberta", "cls", {}, "query: ", "passage: "),
    # What a model says itself counts before what is known for its name.
    ("e5-own", "XLMRoberta", "cls", {"query": "web: ", "document": "a: "}, "web: ", "a: "),
]


@pytest.mark.parametrize(
    ("name", "architecture", "pooling", "own", "query", "passage"),
    MODELS,
    ids=[m[0] for m in MODELS],
)
def test_each_architecture_is_driven_as_its_model_asks(
    made: Callable[..., Path],
    name: str,
    architecture: str,
    pooling: str,
    own: dict[str, str],
    query: str,
    passage: str,
) -> None:
    folder = made(name, architecture, pooling, **own)
    embedder = embedder_of(folder)
    texts = TEXTS[:4]

    vectors = embedder.embed_passages(texts)

    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(
        by_hand(folder, [passage + text for text in texts], pooling), abs=1e-4
    )
    assert embedder.embed_query(texts[0]) == pytest.approx(
        by_hand(folder, [query + texts[0]], pooling)[0], abs=1e-4
    )
    assert embedder.dimensions == WIDTH


def test_any_text_gets_a_unit_vector_whatever_stands_beside_it(made: Callable[..., Path]) -> None:
    embedder = embedder_of(made("m", "Qwen3", "lasttoken"), batch_size=3)
    together = embedder.embed_passages(TEXTS)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-4)
    alone = np.array([embedder.embed_passages([text])[0] for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-4)


def test_settings_replace_prompts_and_cut_vectors(made: Callable[..., Path]) -> None:
    folder = made("e5-x", "XLMRoberta", "cls")
    plain = embedder_of(folder, query_prompt="", passage_prompt="")
    assert plain.embed_query("a") == pytest.approx(plain.embed_passages(["a"])[0], abs=1e-6)
    short = embedder_of(folder, dimensions=8)
    assert short.dimensions == 8
    vectors = short.embed_passages(["a", "The fee"])
    assert vectors.shape == (2, 8)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-4)
    with pytest.raises(EmbedderUnavailable, match=r"16 dimensions and 99"):
        embedder_of(folder, dimensions=99).embed_query("a")


def test_a_folder_is_known_by_its_weights_not_by_its_place(
    made: Callable[..., Path], tmp_path: Path
) -> None:
    folder = made("bge-m3", "XLMRoberta", "cls")
    name = embedder_of(folder).name
    assert name.startswith("sentence-transformers:bge-m3@")
    (tmp_path / "elsewhere").mkdir()
    moved = folder.rename(tmp_path / "elsewhere" / "bge-m3")
    assert embedder_of(moved).name == name
    resolve.cache_clear()
    weights = next(moved.glob("*.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert embedder_of(moved).name != name


def test_a_knowledge_base_is_made_and_searched_with_one(
    made: Callable[..., Path], tmp_path: Path
) -> None:
    settings = Settings(
        embedding={"model": f"sentence-transformers:{made('m', 'Qwen3', 'lasttoken')}"}
    )
    kb = KnowledgeBase.open(tmp_path / "kb", settings=settings)
    (tmp_path / "a.txt").write_text("The fee is twelve. 费用是十二元。")
    assert kb.add(tmp_path / "a.txt").added
    assert kb.status().dimensions == WIDTH
    assert kb.semantic_search("the fee").hits


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded") as error:
        embedder_of(tmp_path / "empty").embed_query("a")
    assert "\n" not in str(error.value)
    assert json.dumps(str(error.value))
