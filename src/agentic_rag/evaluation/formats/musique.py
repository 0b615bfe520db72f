"""MuSiQue (Trivedi et al. 2022, arXiv 2108.00573), `musique_ans_v1.0_dev.jsonl`, `…_full_…`.

A line each: `id` (`2hop__…`), `question`, `answer`, `answer_aliases`, `answerable`, and
`paragraphs` with `idx`, `title`, `paragraph_text`, `is_supporting`. MuSiQue-Full has every question
a second time, under the same id, with paragraphs that do not answer it; those are left out.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from agentic_rag.documents.cleaning import one_line
from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.prepared import (
    REPEATED,
    PooledCorpus,
    Prepared,
    notes_of,
    without_repeats,
)
from agentic_rag.evaluation.formats.source_file import Entry
from agentic_rag.evaluation.records import GoldQuestion

_KIND = re.compile(r"(\d+hop\d*)__")
_UNANSWERABLE = "Questions left out, since their paragraphs do not answer them: {n}."


def from_musique(entries: Sequence[Entry]) -> Prepared:
    """Questions and the pooled paragraphs of all of them. Raises `BadDataset` that names the
    record."""
    corpus = PooledCorpus()
    counts = Counter[str]()
    pairs = []
    for entry in entries:
        if entry.fields.get("answerable") is False:
            counts[_UNANSWERABLE] += 1
            continue
        qid = entry.needed("id", "_id")
        answer = entry.text("answer")
        kind = _KIND.match(qid)
        question = GoldQuestion(
            qid=qid,
            question=entry.needed("question"),
            answer=answer,
            aliases=tuple(name for name in entry.texts("answer_aliases") if name != answer),
            supporting=_supporting(entry, corpus),
            kind=kind[1] if kind else "",
        )
        pairs.append((entry, question))
    questions, counts[REPEATED] = without_repeats(pairs)
    return Prepared(questions, corpus.chunks(), notes_of(counts))


def first_answerable(entries: Sequence[Entry], limit: int | None) -> Sequence[Entry]:
    """The entries up to the one that is the last of `limit` answerable questions."""
    if limit is None:
        return entries
    taken = 0
    for number, entry in enumerate(entries, start=1):
        taken += entry.fields.get("answerable") is not False
        if taken == limit:
            return entries[:number]
    return entries


def _supporting(entry: Entry, corpus: PooledCorpus) -> tuple[str, ...]:
    """The ids of the supporting paragraphs, after all are taken into the corpus."""
    paragraphs = entry.fields.get("paragraphs")
    if not isinstance(paragraphs, list):
        raise BadDataset(f"{entry.place} has no list `paragraphs`; is it another dataset's form?")
    found = []
    for number, value in enumerate(paragraphs, start=1):
        paragraph = Entry(value, f"{entry.place}, paragraph {number}")
        title, body = one_line(paragraph.text("title")), paragraph.text("paragraph_text", "text")
        if not title and not body:
            continue
        chunk_id = corpus.add(title, body)
        if isinstance(value, Mapping) and value.get("is_supporting") is True:
            found.append(chunk_id)
    return tuple(dict.fromkeys(found))
