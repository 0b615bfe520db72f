"""The scores of a whole run, from what is on disk: its results, and the verdicts there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentic_rag.errors import AragError
from agentic_rag.evaluation.measures.judging import known_judgement, known_why
from agentic_rag.evaluation.measures.scored import Scores
from agentic_rag.evaluation.measures.scoring import score
from agentic_rag.evaluation.measures.summary import Summary, summarise
from agentic_rag.evaluation.measures.verdicts import Verdicts
from agentic_rag.evaluation.measures.why_wrong import Texts, no_texts
from agentic_rag.evaluation.running.result_file import Run, read_run


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run with the scores of its results, in their order. `judge` is the model whose verdicts
    count, "" where there are none."""

    run: Run
    scores: tuple[Scores, ...]
    judge: str

    def of(self, variant: str) -> list[Scores]:
        """The scores of one variant, in the order of the questions."""
        return [one for one in self.scores if one.variant == variant]

    @property
    def summaries(self) -> list[Summary]:
        """The summary of each variant that has a result."""
        names = [variant.name for variant in self.run.info.variants]
        return [summarise(name, found) for name in names if (found := self.of(name))]


def score_run(directory: Path) -> ScoredRun:
    """The run in `directory`, scored; asks no model. Blocks. Raises `NoRun`, `VerdictsUnusable`."""
    run = read_run(directory)
    verdicts = Verdicts(directory)
    judged_by = verdicts.judged_by("judge")
    texts = texts_of(run)
    scores = []
    golds = {question.qid: question for question in run.questions}
    for result in run.results:
        gold = golds[result.qid]
        judgement = known_judgement(verdicts, result, gold, judged_by) if judged_by else None
        why = known_why(verdicts, result, gold, judged_by[0]) if judged_by else None
        scores.append(score(result, gold, judgement, why=why, texts=texts))
    return ScoredRun(run, tuple(scores), judged_by[0] if judged_by else "")


def texts_of(run: Run) -> Texts:
    """Chunks' texts, where some question has no supporting ids and the knowledge base is there.
    Blocks."""
    if all(question.supporting for question in run.questions):
        return no_texts
    from agentic_rag.knowledge_base import KnowledgeBase

    try:
        snapshot = KnowledgeBase.open(Path(run.info.knowledge_base), create=False).snapshot()
    except AragError:
        return no_texts

    def texts(chunk_ids: Sequence[str]) -> dict[str, str]:
        try:
            found = snapshot.read_chunk(list(chunk_ids)).chunks
        except AragError:
            return {}
        return {chunk.chunk_id: chunk.text for chunk in found}

    return texts
