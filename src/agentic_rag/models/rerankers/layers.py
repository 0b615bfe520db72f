"""A decoder-only reranker run layer by layer, for `layerwise`; needs torch and transformers.

Two kinds of checkpoint are read, and no code that comes with one is ever run:

- `bge-reranker-v2-minicpm-layerwise`: MiniCPM (arXiv 2404.06395) with a head of one number for
  each layer from `start_layer` on. MiniCPM is Llama with three scales, and so is `Granite` of
  transformers, which stands in for it.
- a causal language model trained to say "Yes": its one head, at its last layer, reads every layer.

Inputs are filled up on the right. A decoder looks back only, so the last token of an input never
sees what stands behind it: no mask is needed, and a score does not depend on its batch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, GraniteConfig, PretrainedConfig
from transformers.models.granite.modeling_granite import GraniteModel, GranitePreTrainedModel

from agentic_rag.models.reranker import RerankFailed

# The input of the BGE rerankers, to the letter of FlagEmbedding's and EasyRAG's code.
_TASK = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the "
    "query by providing a prediction of either 'Yes' or 'No'."
)
_BETWEEN = "\n"
_LIKE_GRANITE = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "attention_bias",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "start_layer",
)


@dataclass(slots=True)
class Passages:
    """A batch on its way: its hidden states after `layer` layers, carried on and never redone."""

    hidden: Tensor
    positions: Tensor
    rotary: Any
    last: Tensor  # where the last token of each input is
    layer: int = 0


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """A decoder cut at layer `depth`, and the weights that give a score at each layer that has
    some."""

    decoder: Any
    heads: dict[int, Tensor]
    depth: int
    tokenizer: Any

    def inputs(self, query: str, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
        """The tokens of each text, with the query before and the task behind it; query and text
        are cut to `max_tokens` together, the query to three quarters of that."""
        config, words = self.decoder.config, self.tokenizer
        task = self._tokens([_BETWEEN])[0] + self._tokens([_TASK])[0]
        # Within its window, a layer that slides sees all.
        limits = (config.max_position_embeddings, getattr(config, "sliding_window", None))
        most = min(max_tokens, *(limit - len(task) for limit in limits if limit))
        start = [] if words.bos_token_id is None else [words.bos_token_id]
        start += self._tokens([f"A: {query}"])[0][: max(most * 3 // 4, 0)]
        start += self._tokens([_BETWEEN])[0]
        room = max(most - len(start), 0)
        return [start + tokens[:room] + task for tokens in self._tokens([f"B: {t}" for t in texts])]

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return found

    def begin(self, inputs: Sequence[Sequence[int]]) -> Passages:
        """A batch of inputs before the first layer."""
        decoder = self.decoder
        width = max(map(len, inputs))
        filled = [[*tokens, *[0] * (width - len(tokens))] for tokens in inputs]
        positions = torch.arange(width, device=decoder.device).unsqueeze(0)
        last = torch.tensor([len(tokens) - 1 for tokens in inputs], device=decoder.device)
        with torch.inference_mode():
            hidden = decoder.embed_tokens(torch.tensor(filled, device=decoder.device))
            hidden = hidden * getattr(decoder, "embedding_multiplier", 1)
            return Passages(hidden, positions, decoder.rotary_emb(hidden, positions), last)

    def run(self, passages: Passages, layer: int) -> int:
        """Takes `passages` on until `layer` layers are done; gives how many layers were run, times
        how many inputs."""
        before = passages.layer
        for block in self.decoder.layers[before:layer]:
            with torch.inference_mode():
                given = block(
                    passages.hidden,
                    attention_mask=None,  # sdpa looks back only by itself
                    position_ids=passages.positions,
                    position_embeddings=passages.rotary,
                )
            passages.hidden = given[0] if isinstance(given, tuple) else given
            passages.layer += 1
        return (passages.layer - before) * len(passages.last)

    def scores(self, passages: Passages) -> list[float]:
        """The score of each input by the head of the layer that `passages` have come to."""
        rows = torch.arange(len(passages.last), device=passages.hidden.device)
        with torch.inference_mode():
            ends = self.decoder.norm(passages.hidden[rows, passages.last])
            found = nn.functional.linear(ends, self.heads[passages.layer])[:, 0]
        return [float(score) for score in found.tolist()]


def load(source: str, layer: int, early: int | None) -> LayeredModel:
    """The reranker at `source` (a folder, or a name on the Hugging Face Hub) cut at `layer`, to be
    read at layer `early` too if that is given. A yes-or-no model is not cut.

    In bfloat16 on CUDA, as EasyRAG has it, and in float32 on a CPU. Raises RerankFailed, and
    whatever transformers raises.
    """
    config, _ = PretrainedConfig.get_config_dict(source)
    if config.get("model_type") == "minicpm" and "start_layer" in config:
        return _layerwise(source, config, layer, early)
    if "auto_map" in config:
        raise RerankFailed(
            f"The model '{source}' needs code that comes with it, which is not run; name "
            "BAAI/bge-reranker-v2-minicpm-layerwise, or a model that transformers knows."
        )
    return _yes_or_no(source, early)


class _Head(nn.Module):
    """Named as in the checkpoint."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear_head = nn.Linear(size, 1, bias=False)


