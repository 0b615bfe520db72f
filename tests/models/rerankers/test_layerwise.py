"""The layer-wise reranker on small random models, built here in the form of the published ones.

What counts is how the layers are run: input, padding, layer, early exit. They know nothing.
"""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentic_rag.config import Rerank, Settings
from agentic_rag.models.reranker import RerankFailed, resolve_reranker
from agentic_rag.models.rerankers.layerwise import LayerwiseRanking, LayerwiseReranker

pytest.importorskip("torch", reason="the extra sentence-transformers is absent")

QUERY = "what is the fee"
TEXTS = [
    "The fee is twelve .",
    "敏感 个人 信息",
    "word the " * 30,
    "a",
    "the fee the fee",
    "fee \ud800\0 twelve",
    "twelve is the word",
]
TASK = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the "
    "query by providing a prediction of either 'Yes' or 'No'."
)
WORDS = ["<s>", "</s>", "<unk>", "\n", "A:", "B:", "Yes", "No", "the", "The", "fee", "is", "twelve"]
WORDS += ["word", "a", "what", ".", "敏感", "个人", "信息", *dict.fromkeys(TASK.split())]
WORDS = list(dict.fromkeys(WORDS))
LAYERS, FIRST = 6, 2  # as 40 and 8 of the published one
PUBLISHED: dict[str, Any] = {
    "architectures": ["LayerWiseMiniCPMForCausalLM"],
    "auto_map": {
        "AutoConfig": "configuration_minicpm_reranker.LayerWiseMiniCPMConfig",
        "AutoModelForCausalLM": "modeling_minicpm_reranker.LayerWiseMiniCPMForCausalLM",
    },
    "model_type": "minicpm",
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_scaling": None,
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "scale_emb": 12,
    "scale_depth": 1.4,
    "dim_model_base": 4,
    "start_layer": FIRST,
    "head_multi": True,
    "head_type": "simple",
    "tie_word_embeddings": True,
}


def tokenizer(folder: Path) -> None:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|[^\s]+"), "removed", invert=True)
    PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)  # no token to fill up with: some have none


def weights() -> dict[str, Any]:
    """Under the names of the published checkpoint."""
    import torch

    torch.manual_seed(5)
    size, inner, kv = 16, 24, 8
    made = {"model.embed_tokens.weight": torch.randn(len(WORDS), size) * 0.1}
    shapes = {"self_attn.q_proj": (size, size), "self_attn.k_proj": (kv, size)}
    shapes |= {"self_attn.v_proj": (kv, size), "self_attn.o_proj": (size, size)}
    shapes |= {"mlp.gate_proj": (inner, size), "mlp.up_proj": (inner, size)}
    shapes |= {"mlp.down_proj": (size, inner)}
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            made[f"model.layers.{layer}.{name}.weight"] = torch.randn(shape) * 0.5
        for name in ("input_layernorm", "post_attention_layernorm"):
            made[f"model.layers.{layer}.{name}.weight"] = 1 + torch.randn(size) * 0.2
    made["model.norm.weight"] = 1 + torch.randn(size) * 0.2
    for head in range(LAYERS - FIRST + 1):
        made[f"lm_head.{head}.linear_head.weight"] = torch.randn(1, size) * 0.7
    return made


def built(folder: Path, state: dict[str, Any] | None = None, **config: Any) -> Path:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(PUBLISHED | config))
    save_file(weights() if state is None else state, folder / "model.safetensors", {"format": "pt"})
    for name in ("configuration_minicpm_reranker", "modeling_minicpm_reranker"):
        (folder / f"{name}.py").write_text("raise SystemExit('code of the model was run')")
    return folder


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("models") / "tiny-minicpm-layerwise")


def reranker(folder: Path, **settings: Any) -> LayerwiseReranker:
    chosen = {"layer": LAYERS, "early_layer": 3, "batch_size": 16} | settings
    section = Rerank(model=f"layerwise:{folder}", **chosen)
    made = resolve_reranker(Settings(rerank=section), None)
    assert isinstance(made, LayerwiseReranker)
    return made


async def ranking(folder: Path, texts: list[str] = TEXTS, **settings: Any) -> LayerwiseRanking:
    return await reranker(folder, **settings).ranking(QUERY, texts)


def by_index(found: LayerwiseRanking) -> list[float]:
    return [one.score for one in sorted(found.ranked, key=lambda one: one.index)]


