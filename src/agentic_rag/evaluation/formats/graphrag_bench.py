"""GraphRAG-Bench, Medical and Novel (Xiang et al. 2025, arXiv 2506.05690).

Questions: a list of `{"id", "source", "question", "answer", "question_type", "evidence"}`, where
the evidence is a sentence or a list of some. Corpus: `{"corpus_name", "context"}` or a list of
those, each one long text. The texts are cut into chunks as documents are; a chunk is supporting
where a sentence of the evidence stands in it word for word. Most of the published evidence is
reworded, so that most questions have no supporting chunks.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentic_rag.documents.cleaning import one_line
from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.prepared import (
    REPEATED,
    CorpusChunk,
    Prepared,
    notes_of,
    without_repeats,
)
from agentic_rag.evaluation.formats.source_file import Entry, read_entries
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.text.chunking import chunk_document
from agentic_rag.text.document import Document
from agentic_rag.text.sentences import sentence_spans

_NOT_LETTERS = re.compile(r"[\W_]+")
# Shorter ones stand somewhere by chance. In letters and digits; a Han character says more.
_SHORTEST_EVIDENCE = 12
_NOT_FOUND = (
    "Questions without supporting chunks, since no sentence of their evidence stands in the corpus "
    "word for word: {n}."
)
_NO_SOURCE = "Questions whose `source` is no text of the corpus: {n}."


def from_graphrag_bench(
    entries: Sequence[Entry], corpus: Path | None, chunk_tokens: int
) -> Prepared:
    """Questions, and the texts of `corpus` in chunks of up to `chunk_tokens` o200k tokens; none
    where no corpus is named. Raises `BadDataset` that names the record."""
    texts = {} if corpus is None else _read_corpus(corpus)
    cut = {name: _cut(name, text, chunk_tokens) for name, text in texts.items()}
    places = {name: _Words(chunks) for name, chunks in cut.items()}
    counts = Counter[str]()
    pairs = []
    for entry in entries:
        source = entry.text("source", "corpus_name")
        supporting: tuple[str, ...] = ()
        if source in places:
            supporting = places[source].holding(entry.texts("evidence"))
            counts[_NOT_FOUND] += not supporting
        elif corpus is not None:
            counts[_NO_SOURCE] += 1
        question = GoldQuestion(
            qid=entry.needed("id", "_id"),
            question=entry.needed("question"),
            answer=entry.text("answer"),
            supporting=supporting,
            kind=entry.text("question_type", "type"),
        )
        pairs.append((entry, question))
    questions, counts[REPEATED] = without_repeats(pairs)
    chunks = tuple(chunk for part in cut.values() for chunk, _ in part)
    return Prepared(questions, chunks if corpus else None, notes_of(counts))


Cut = tuple[CorpusChunk, str]  # with its body alone


def _cut(name: str, text: str, chunk_tokens: int) -> list[Cut]:
    document = Document(uri=name, title=name, media_type="text/plain", text=text)
    return [
        (CorpusChunk(f"{name}-{n}", draft.title, draft.text), draft.text[draft.body_start :])
        for n, draft in enumerate(chunk_document(document, size=chunk_tokens))
    ]


class _Words:
    """The chunks of one text as one run of letters and digits, so that a sentence is found
    whatever its line breaks and marks, and where it goes on in the next chunk."""

    def __init__(self, chunks: Sequence[Cut]) -> None:
        bodies = [_folded(body) for _, body in chunks]
        self._text = "".join(bodies)
        self._ids = [chunk.chunk_id for chunk, _ in chunks]
        self._starts = [0]
        for body in bodies:
            self._starts.append(self._starts[-1] + len(body))

    def holding(self, evidence: Sequence[str]) -> tuple[str, ...]:
        """The ids of the chunks where a text of `evidence`, or a sentence of it, stands first."""
        found: dict[str, None] = {}
        for text in evidence:
            whole = self._spot(text)
            sentences = [text[start:end] for start, end in sentence_spans(text)]
            spots = [whole] if whole else [self._spot(sentence) for sentence in sentences]
            found.update(dict.fromkeys(chunk_id for spot in spots for chunk_id in spot))
        return tuple(found)

    def _spot(self, text: str) -> list[str]:
        wanted = _folded(text)
        start = self._text.find(wanted) if len(wanted) >= _SHORTEST_EVIDENCE else -1
        if start < 0:
            return []
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, start + len(wanted) - 1) - 1
        return self._ids[first : last + 1]


def _folded(text: str) -> str:
    return _NOT_LETTERS.sub("", unicodedata.normalize("NFKC", text).lower())


def _read_corpus(path: Path) -> Mapping[str, str]:
    """The texts of a corpus by name; those of one name are joined."""
    parts: dict[str, list[str]] = defaultdict(list)
    for entry in read_entries(path):
        if "context" not in entry.fields:
            raise BadDataset(
                f"{entry.place} has no `context`; name the corpus of GraphRAG-Bench, such as "
                "medical.json or novel.json."
            )
        if text := entry.text("context"):
            parts[one_line(entry.needed("corpus_name"))].append(text)
    if not parts:
        raise BadDataset(f"{path} holds no text.")
    return {name: "\n\n".join(texts) for name, texts in parts.items()}
