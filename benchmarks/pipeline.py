"""What each part of the pipeline brings and costs: recall of its routes, time of its accelerations.

`python benchmarks/pipeline.py` takes hotpotqa, musique and laws under --data, each article of the
laws a chunk. Recall: each route alone, each way of putting them together, and with `--hyde N` a
hypothetical answer by `--model` for the first N questions of each corpus. Time: compression on and
off, BM25 by bm25s and by a plain loop, and where torch is there the layer-wise reranker with and
without early exit, on a small random model of the architecture (its layer-steps, not its order).
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.table import Table

from agentic_rag.config import Pipeline, Search, Settings
from agentic_rag.knowledge_base import Snapshot
from agentic_rag.models.chat import resolve_chat_model
from agentic_rag.retrieval.coarse import Candidate, Coarse, coarse, fused, fused_by_score, merged
from agentic_rag.retrieval.compression import bm25_extract
from agentic_rag.strategies.pipeline.expanding import expand
from agentic_rag.strategies.pipeline.parts import opened
from agentic_rag.strategies.question import Question
from agentic_rag.text.tokens import count_tokens
from agentic_rag.text.words import words
from benchmarks.metrics import mean, recall
from benchmarks.places import default_settings, parser, say
from benchmarks.timing import print_table
from benchmarks.workflow import Asked, Corpus, corpora

_CUTS = (1, 6, 10)
_TIMED = 40  # questions


def main() -> None:
    options = _options()
    settings = default_settings().model_copy(
        update={"model": options.model or "none", "pipeline": Pipeline()}
    )
    found = [
        corpus
        for corpus in corpora(options.data, options.work.absolute() / "quality")
        if corpus.name != "laws, by number"
    ]
    if not found:
        return
    print_table(_recalls(found, settings, options))
    print_table(_compression(found, settings))
    print_table(_bm25(found))
    print_table(_early_exit())


def _options() -> argparse.Namespace:
    made = parser("Measures what each part of the pipeline brings and costs.")
    made.add_argument("--model", default="", help="a chat model that writes hypothetical answers")
    made.add_argument(
        "--hyde", type=int, default=0, metavar="N", help="questions to write them for"
    )
    return made.parse_args()


def _table(title: str, first: Sequence[str], rest: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in first:
        table.add_column(column)
    for column in rest:
        table.add_column(column, justify="right")
    return table


# -- recall -----------------------------------------------------------------------------------

Order = Callable[[Coarse], Sequence[Candidate]]


def _orders(k: int) -> dict[str, Order]:
    def route(place: int) -> Order:
        return lambda found: found.routes[place].candidates

    return {
        "sparse: words, then paths": route(0),
        "dense: vectors": route(1),
        "merged in turn": lambda found: merged([r.candidates for r in found.routes]),
        "reciprocal ranks": lambda found: [
            one for one, _ in fused([r.candidates for r in found.routes], k)
        ],
        "scaled scores (default)": lambda found: [
            one for one, _ in fused_by_score(found, Search())
        ],
    }


def _recalls(found: Sequence[Corpus], settings: Settings, options: argparse.Namespace) -> Table:
    table = _table(
        "Recall of the routes, no reranker (laws: the share with a right article)",
        ("corpus", "questions", "ranking"),
        [f"R@{cut}" for cut in _CUTS],
    )
    for corpus in found:
        snapshot = corpus.kb.snapshot()
        _add(table, corpus, corpus.questions, snapshot, settings, lambda text: ([text], [text]))
        few = corpus.questions[: options.hyde]
        if not few or not options.model:
            continue
        _add(table, corpus, few, snapshot, settings, lambda text: ([text], [text]))
        for alone in (False, True):
            made = _hypothetical(snapshot, settings, few, alone=alone)
            name = "HyDE in the question's place" if alone else "with HyDE"
            _add(table, corpus, few, snapshot, settings, made.__getitem__, name)
    return table


def _add(
    table: Table,
    corpus: Corpus,
    questions: Sequence[Asked],
    snapshot: Snapshot,
    settings: Settings,
    queries: Callable[[str], tuple[list[str], list[str]]],
    note: str = "",
) -> None:
    found = []
    for asked in questions:
        sparse, dense = queries(asked.text)
        found.append(coarse(snapshot, sparse, dense, where=None, settings=settings.pipeline))
    for name, order in _orders(settings.search.rrf_k).items():
        ranked = []
        for one in found:
            best = [(candidate, 0.0) for candidate in order(one)[: max(_CUTS)]]
            ranked.append([hit.source_id or "" for hit in one.hits(best)])
        figures = [
            mean(
                [
                    float(bool(asked.right & set(ids[:cut])))
                    if asked.any_of
                    else recall(ids, asked.right, cut)
                    for ids, asked in zip(ranked, questions, strict=True)
                ]
            )
            for cut in _CUTS
        ]
        shown = f"{name}, {note}" if note else name
        table.add_row(corpus.name, str(len(questions)), shown, *(f"{f:.3f}" for f in figures))


def _hypothetical(
    snapshot: Snapshot, settings: Settings, questions: Sequence[Asked], *, alone: bool
) -> dict[str, tuple[list[str], list[str]]]:
    with_hyde = settings.model_copy(
        update={"pipeline": Pipeline(expansion="hyde", hyde_alone=alone)}
    )
    chat = resolve_chat_model(with_hyde)

    async def one(text: str) -> tuple[list[str], list[str]]:
        run = opened(Question(text, snapshot, with_hyde, chat))
        async for _ in expand(run):
            pass
        return run.sparse, run.dense

    made = {}
    for number, asked in enumerate(questions, start=1):
        made[asked.text] = asyncio.run(one(asked.text))
        say(f"{number} of {len(questions)} hypothetical answers")
    return made


# -- time -------------------------------------------------------------------------------------


def _compression(found: Sequence[Corpus], settings: Settings) -> Table:
    table = _table(
        "Compression of the best six passages: what is kept, and the time it takes",
        ("corpus", "rate"),
        ("tokens", "of all", "words of the question kept", "ms a question"),
    )
    for corpus in found:
        snapshot = corpus.kb.snapshot()
        passages = []
        for asked in corpus.questions[:_TIMED]:
            one = coarse(
                snapshot, [asked.text], [asked.text], where=None, settings=settings.pipeline
            )
            best = fused([r.candidates for r in one.routes], settings.search.rrf_k)[:6]
            ids = [candidate.chunk_id for candidate, _ in best]
            passages.append((asked.text, [c.text for c in snapshot.read_chunk(ids).chunks]))
        whole = _tokens([text for _, texts in passages for text in texts])
        for rate in (1.0, 0.8, 0.5):
            began = time.perf_counter()
            kept = [
                (question, [bm25_extract(text, question, rate) for text in texts])
                for question, texts in passages
            ]
            spent = (time.perf_counter() - began) / len(passages)
            tokens = _tokens([text for _, texts in kept for text in texts])
            table.add_row(
                corpus.name,
                "off" if rate == 1 else f"{rate:g}",
                f"{tokens / len(passages):,.0f}",
                f"{tokens / whole:.0%}",
                f"{_words_kept(passages, kept):.0%}",
                f"{1e3 * spent:.1f}",
            )
    return table


def _tokens(texts: Sequence[str]) -> int:
    return sum(count_tokens(text) for text in texts)


def _words_kept(
    before: Sequence[tuple[str, list[str]]], after: Sequence[tuple[str, list[str]]]
) -> float:
    """Of the question's words that stood in the passages, the share that still does."""
    shares = []
    for (question, whole), (_, kept) in zip(before, after, strict=True):
        stood = set(words(question)) & {word for text in whole for word in words(text)}
        if stood:
            stands = stood & {word for text in kept for word in words(text)}
            shares.append(len(stands) / len(stood))
    return mean(shares)


