"""Why an answer is wrong, as far as its trace tells; the judge model tells more of what was lost.

In this order, the first that fits:

- failed: it ended in an error, or passages stood in for a model that failed
- limit: a limit of steps, tokens or cost cut the search short
- never_surfaced: some supporting chunk was in no hit
- not_read: all were found, but some was not given to the model whole or as a passage
- read_but_lost: all were read

Where no supporting ids are known, a chunk whose text contains a gold answer stands for them: none
found, none read, or one read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentic_rag.evaluation.measures.gold import ranked
from agentic_rag.evaluation.measures.matching import contains
from agentic_rag.evaluation.measures.scored import ErrorKind
from agentic_rag.evaluation.measures.surfaced import Surfaced, surfaced
from agentic_rag.evaluation.records import GoldQuestion, Result
from agentic_rag.strategies.trace import HitRecord

# The texts of chunks by id, as far as they are still there.
Texts = Callable[[Sequence[str]], Mapping[str, str]]
READ_BUT_LOST: Final = "read_but_lost"

_NO_ANSWER = frozenset(["model_failed", "stopped", "failed"])


def no_texts(chunk_ids: Sequence[str]) -> Mapping[str, str]:
    """Where no knowledge base is at hand: then the snippets of the trace stand for the chunks."""
    return {}


def error_kind(
    result: Result, gold: GoldQuestion, *, right: bool | None, texts: Texts = no_texts
) -> ErrorKind | None:
    """The place of a wrong answer; None for a right one and for one that cannot be judged."""
    answer = result.answer
    if result.outcome == "failed" or answer is None or answer.status in _NO_ANSWER:
        return "failed"
    if right is not False:
        return None
    if answer.status.startswith("forced_"):
        return "limit"
    seen = surfaced(answer)
    if gold.supporting:
        return _by_ids(seen, frozenset(gold.supporting))
    return _by_text(seen, gold.golds, texts)


def _by_ids(seen: Surfaced, golds: frozenset[str]) -> ErrorKind:
    if not golds <= _all_named(seen.hits, golds):
        return "never_surfaced"
    return READ_BUT_LOST if golds <= _all_named(seen.read, golds) else "not_read"


def _all_named(hits: Sequence[HitRecord], golds: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*ranked(hits, golds))


def _by_text(seen: Surfaced, golds: Sequence[str], texts: Texts) -> ErrorKind:
    ids = [hit.chunk_id for hit in (*seen.hits, *seen.read) if hit.chunk_id]
    known = texts(list(dict.fromkeys(ids)))

    def bears(hit: HitRecord) -> bool:
        return contains(f"{hit.title}\n{known.get(hit.chunk_id, hit.snippet)}", golds)

    if any(map(bears, seen.read)):
        return READ_BUT_LOST
    found = any(map(bears, seen.hits)) or any(contains(text, golds) for text in seen.texts)
    return "not_read" if found else "never_surfaced"