def inputs(folder: Path, query: str = QUERY, texts: list[str] = TEXTS) -> list[list[int]]:
    """As FlagEmbedding and EasyRAG lay them out."""
    from transformers import PreTrainedTokenizerFast

    words = PreTrainedTokenizerFast.from_pretrained(folder)

    def tokens(text: str) -> list[int]:
        found: list[int] = words.encode(text, add_special_tokens=False)
        return found

    clean = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
    between = tokens("\n")
    assert between == [WORDS.index("\n")]
    before = [0, *tokens(f"A: {query}"), *between]
    return [[*before, *tokens(f"B: {text}"), *between, *tokens(TASK)] for text in clean]


def plain(batch: list[list[int]], layer: int) -> list[float]:
    """The whole model run at once, cut at `layer`: transformers' own forward, and the head."""
    import torch
    from transformers import GraniteConfig, GraniteModel

    config = GraniteConfig(
        **{k: v for k, v in PUBLISHED.items() if k in ("vocab_size", "hidden_size")},
        intermediate_size=24,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
        embedding_multiplier=12,
        residual_multiplier=1.4 / math.sqrt(LAYERS),
        attention_multiplier=0.5,  # 4 ** -0.5
    )
    model = GraniteModel(config).eval()
    state = weights()
    model.load_state_dict({k[6:]: v for k, v in state.items() if k.startswith("model.")})
    model.config.num_hidden_layers = layer
    width = max(map(len, batch))
    padded = torch.tensor([[*one, *[0] * (width - len(one))] for one in batch])
    with torch.no_grad():
        hidden = model(input_ids=padded).last_hidden_state
        ends = hidden[torch.arange(len(batch)), torch.tensor([len(one) - 1 for one in batch])]
        head = state[f"lm_head.{layer - FIRST}.linear_head.weight"]
        found: list[float] = torch.nn.functional.linear(ends, head)[:, 0].tolist()
    return found