def _bm25(found: Sequence[Corpus]) -> Table:
    import bm25s

    table = _table(
        "BM25 over all chunks: bm25s beside a plain loop, the same formula",
        ("corpus",),
        ("index, ms", "plain, ms", "query, ms", "plain, ms", "ratio", "same best six"),
    )
    for corpus in found:
        snapshot = corpus.kb.snapshot()
        texts = [
            words(chunk.text) for number in snapshot.documents for chunk in snapshot.chunks(number)
        ]
        queries = [words(asked.text) for asked in corpus.questions[:_TIMED]]
        began = time.perf_counter()
        index = bm25s.BM25(k1=1.5, b=0.75)
        index.index(texts, show_progress=False)
        made = time.perf_counter() - began
        began = time.perf_counter()
        plain = _Plain(texts)
        made_plain = time.perf_counter() - began
        ours, theirs, same = [], [], 0
        for query in queries:
            known = [word for word in dict.fromkeys(query) if word in index.vocab_dict]
            began = time.perf_counter()
            fast = index.get_scores(known) if known else [0.0] * len(texts)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            slow = plain.scores(known)
            theirs.append(time.perf_counter() - began)
            same += _best(fast) == _best(slow)
        table.add_row(
            corpus.name,
            f"{1e3 * made:.0f}",
            f"{1e3 * made_plain:.0f}",
            f"{1e3 * statistics.median(ours):.2f}",
            f"{1e3 * statistics.median(theirs):.2f}",
            f"{statistics.median(theirs) / statistics.median(ours):.0f}",
            f"{same} of {len(queries)}",
        )
    return table


def _best(scores: Sequence[float]) -> list[int]:
    rounded = [round(float(score), 4) for score in scores]
    return sorted(range(len(rounded)), key=lambda i: (-rounded[i], i))[:6]


class _Plain:
    """BM25 as it is written down: every text is looked at for every word of a query."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(text) for text in texts]
        self._lengths = [len(text) for text in texts]
        self._mean = sum(self._lengths) / len(texts)
        self._frequencies = Counter(word for counts in self._counts for word in counts)

    def scores(self, query: Sequence[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
        found = []
        for counts, length in zip(self._counts, self._lengths, strict=True):
            score = 0.0
            for word in query:
                n = self._frequencies[word]
                idf = log(1 + (len(self._counts) - n + 0.5) / (n + 0.5))
                f = counts[word]
                score += idf * f / (f + k1 * (1 - b + b * length / self._mean))
            found.append(score)
        return found


def _early_exit() -> Table:
    """Layer-steps of the layer-wise reranker for 192 texts, on a small random model."""
    table = _table(
        "Layer-wise reranking of 192 texts by a small random model",
        ("exit",),
        ("layer", "layer-steps", "of all", "seconds"),
    )
    try:
        from benchmarks.small_reranker import rankings
    except ImportError as error:
        table.add_row(f"not available here: {error}", "", "", "", "")
        return table
    draw = random.Random(0)
    texts = [
        " ".join(
            draw.choices(["the", "pump", "was", "opened", "by", "a", "mayor", "in", "may"], k=40)
        )
        for _ in range(192)
    ]
    first = 0
    for name, layer, steps, spent in rankings("when was the pump opened", texts):
        first = first or steps
        share = f"{steps / first:.0%}"
        table.add_row(name, str(layer), f"{steps:,}", share, f"{spent:.2f}")
    return table


if __name__ == "__main__":
    main()
