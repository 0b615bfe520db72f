"""The answer to a question: text with numbered sources, and all that led to it."""

from typing import Literal

from agentic_rag.strategies.trace import Notice, Record, TraceEvent, Usage

Status = Literal[
    "answered",
    "forced_by_steps",
    "forced_by_budget",
    "forced_by_cost",
    "insufficient",
    "model_failed",
    "stopped",
    "failed",
]
MadeBy = Literal["model", "matched", "passage"]
Origin = Literal["documents", "web"]


class Citation(Record):
    """A source of the answer, shown in its text as `[number]`.

    It holds its own snippet, so that it outlives a re-indexed document. `made_by`: the model
    cited the chunk; or code matched a sentence to it afterwards; or the passage itself is the
    answer. `matched_sentences` are those whose mark was put there afterwards. One from the web has
    its URL and no chunk id.
    """

    number: int
    chunk_id: str
    source_id: str | None = None
    title: str = ""
    uri: str = ""
    page: int | None = None
    section: str = ""
    snippet: str = ""
    made_by: MadeBy
    origin: Origin = "documents"
    matched_sentences: tuple[str, ...] = ()


class Answer(Record):
    """What a strategy ends in.

    `text` holds the marks `[1]`, `[2]` … of `citations`, in order of first appearance;
    `raw_text` is what the model wrote, with chunk ids. `unsupported` are the sentences that no
    shown passage bears out; `removed_citations` are the marks taken out because nothing of that
    name had been shown. `status`: `answered`; `forced_by_steps`, `forced_by_budget` (tokens)
    or `forced_by_cost` when a limit cut the search short; `insufficient` when the documents do not
    hold the answer; `model_failed` when the best passages stand in for a model that failed;
    and, in saved traces only, `stopped` or `failed` when it ended before an answer, by Ctrl-C or by
    an error.
    `seconds` is the whole time taken.
    """

    question: str
    text: str
    raw_text: str = ""
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[str, ...] = ()
    removed_citations: tuple[str, ...] = ()
    trace: tuple[TraceEvent, ...] = ()
    usage: Usage = Usage()
    status: Status
    strategy: str
    model: str
    seconds: float = 0.0
    notices: tuple[Notice, ...] = ()

    @property
    def unanswered(self) -> bool:
        """Whether there is no answer of the model that was to give one: passages stand in for it,
        or the question ended before."""
        forced = self.status.startswith("forced_")
        return self.status in ("model_failed", "stopped", "failed") or (
            forced and not self.raw_text
        )
