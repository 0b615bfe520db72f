"""Retrieval alone: how well each search finds the supporting chunks of a dataset, without a model.

Every question is put to each search as it stands. The modes are those of `arag search`, `recall`
(the workflow's hybrid search, weighed by the kind of question), and the pipeline's two routes,
`sparse` and `dense`, and their fusion `pipeline`, without its reranker.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from agentic_rag.evaluation.measures.gold import ranked
from agentic_rag.evaluation.measures.intervals import Estimate, estimate
from agentic_rag.evaluation.measures.ranking import ndcg_at, recall_at, reciprocal_rank
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.retrieval.coarse import Candidate, coarse, fused_by_score
from agentic_rag.retrieval.recall import recall
from agentic_rag.strategies.support import STOP_WORDS
from agentic_rag.text.words import words

if TYPE_CHECKING:
    from agentic_rag.config import Settings
    from agentic_rag.knowledge_base import Hit, KnowledgeBase, Snapshot

SearchMode = Literal[
    "keyword", "bm25", "semantic", "hybrid", "recall", "sparse", "dense", "pipeline"
]
MODES: tuple[SearchMode, ...] = get_args(SearchMode)
_SHORTEST_KEYWORD = 2  # characters; a single one stands in nearly every chunk


@dataclass(frozen=True, slots=True)
class Searched:
    """One question by one search: the measures of `measures.ranking`, the chunks found, best
    first, and how long it took. `notices` are sentences about how the search was done."""

    mode: SearchMode
    qid: str
    recall_at: Mapping[int, float]
    ndcg_at: Mapping[int, float]
    reciprocal_rank: float
    chunk_ids: tuple[str, ...]
    milliseconds: float
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeSummary:
    """One search over all questions: means with 95 % intervals; `mrr` and the hits behind it go as
    deep as the greatest k. `milliseconds` is the mean of a question."""

    mode: SearchMode
    questions: int
    recall_at: Mapping[int, Estimate]
    ndcg_at: Mapping[int, Estimate]
    mrr: Estimate
    milliseconds: float


def search_all(
    kb: "KnowledgeBase",
    questions: Sequence[GoldQuestion],
    modes: Sequence[SearchMode],
    ks: Sequence[int],
    *,
    settings: "Settings",
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Searched]:
    """Every question by every search, mode after mode; `on_done` is told how many of how many.

    Blocks. Only `questions` with supporting ids can be measured: give no others. `ks` are the
    places at which is measured. The first question is asked once untimed for each mode, since it
    loads the indexes. Raises what the searches raise, such as `EmbeddingModelMismatch`.
    """
    snapshot = kb.snapshot()
    deepest, total, done = max(ks), len(questions) * len(modes), 0
    for mode in modes:
        for number, question in enumerate(questions):
            if number == 0:
                _found(snapshot, mode, question.question, deepest, settings)
            started = time.perf_counter()
            hits, notices = _found(snapshot, mode, question.question, deepest, settings)
            spent = time.perf_counter() - started
            golds = frozenset(question.supporting)
            ranking = ranked(hits, golds)
            yield Searched(
                mode=mode,
                qid=question.qid,
                recall_at={k: recall_at(ranking, golds, k) for k in ks},
                ndcg_at={k: ndcg_at(ranking, golds, k) for k in ks},
                reciprocal_rank=reciprocal_rank(ranking, golds),
                chunk_ids=tuple(hit.chunk_id for hit in hits),
                milliseconds=1000 * spent,
                notices=notices,
            )
            done += 1
            on_done(done, total)


def summarise_modes(found: Sequence[Searched]) -> list[ModeSummary]:
    """A line for each mode, in the order in which they were asked."""
    return [
        _summary(mode, [one for one in found if one.mode == mode])
        for mode in dict.fromkeys(one.mode for one in found)
    ]


def keywords_of(question: str) -> list[str]:
    """The keywords that stand for a question where no model chooses them: its words without stop
    words, of two characters or more, each once. All its words where none is left."""
    found = list(dict.fromkeys(words(question)))
    telling = [one for one in found if len(one) >= _SHORTEST_KEYWORD and one not in STOP_WORDS]
    return telling or found


def _found(
    snapshot: "Snapshot", mode: SearchMode, question: str, top_k: int, settings: "Settings"
) -> "tuple[Sequence[Hit], tuple[str, ...]]":
    match mode:
        case "keyword":
            keywords = keywords_of(question)
            return (snapshot.keyword_search(keywords, top_k).hits if keywords else ()), ()
        case "recall":
            recalled = recall(snapshot, [question], top_k=top_k, where=None, settings=settings)
            return [scored.hit for scored in recalled.hits], recalled.notices
        case "sparse" | "dense" | "pipeline":
            return _by_routes(snapshot, mode, question, top_k, settings)
        case _:
            result = snapshot.search(question, mode, top_k)
            return result.hits, result.notices


def _by_routes(
    snapshot: "Snapshot",
    mode: Literal["sparse", "dense", "pipeline"],
    question: str,
    top_k: int,
    settings: "Settings",
) -> "tuple[Sequence[Hit], tuple[str, ...]]":
    sparse = [] if mode == "dense" else [question]
    dense = [] if mode == "sparse" else [question]
    routes = coarse(snapshot, sparse, dense, where=None, settings=settings.pipeline)
    scored: list[tuple[Candidate, float]]
    if mode == "pipeline":
        scored = fused_by_score(routes, settings.search)
    else:
        route = next(one for one in routes.routes if one.name == mode)
        scored = [(one, one.score) for one in route.candidates]
    return routes.hits(scored[:top_k]), routes.notices


def _summary(mode: SearchMode, found: Sequence[Searched]) -> ModeSummary:
    ks = list(found[0].recall_at)
    return ModeSummary(
        mode=mode,
        questions=len(found),
        recall_at={k: _mean([one.recall_at[k] for one in found]) for k in ks},
        ndcg_at={k: _mean([one.ndcg_at[k] for one in found]) for k in ks},
        mrr=_mean([one.reciprocal_rank for one in found]),
        milliseconds=sum(one.milliseconds for one in found) / len(found),
    )


def _mean(values: Sequence[float]) -> Estimate:
    mean = estimate(values)
    assert mean is not None  # a mode is asked at least one question
    return mean
