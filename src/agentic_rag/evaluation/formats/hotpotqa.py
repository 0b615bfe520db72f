"""HotpotQA (Yang et al. 2018, arXiv 1809.09600), `hotpot_dev_distractor_v1.json`, `…_fullwiki_…`.

A list of objects with `_id`, `question`, `answer`, `type`, `context` `[[title, [sentence, …]], …]`
and `supporting_facts` `[[title, sentence number], …]`; the test set has neither answers nor facts.
Copies on the Hugging Face hub have `id`, and for the lists columns (`{"title": […], "sentences":
[…]}`, `{"title": […], "sent_id": […]}`) or JSON inside a string; those are read as well. A
supporting fact counts as its paragraph.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from agentic_rag.documents.cleaning import glue, one_line
from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.prepared import (
    REPEATED,
    PooledCorpus,
    Prepared,
    notes_of,
    without_repeats,
)
from agentic_rag.evaluation.formats.source_file import Entry, as_text
from agentic_rag.evaluation.records import GoldQuestion

_ELSEWHERE = (
    "Supporting paragraphs that are not in the question's own context, as happens in the fullwiki "
    "setting, and were looked for by title in the whole corpus: {n}."
)


def from_hotpotqa(
    entries: Sequence[Entry],
    other_answers: Callable[[Entry], tuple[str, ...]] = lambda entry: (),
) -> Prepared:
    """Questions and the pooled paragraphs of all of them. `other_answers` gives the aliases of a
    record's answer. Raises `BadDataset` that names the record."""
    corpus = PooledCorpus()
    counts = Counter[str]({_ELSEWHERE: 0, REPEATED: 0})
    read = []
    for entry in entries:
        ids: dict[str, list[str]] = {}
        for title, body in _paragraphs(entry):
            ids.setdefault(title, []).append(corpus.add(title, body))
        titles = _supporting_titles(entry)
        read.append((entry, ids, titles, other_answers(entry)))
    pairs = []
    for entry, ids, titles, aliases in read:  # now that the corpus is whole
        supporting: list[str] = []
        for title in titles:
            if title not in ids:
                counts[_ELSEWHERE] += 1
            # A title that is nowhere stays as what was asked for, and is reported as missing.
            supporting += ids.get(title) or [corpus.titled(title) or title]
        question = GoldQuestion(
            qid=entry.needed("_id", "id"),
            question=entry.needed("question"),
            answer=entry.text("answer"),
            aliases=aliases,
            supporting=tuple(dict.fromkeys(supporting)),
            kind=entry.text("type"),
        )
        pairs.append((entry, question))
    questions, counts[REPEATED] = without_repeats(pairs)
    return Prepared(questions, corpus.chunks(), notes_of(counts))


def _paragraphs(entry: Entry) -> Iterator[tuple[str, str]]:
    place = f"{entry.place}: `context`"
    value = _unpacked(entry.fields.get("context"), place)
    if value is None:
        raise BadDataset(f"{entry.place} has no `context`; is it another dataset's form?")
    for title, sentences in _pairs(value, ("title",), ("sentences", "paragraph"), place):
        parts = sentences if isinstance(sentences, list) else [sentences]
        body = ""
        for part in parts:
            sentence = part if isinstance(part, str) else as_text(part, place)
            spaced = sentence[:1].isspace() or body[-1:].isspace()
            body += sentence if spaced else glue(body, sentence) + sentence
        name, text = one_line(as_text(title, place)), as_text(body, place)
        if name or text:
            yield name, text


def _supporting_titles(entry: Entry) -> list[str]:
    place = f"{entry.place}: `supporting_facts`"
    value = _unpacked(entry.fields.get("supporting_facts"), place)
    pairs = _pairs(value, ("title",), ("sent_id", "sent_idx"), place) if value is not None else ()
    return list(dict.fromkeys(one_line(as_text(title, place)) for title, _ in pairs))


def _unpacked(value: object, place: str) -> object:
    """A list or object, also from JSON inside a string."""
    if not isinstance(value, str):
        return value
    try:
        unpacked: object = json.loads(value)
    except (ValueError, RecursionError):
        raise BadDataset(f"{place} is a text that is not JSON; correct it.") from None
    return unpacked


def _pairs(
    value: object, firsts: Sequence[str], seconds: Sequence[str], place: str
) -> Iterator[tuple[object, object]]:
    """`[[a, b], …]`, `[{"title": a, "sentences": b}, …]` or `{"title": [a, …], …}` as pairs."""
    if isinstance(value, Mapping):
        first, second = _either(value, firsts), _either(value, seconds)
        if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
            yield from zip(first, second, strict=True)
            return
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, list) and len(one) == 2:
                yield one[0], one[1]
            elif isinstance(one, Mapping) and _either(one, firsts) is not None:
                yield _either(one, firsts), _either(one, seconds)
            else:
                break
        else:
            return
    raise BadDataset(f"{place} must be a list of pairs `[title, …]`; correct it.")


def _either(value: Mapping[str, object], names: Sequence[str]) -> object:
    return next((value[name] for name in names if name in value), None)
