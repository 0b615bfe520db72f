"""What one answer is worth, in every measure of `docs/eval-measures.md`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentic_rag.evaluation.records import Outcome

CUTOFFS = (1, 2, 5, 10)  # the k of recall at k in reports
ErrorKind = Literal[
    "failed",
    "limit",
    "never_surfaced",
    "not_read",
    "read_but_lost",
    "wrong_entity",
    "misread_question",
    "other",
]
ERROR_KINDS: tuple[ErrorKind, ...] = (
    "failed",
    "limit",
    "never_surfaced",
    "not_read",
    "read_but_lost",
    "wrong_entity",
    "misread_question",
    "other",
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge model said of an answer: `correct` is None where it gave no clear verdict, or
    could not be asked, as `problem` then says. `said` is its word. A failed or unanswered question
    is incorrect without being asked."""

    correct: bool | None
    said: str = ""
    model: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one `Result`. None is "cannot be told", never "bad".

    `contain`, `exact` and `f1` (0 to 1) are None where no gold answer is known; they are False and
    0 for a question that failed or was not answered. `judge` is None where no judge was asked, and
    where it was but gave no clear verdict (then `unjudged`). Citation and recall measures, 0 to 1,
    are None where no supporting ids are known; citation precision also where nothing is cited.
    `recall_at` is recall among the first k hits in order of appearance, by k of `CUTOFFS`;
    `surfaced_recall` among all hits; `read_recall` among what the model was given to read whole.
    Tokens, steps, `seconds` are None where nothing is left of a failed question; `cost` (US
    dollars) also where no price is known. `retrieved_by` splits the o200k tokens of passages shown
    by tool or step. `status` is that of the answer ("" where there is none). `error_kind` places a
    wrong answer (`why_wrong`); None where it is right or cannot be told.
    """

    variant: str
    qid: str
    kind: str
    outcome: Outcome
    status: str
    contain: bool | None
    exact: bool | None
    f1: float | None
    judge: bool | None
    unjudged: bool
    citation_precision: float | None
    citation_recall: float | None
    recall_at: Mapping[int, float] | None
    surfaced_recall: float | None
    read_recall: float | None
    retrieved_tokens: int | None
    retrieved_by: Mapping[str, int]
    steps: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    seconds: float | None
    error_kind: ErrorKind | None

    @property
    def right(self) -> bool | None:
        """Whether the answer counts as right: by the judge where it gave a verdict, by
        contain-match where none was asked; None where neither tells."""
        return None if self.unjudged else self.contain if self.judge is None else self.judge
