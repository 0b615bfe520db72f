"""From a result and its question to the scores: every measure of one answer."""

from collections.abc import Mapping
from typing import Any

from agentic_rag.evaluation.measures import matching
from agentic_rag.evaluation.measures.citing import citation_precision, citation_recall
from agentic_rag.evaluation.measures.gold import ranked
from agentic_rag.evaluation.measures.ranking import recall_at
from agentic_rag.evaluation.measures.scored import CUTOFFS, ErrorKind, Judgement, Scores
from agentic_rag.evaluation.measures.surfaced import retrieved_by, steps, surfaced
from agentic_rag.evaluation.measures.why_wrong import READ_BUT_LOST, Texts, error_kind, no_texts
from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.strategies.answer import Answer


def score(
    result: Result,
    gold: GoldQuestion,
    judgement: Judgement | None = None,
    *,
    why: ErrorKind | None = None,
    texts: Texts = no_texts,
) -> Scores:
    """The scores of `result`, an answer to `gold`.

    `judgement` is what the judge said, None where there is none; `why` how it places an answer that
    was lost. `texts` gives chunks' texts where no supporting ids tell why an answer is wrong.
    """
    answer = result.answer
    words = (
        matching.answer_words(answer) if answer is not None and result.outcome == "answered" else ""
    )
    judge = judgement.correct if judgement else None
    contain = matching.contains(words, gold.golds) if gold.golds else None
    right = judge if judgement else contain
    kind = error_kind(result, gold, right=right, texts=texts)
    return Scores(
        variant=result.variant,
        qid=result.qid,
        kind=gold.kind,
        outcome=result.outcome,
        contain=contain,
        exact=matching.exact_match(words, gold.golds) if gold.golds else None,
        f1=matching.f1(words, gold.golds) if gold.golds else None,
        judge=judge,
        unjudged=judgement is not None and judge is None,
        error_kind=why if why and kind == READ_BUT_LOST else kind,
        **_retrieval(result, gold),
        **_spent(answer),
    )


def _retrieval(result: Result, gold: GoldQuestion) -> Mapping[str, Any]:
    answer, golds = result.answer, frozenset(gold.supporting)
    if answer is None or not golds:
        return dict.fromkeys(_RETRIEVAL)
    seen = surfaced(answer)
    hits, read = ranked(seen.hits, golds), ranked(seen.read, golds)
    cited = answer.citations if result.outcome == "answered" else None
    return {
        "citation_precision": citation_precision(cited, gold.supporting) if cited else None,
        "citation_recall": None if cited is None else citation_recall(cited, gold.supporting),
        "recall_at": {k: recall_at(hits, golds, k) for k in CUTOFFS},
        "surfaced_recall": recall_at(hits, golds, len(hits)),
        "read_recall": recall_at(read, golds, len(read)),
    }


_RETRIEVAL = (
    "citation_precision",
    "citation_recall",
    "recall_at",
    "surfaced_recall",
    "read_recall",
)


def _spent(answer: Answer | None) -> Mapping[str, Any]:
    if answer is None:
        nothing = ("retrieved_tokens", "steps", "input_tokens", "output_tokens", "cost", "seconds")
        return {"status": "", "retrieved_by": {}, **dict.fromkeys(nothing)}
    usage = answer.usage
    return {
        "status": answer.status,
        "retrieved_tokens": usage.retrieved_tokens,
        "retrieved_by": retrieved_by(answer.trace),
        "steps": steps(answer),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
        "seconds": answer.seconds,
    }
