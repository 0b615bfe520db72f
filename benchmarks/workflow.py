"""What each step of the workflow's retrieval brings: recall before and after it.

`python benchmarks/workflow.py` takes hotpotqa, musique and laws under --data, each article of the
laws a chunk, and prints recall at 1, 5 and 10 step by step: each route, fusion, weights by the
type of a query, variants, reranking. `--model` lets a chat model write the variants; without it
those of data/laws_rewrites.json count, written by hand, with knowledge of the laws' words, from the
questions alone, before the first run. `--reranker` names a reranker as `rerank.model` would. See
README.md for results.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.table import Table

from agentic_rag.config import Rerank, Search, Settings, Workflow
from agentic_rag.knowledge_base import KnowledgeBase, SearchResult, Snapshot
from agentic_rag.models.chat import resolve_chat_model
from agentic_rag.models.reranker import Reranker, resolve_reranker
from agentic_rag.retrieval import recall as retrieve
from agentic_rag.strategies.question import Question
from agentic_rag.strategies.workflow.parts import opened as opened_run
from agentic_rag.strategies.workflow.rewriting import rewrite
from benchmarks import laws
from benchmarks.metrics import mean, recall
from benchmarks.places import OWN_DATA, default_settings, parser, say
from benchmarks.quality import by_article, law_questions, opened
from benchmarks.timing import print_table

_CUTS = (1, 5, 10)
_CANDIDATES = 50  # for a reranker

Ranking = Callable[[str], Sequence[str]]  # a question to source ids


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the ids that are right (`any_of`: one of them does), and the queries of a
    hand-written rewriting, main query first."""

    text: str
    right: frozenset[str]
    any_of: bool = False
    rewritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    kb: KnowledgeBase
    questions: Sequence[Asked]


