"""What a dataset becomes: questions, and the chunks of its corpus; and how paragraphs that many
questions share become one corpus."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.source_file import Entry
from agentic_rag.evaluation.records import GoldQuestion


@dataclass(frozen=True, slots=True)
class CorpusChunk:
    """A chunk of a dataset's corpus. `text` begins with the title's line where there is one, as in
    A-RAG's own files; `more` are further keys, which become metadata."""

    chunk_id: str
    title: str
    text: str
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A dataset before it is written. `chunks` is None where the questions are of documents that
    are indexed apart; `notes` are sentences about what was left out or could not be told."""

    questions: tuple[GoldQuestion, ...]
    chunks: tuple[CorpusChunk, ...] | None
    notes: tuple[str, ...] = ()


class PooledCorpus:
    """Paragraphs that come with each question, as one corpus: those of equal title and text are
    one chunk. The chunks are numbered from 0 in the order they come."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}
        self._first_of_title: dict[str, str] = {}

    def add(self, title: str, body: str) -> str:
        """The id of a paragraph, which is taken in where it is new."""
        chunk_id = self._ids.setdefault((title, body), str(len(self._ids)))
        self._first_of_title.setdefault(title, chunk_id)
        return chunk_id

    def titled(self, title: str) -> str | None:
        """The id of the first paragraph with this title, in any question."""
        return self._first_of_title.get(title)

    def chunks(self) -> tuple[CorpusChunk, ...]:
        """The chunks of the corpus, in order."""
        return tuple(
            CorpusChunk(chunk_id, title, titled_text(title, body))
            for (title, body), chunk_id in self._ids.items()
        )


def titled_text(title: str, body: str) -> str:
    """A chunk's text: its title on a line of its own, then the body."""
    return f"{title}\n{body}" if title else body


def without_repeats(
    pairs: Iterable[tuple[Entry, GoldQuestion]],
) -> tuple[tuple[GoldQuestion, ...], int]:
    """The questions without those that stand twice under one id, and how many those were. Raises
    `BadDataset` where two different questions have one id."""
    found: dict[str, GoldQuestion] = {}
    repeated = 0
    for entry, question in pairs:
        before = found.setdefault(question.qid, question)
        if before is question:
            continue
        if before != question:
            raise BadDataset(
                f"{entry.place}: the id {question.qid!r} is that of another question; give each "
                "one its own."
            )
        repeated += 1
    return tuple(found.values()), repeated


REPEATED = "Questions that stood there more than once and are kept once: {n}."


def notes_of(counts: Counter[str]) -> tuple[str, ...]:
    """Sentences of counted things, without those that did not occur. `{n}` is the number."""
    return tuple(text.format(n=f"{n:,}") for text, n in counts.items() if n)