def by_definition(one: list[int], layer: int) -> float:
    """MiniCPM as its paper and its code define it, written out for one text."""
    import torch

    state = weights()
    count, heads, kv, size = len(one), 4, 2, 4
    angles = torch.outer(torch.arange(count).float(), 10000.0 ** (-torch.arange(0, size, 2) / size))
    cos, sin = (torch.cat([part, part], 1) for part in (angles.cos(), angles.sin()))

    def norm(x: Any, name: str) -> Any:
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * state[f"{name}.weight"]

    def turned(x: Any) -> Any:
        return x * cos + torch.cat([-x[..., size // 2 :], x[..., : size // 2]], -1) * sin

    x = state["model.embed_tokens.weight"][torch.tensor(one)] * 12
    for number in range(layer):
        at = f"model.layers.{number}"
        y = norm(x, f"{at}.input_layernorm")
        q, k, v = (
            (y @ state[f"{at}.self_attn.{n}_proj.weight"].T).view(count, h, size).transpose(0, 1)
            for n, h in (("q", heads), ("k", kv), ("v", kv))
        )
        k, v = (part.repeat_interleave(heads // kv, 0) for part in (turned(k), v))
        looks = turned(q) @ k.transpose(1, 2) / math.sqrt(size)
        looks = looks.masked_fill(torch.ones(count, count).triu(1).bool(), -math.inf).softmax(-1)
        out = (looks @ v).transpose(0, 1).reshape(count, -1)
        x = x + out @ state[f"{at}.self_attn.o_proj.weight"].T * 1.4 / math.sqrt(LAYERS)
        y = norm(x, f"{at}.post_attention_layernorm")
        gate = torch.nn.functional.silu(y @ state[f"{at}.mlp.gate_proj.weight"].T)
        y = (gate * (y @ state[f"{at}.mlp.up_proj.weight"].T)) @ state[
            f"{at}.mlp.down_proj.weight"
        ].T
        x = x + y * 1.4 / math.sqrt(LAYERS)
    end = norm(x[-1], "model.norm")
    return float(end @ state[f"lm_head.{layer - FIRST}.linear_head.weight"][0])


@pytest.mark.parametrize("layer", [2, 4, 6])
async def test_without_exit_it_is_the_plain_model_bit_for_bit(layered: Path, layer: int) -> None:
    wanted = plain(inputs(layered), layer)
    found = await ranking(layered, layer=layer)
    assert by_index(found) == wanted
    assert [one.index for one in found.ranked] == sorted(
        range(len(TEXTS)), key=lambda index: -wanted[index]
    )
    assert (found.layer, found.layer_steps) == (layer, layer * len(TEXTS))
    alone = await ranking(layered, layer=layer, batch_size=1)
    assert by_index(alone) == [plain([one], layer)[0] for one in inputs(layered)]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 16])
@pytest.mark.parametrize("layer", [2, 5, 6])
async def test_scores_are_those_of_the_paper_whatever_the_batch(
    layered: Path, layer: int, batch_size: int
) -> None:
    found = by_index(await ranking(layered, layer=layer, batch_size=batch_size))
    wanted = [by_definition(one, layer) for one in inputs(layered)]
    assert found == pytest.approx(wanted, abs=1e-4)
    assert len({round(score, 3) for score in wanted}) > 4  # it does tell texts apart


async def test_layers_above_the_cut_are_not_even_read(layered: Path) -> None:
    made = reranker(layered, layer=4)
    await made.rerank(QUERY, TEXTS)
    assert made._model is not None
    assert len(made._model.decoder.layers) == 4
    assert sorted(made._model.heads) == [2, 3, 4]


@pytest.mark.parametrize("rule", ["maximum", "entropy"])
@pytest.mark.parametrize("batch_size", [3, 16])
async def test_exit_gives_the_early_layers_scores_or_the_full_models(
    layered: Path, rule: str, batch_size: int
) -> None:
    always, never = (0.0, 1.0) if rule == "maximum" else (1.0, 0.0)
    settings = {"exit": rule, "batch_size": batch_size}
    early = await ranking(layered, exit_threshold=always, **settings)
    assert early == await ranking(layered, layer=3, batch_size=batch_size)
    assert (early.layer, early.layer_steps) == (3, 3 * len(TEXTS))
    full = await ranking(layered, exit_threshold=never, **settings)
    assert full == await ranking(layered, batch_size=batch_size)
    assert (full.layer, full.layer_steps) == (LAYERS, LAYERS * len(TEXTS))


@pytest.mark.parametrize("rule", ["maximum", "entropy"])
async def test_the_first_batch_alone_decides_for_all(layered: Path, rule: str) -> None:
    """The first as given, which the search before thought best."""
    scores = plain(inputs(layered)[:3], 3)
    weights = [math.exp(score) for score in scores]
    parts = [weight / sum(weights) for weight in weights]
    entropy = -sum(part * math.log(part) for part in parts) / math.log(3)
    measure = max(parts) if rule == "maximum" else entropy
    settings = {"exit": rule, "batch_size": 3}
    below = await ranking(layered, exit_threshold=measure - 1e-5, **settings)
    above = await ranking(layered, exit_threshold=measure + 1e-5, **settings)
    early, full = (below, above) if rule == "maximum" else (above, below)
    assert (early.layer, full.layer) == (3, LAYERS)
    assert by_index(early)[:3] == scores
    assert by_index(full)[:3] == plain(inputs(layered)[:3], LAYERS)


async def test_layers_are_run_once_and_counted(layered: Path) -> None:
    """Each layer's calls counted by torch itself, in texts."""
    for rule, layers in (("maximum", 3), ("entropy", LAYERS)):
        made = reranker(layered, exit=rule, exit_threshold=0.0, batch_size=2)
        await made.rerank(QUERY, ["loads"])
        assert made._model is not None
        ran = [0] * LAYERS

        def counter(layer: int, ran: list[int] = ran) -> Callable[..., None]:
            def count(module: object, given: tuple[Any, ...], output: object) -> None:
                ran[layer] += len(given[0])

            return count

        hooks = [
            block.register_forward_hook(counter(number))
            for number, block in enumerate(made._model.decoder.layers)
        ]
        found = await made.ranking(QUERY, TEXTS)
        for hook in hooks:
            hook.remove()
        assert ran == [len(TEXTS)] * layers + [0] * (LAYERS - layers)
        assert found.layer_steps == sum(ran)


async def test_the_rest_is_batched_by_length(layered: Path) -> None:
    made = reranker(layered, batch_size=2)
    await made.rerank(QUERY, ["loads"])
    assert made._model is not None
    shapes: list[tuple[int, int]] = []
    hook = made._model.decoder.layers[0].register_forward_hook(
        lambda module, given, output: shapes.append(tuple(given[0].shape[:2]))
    )
    await made.rerank(QUERY, TEXTS)
    hook.remove()
    lengths = [len(one) for one in inputs(layered)]
    rest = sorted(lengths[2:])
    assert shapes == [(2, max(lengths[:2])), (2, rest[1]), (2, rest[3]), (1, rest[4])]


async def test_long_queries_and_texts_are_cut_and_the_task_is_kept(layered: Path) -> None:
    made = reranker(layered, max_tokens=64)
    await made.rerank(QUERY, ["loads"])
    assert made._model is not None
    (both,) = made._model.inputs("what " * 500, ["fee " * 500], 64)
    (task,) = made._model._tokens([f"\n{TASK}"])
    assert both[64:] == task
    told = " ".join(WORDS[token] for token in both[:64])
    assert told == " ".join(["<s> A:", *["what"] * 47, "\n B:", *["fee"] * 13])
    short = await made.rerank(QUERY, ["word " * 5_000, "fee"])
    assert {one.index for one in short} == {0, 1}


async def test_queries_at_once_and_the_event_loop_do_not_disturb_each_other(layered: Path) -> None:
    made = reranker(layered, exit="maximum")
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    found = await asyncio.gather(*(made.ranking(QUERY, TEXTS) for _ in range(3)))
    heart.cancel()
    assert found[0] == found[1] == found[2]
    assert beats > 10


def yes_or_no(folder: Path, family: str, **more: Any) -> Path:
    import torch
    import transformers

    torch.manual_seed(3)
    shared: dict[str, Any] = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 32,
        "initializer_range": 0.5,
        "bos_token_id": 0,
        "pad_token_id": None,
    }
    config = getattr(transformers, f"{family}Config")(**shared | more)
    getattr(transformers, f"{family}ForCausalLM")(config).eval().save_pretrained(folder)
    tokenizer(folder)
    return folder


@pytest.mark.parametrize("family", ["Llama", "Qwen3", "Gemma", "Mistral"])
async def test_a_model_that_says_yes_is_run_whole(family: str, tmp_path: Path) -> None:
    import torch
    import transformers

    folder = yes_or_no(tmp_path / family, family)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    yes = WORDS.index("Yes")
    with torch.no_grad():
        runs = [model(torch.tensor([one]), output_hidden_states=True) for one in inputs(folder)]
    found = await ranking(folder, layer=28)
    assert (found.layer, found.layer_steps) == (4, 4 * len(TEXTS))
    wanted = [float(run.logits[0, -1, yes]) for run in runs]
    assert by_index(found) == pytest.approx(wanted, abs=1e-4)
    # Left early, it is read through its last layer's head.
    early = await ranking(folder, layer=28, early_layer=2, exit="maximum", exit_threshold=0)
    assert (early.layer, early.layer_steps) == (2, 2 * len(TEXTS))
    with torch.no_grad():
        wanted = [
            float(model.lm_head(model.model.norm(run.hidden_states[2]))[0, -1, yes]) for run in runs
        ]
    assert by_index(early) == pytest.approx(wanted, abs=1e-4)


async def refused(folder: Path | str, **settings: Any) -> str:
    section = Rerank(model=f"layerwise:{folder}", **{"layer": LAYERS, "early_layer": 3} | settings)
    made = resolve_reranker(Settings(rerank=section), None)
    assert made is not None
    with pytest.raises(RerankFailed) as caught:
        await made.rerank(QUERY, TEXTS)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_what_cannot_be_used_is_one_clear_sentence(layered: Path, tmp_path: Path) -> None:
    assert "rerank.layer is 28, but" in await refused(layered, layer=28)
    assert "can be read at layers 2 to 6; set one" in await refused(layered, layer=1)
    early = await refused(layered, exit="maximum", early_layer=1)
    assert "rerank.early_layer is 1, but" in early
    state = weights()
    del state["lm_head.4.linear_head.weight"]
    message = await refused(built(tmp_path / "part", state))
    assert "is not whole: 1 of its weights are missing, such as lm_head.4" in message
    assert "other heads or positions" in await refused(built(tmp_path / "raw", head_type="raw"))
    other = built(tmp_path / "other", model_type="cost_wise_gemma")
    assert "needs code that comes with it, which is not run" in await refused(other)
    (tmp_path / "nothing").mkdir()
    assert "cannot be loaded" in await refused(tmp_path / "nothing")
    assert "cannot be loaded" in await refused(str(tmp_path / "absent"))
    assert "Gemma2ForCausalLM does not" in await refused(yes_or_no(tmp_path / "gemma2", "Gemma2"))
    scaled = yes_or_no(tmp_path / "scaled", "Granite", logits_scaling=2.0)
    assert "(GraniteForCausalLM) cannot be run layer by layer" in await refused(scaled)
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "bert"}')
    tokenizer(encoder)
    assert "cannot be loaded" in await refused(encoder)
    muted = yes_or_no(tmp_path / "muted", "Llama")
    path = muted / "tokenizer.json"
    path.write_text(path.read_text().replace('"Yes"', '"Yeah"'))
    assert "has no word 'Yes'" in await refused(muted)