def main() -> None:
    options = _options()
    settings = default_settings().model_copy(
        update={"workflow": Workflow(), "rerank": Rerank(), "model": options.model}
    )
    table = Table(
        title="Recall, mean over questions (laws: the share with a right article)",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for column in ("corpus", "ranking"):
        table.add_column(column)
    for cut in _CUTS:
        table.add_column(f"R@{cut}", justify="right")
    for corpus in corpora(options.data, options.work.absolute() / "quality"):
        for name, ranking in steps(corpus, settings, options).items():
            if ranking is None:
                table.add_row(corpus.name, name, "none here")
                continue
            found = measured(ranking, corpus.questions)
            table.add_row(corpus.name, name, *(f"{found[cut]:.3f}" for cut in _CUTS))
    if table.row_count:
        print_table(table)


def _options() -> argparse.Namespace:
    made = parser("Measures what each step of the workflow's retrieval brings.")
    made.add_argument("--model", default="", help="a chat model that writes variants")
    made.add_argument("--reranker", default="", help="as rerank.model")
    made.add_argument("--reranker-url", default="", help="as rerank.base_url")
    return made.parse_args()


def measured(ranking: Ranking, questions: Sequence[Asked]) -> dict[int, float]:
    """Mean recall at each cut."""
    ranked = [(list(ranking(asked.text)), asked) for asked in questions]
    return {
        cut: mean(
            [
                float(bool(asked.right & set(ids[:cut])))
                if asked.any_of
                else recall(ids, asked.right, cut)
                for ids, asked in ranked
            ]
        )
        for cut in _CUTS
    }


# -- the steps --------------------------------------------------------------------------------


def steps(
    corpus: Corpus, settings: Settings, options: argparse.Namespace
) -> dict[str, Ranking | None]:
    """Each way of ranking by its name in the table; None for one that cannot be had here."""
    snapshot = corpus.kb.snapshot()
    k1, b = settings.workflow.bm25_k1, settings.workflow.bm25_b
    words_alone = _with(settings, semantic_weight=0)
    rrf = _with(settings, fusion="rrf")
    found: dict[str, Ranking | None] = {
        "BM25, the index's k1 = 1.2, b = 0.75": _by(snapshot.bm25_search),
        f"BM25, k1 = {k1}, b = {b}": _recalled(snapshot, words_alone),
        "vectors": _by(snapshot.semantic_search),
        "hybrid search (default)": _by(snapshot.hybrid_search),
        "recall, reciprocal ranks, one weight": _recalled(snapshot, rrf, typed=False),
        "recall, scaled scores, one weight": _recalled(snapshot, settings, typed=False),
        "recall, weights by type (default)": _recalled(snapshot, settings),
    }
    rewritten = {asked.text: asked.rewritten for asked in corpus.questions if asked.rewritten}
    if rewritten:
        found |= {
            "+ hand-written main query": _recalled(
                snapshot, settings, queries=lambda text: [rewritten[text][0], text]
            ),
            "+ variants, keywords": _recalled(
                snapshot, settings, queries=lambda text: _queries(rewritten[text], text)
            ),
            "+ the same, reciprocal ranks": _recalled(
                snapshot, rrf, queries=lambda text: _queries(rewritten[text], text)
            ),
        }
    if options.model:
        by_model = _by_model(snapshot, settings, corpus.questions)
        got = sum(len(queries) > 1 for queries in by_model.values())
        name = f"+ variants by {options.model} ({got} of {len(by_model)} questions)"
        found[name] = _recalled(snapshot, settings, queries=by_model.__getitem__)
    found["+ reranker"] = None
    if options.reranker:
        section = Rerank(
            model=options.reranker, base_url=options.reranker_url, candidates=_CANDIDATES
        )
        with_it = settings.model_copy(update={"rerank": section})
        reranker = resolve_reranker(with_it, None)
        assert reranker is not None
        found["+ reranker"] = _reranked(snapshot, with_it, reranker)
    return found


def _with(settings: Settings, **changed: object) -> Settings:
    section = Search.model_validate({**settings.search.model_dump(), **changed})
    return settings.model_copy(update={"search": section})


def _by(search: Callable[[str, int], SearchResult]) -> Ranking:
    return lambda text: [hit.source_id or "" for hit in search(text, max(_CUTS)).hits]


def _recalled(
    snapshot: Snapshot,
    settings: Settings,
    *,
    typed: bool = True,
    queries: Callable[[str], Sequence[str]] = lambda text: [text],
) -> Ranking:
    one_type = patch("agentic_rag.retrieval.recall.query_type", return_value="semantic")

    def ranking(text: str) -> list[str]:
        with nullcontext() if typed else one_type:
            found = retrieve(
                snapshot, queries(text), top_k=max(_CUTS), where=None, settings=settings
            )
        return [scored.hit.source_id or "" for scored in found.hits]

    return ranking


def _queries(rewritten: Sequence[str], text: str) -> list[str]:
    """As the workflow asks: the main query, the question as it stands, variants, keywords."""
    return [rewritten[0], text, *rewritten[1:]]


def _by_model(
    snapshot: Snapshot, settings: Settings, questions: Sequence[Asked]
) -> dict[str, list[str]]:
    """The queries that the workflow's own first stage makes of each question."""
    chat = resolve_chat_model(settings)

    async def one(text: str) -> list[str]:
        run = opened_run(Question(text, snapshot, settings, chat))
        async for _ in rewrite(run):
            pass
        return run.queries

    found = {}
    for number, asked in enumerate(questions, start=1):
        found[asked.text] = asyncio.run(one(asked.text))
        say(f"{number} of {len(questions)} rewritten: {len(found[asked.text])} queries")
    return found


def _reranked(snapshot: Snapshot, settings: Settings, reranker: Reranker) -> Ranking:
    def ranking(text: str) -> list[str]:
        found = retrieve(snapshot, [text], top_k=_CANDIDATES, where=None, settings=settings)
        ids = [scored.hit.chunk_id for scored in found.hits]
        texts = [chunk.text for chunk in snapshot.read_chunk(ids).chunks]
        ranked = asyncio.run(reranker.rerank(text, texts))
        return [found.hits[one.index].hit.source_id or "" for one in ranked]

    return ranking


# -- the corpora ------------------------------------------------------------------------------


def corpora(data: Path, work: Path) -> list[Corpus]:
    """Those whose data is there; the others are told."""
    found = []
    files = sorted(data.glob("laws/*.md"))
    if files:
        articles = [article for path in files for article in laws.articles_of(path)]
        kb = opened(work / "laws-by-article", by_article(articles, work / "laws-by-article.json"))
        found.append(Corpus("laws", kb, _laws_asked(articles)))
        found.append(Corpus("laws, by number", kb, _by_number(articles)))
    else:
        say(f"The laws are left out: there are none under {data / 'laws'}; name --data.")
    for name in ("hotpotqa", "musique"):
        folder = data / name
        if not (folder / "chunks.json").exists():
            say(f"{name} is left out: there is no {folder / 'chunks.json'}; name --data.")
            continue
        rows = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
        asked = [Asked(row["question"], frozenset(row["supporting_chunk_ids"])) for row in rows]
        found.append(Corpus(name, opened(work / name, folder / "chunks.json"), asked))
    return found


def _laws_asked(articles: Sequence[laws.Article]) -> list[Asked]:
    rows = json.loads((OWN_DATA / "laws_rewrites.json").read_text(encoding="utf-8"))
    rewritten = {
        row["question"]: (row["query"], *row["variants"], " ".join(row["keywords"])) for row in rows
    }
    return [
        Asked(q.text, frozenset(a.id for a in q.articles), True, rewritten[q.text])
        for q in law_questions(articles)
    ]


def _by_number(articles: Sequence[laws.Article]) -> list[Asked]:
    """Every article asked for by its number, in turn alone and in a question."""
    forms = ("《{law}》{number}", "{law}{number}是怎么规定的？")
    return [
        Asked(forms[i % 2].format(law=a.law, number=a.number), frozenset([a.id]))
        for i, a in enumerate(articles)
    ]


if __name__ == "__main__":
    main()