class _LayerwiseMiniCPM(GranitePreTrainedModel):
    """The layers of the checkpoint up to `config.num_hidden_layers`, and the heads of these."""

    _keys_to_ignore_on_load_unexpected = (r"model\.layers\.", r"lm_head\.")  # those above

    def __init__(self, config: GraniteConfig) -> None:
        super().__init__(config)
        self.model = GraniteModel(config)
        heads = config.num_hidden_layers - config.start_layer + 1
        self.lm_head = nn.ModuleList(_Head(config.hidden_size) for _ in range(heads))
        self.post_init()


def _layerwise(source: str, config: dict[str, Any], layer: int, early: int | None) -> LayeredModel:
    first, last = config["start_layer"], config["num_hidden_layers"]
    _within(layer, "rerank.layer", first, last, source)
    if early is not None:
        _within(early, "rerank.early_layer", first, last, source)
    simple = config.get("head_type", "simple") == "simple" and config.get("head_multi", True)
    if not simple or config.get("rope_scaling"):
        raise RerankFailed(
            f"The model '{source}' has other heads or positions than "
            "BAAI/bge-reranker-v2-minicpm-layerwise and cannot be used; name that one."
        )
    model = _whole(_LayerwiseMiniCPM, source, config=_as_granite(config, layer))
    heads = {first + i: head.linear_head.weight for i, head in enumerate(model.lm_head)}
    words = AutoTokenizer.from_pretrained(source, config=model.config)
    return LayeredModel(model.model, heads, layer, words)


def _as_granite(config: dict[str, Any], depth: int) -> GraniteConfig:
    """MiniCPM's scales by Granite's names. What a layer adds is scaled by how many layers the whole
    model has, also where it is cut."""
    return GraniteConfig(
        **{name: config[name] for name in _LIKE_GRANITE if name in config},
        num_hidden_layers=depth,
        rope_theta=config.get("rope_theta", 10000.0),
        embedding_multiplier=config.get("scale_emb", 1),
        residual_multiplier=config.get("scale_depth", 1) / math.sqrt(config["num_hidden_layers"]),
        attention_multiplier=(config["hidden_size"] // config["num_attention_heads"]) ** -0.5,
        tie_word_embeddings=False,
    )


def _yes_or_no(source: str, early: int | None) -> LayeredModel:
    words = AutoTokenizer.from_pretrained(source)
    model = _whole(AutoModelForCausalLM, source)
    depth = model.config.num_hidden_layers
    if early is not None:
        _within(early, "rerank.early_layer", 1, depth - 1, source)
    yes = words("Yes", add_special_tokens=False)["input_ids"][:1]
    if not yes or yes[0] == words.unk_token_id:
        raise RerankFailed(
            f"The model '{source}' has no word 'Yes', which such a reranker says; name one that "
            "was trained to, such as BAAI/bge-reranker-v2-gemma."
        )
    head = model.get_output_embeddings().weight[yes].detach()
    made = LayeredModel(model.get_decoder(), dict.fromkeys(range(1, depth + 1), head), depth, words)
    if not _same(made, lambda tokens: float(model(tokens).logits[0, -1, yes[0]])):
        raise RerankFailed(
            f"The model '{source}' ({type(model).__name__}) cannot be run layer by layer; name "
            "another, or use it with 'sentence-transformers:' or behind a server."
        )
    return made


def _same(made: LayeredModel, own_score: Callable[[Tensor], float]) -> bool:
    """Whether layers run one by one give what the model gives when it is run as it is."""
    inputs = made.inputs("?", ["", "."], 16)
    try:
        passages = made.begin(inputs)
        made.run(passages, made.depth)
        found = made.scores(passages)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
        return False
    with torch.inference_mode():
        own = [own_score(torch.tensor([one], device=made.decoder.device)) for one in inputs]
    near = 0.05 if made.decoder.dtype == torch.bfloat16 else 1e-4
    return all(
        math.isclose(a, b, rel_tol=near, abs_tol=near) for a, b in zip(found, own, strict=True)
    )


def _whole(kind: Any, source: str, **more: Any) -> Any:
    """The model of `kind`, ready to run, with none of its weights made up at random."""
    cuda = torch.cuda.is_available()
    model, report = kind.from_pretrained(
        source,
        dtype=torch.bfloat16 if cuda else torch.float32,
        attn_implementation="sdpa",
        output_loading_info=True,
        **more,
    )
    if missing := sorted(report["missing_keys"]):
        raise RerankFailed(
            f"The model '{source}' is not whole: {len(missing)} of its weights are missing, such "
            f"as {missing[0]}; download it again."
        )
    return model.eval().to("cuda" if cuda else "cpu")


def _within(wanted: int, setting: str, first: int, last: int, source: str) -> None:
    if not first <= wanted <= last:
        raise RerankFailed(
            f"{setting} is {wanted}, but '{source}' can be read at layers {first} to {last}; set "
            "one of these."
        )
