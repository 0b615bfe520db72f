"""What a strategy found, in which order, and what of it the model was given to read: from a trace.

The agent's tools and the steps of the fixed strategies write their traces differently; this is the
only place that knows how.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from agentic_rag.strategies.agent.prompts import note
from agentic_rag.strategies.answer import Answer, Citation
from agentic_rag.strategies.trace import (
    HitRecord,
    StepFinished,
    StepStarted,
    ToolReturned,
    TraceEvent,
)

_AGENT = "agent"  # its own steps with hits look for passages to go with an answer: it sees none
_READING = "read_chunk"
_TURN = "think"  # a turn of the agent's model
_RANKING = frozenset(["search", "retrieve", "rerank", "rank"])  # their order replaces earlier ones
_WEB = re.compile(r"0-(\d+)")  # how a prompt names the passages of the web
_HEAD = re.compile(r"^\[(\d+-\d+)\](.*)$", re.MULTILINE)
_REMARKS = re.compile(r"\(([^()]*)\)\s*$")
_ID = re.compile(r"\[(\d+-\d+)\]")


@dataclass(frozen=True, slots=True)
class Surfaced:
    """`hits`: what was found, each chunk once. Of the agent in order of appearance; of the fixed
    strategies in that of the last ranking, then what an earlier one had and the last had not.
    `read`: what the model was given whole or as a passage of its prompt, in order of appearance,
    or what stands in the answer where no model wrote it. `texts` is the text that the trace kept:
    results of tools, and snippets."""

    hits: tuple[HitRecord, ...]
    read: tuple[HitRecord, ...]
    texts: tuple[str, ...]


def surfaced(answer: Answer) -> Surfaced:
    """What `answer`'s trace tells."""
    hits: dict[str, HitRecord] = {}
    read: dict[str, HitRecord] = {}
    web: tuple[HitRecord, ...] = ()
    whole = {_READING}  # tools whose hits are shown whole
    for event in answer.trace:
        match event:
            case ToolReturned():
                hits |= {_key(hit): hit for hit in event.hits if _key(hit) not in hits}
                given = [hit.chunk_id for hit in event.hits] if event.name in whole else []
                given += _said_whole(event, read)
                read |= {_key(hit): hit for hit in event.hits if hit.chunk_id in given}
                read |= {one: hits[one] for one in given if one in hits}
            case StepFinished(hits=found) if found and answer.strategy != _AGENT:
                new = {_key(hit): hit for hit in found}
                replaces = event.name in _RANKING
                hits = new | _without(hits, new) if replaces else hits | _without(new, hits)
                if event.name == "web_search":
                    web = found
            case StepStarted(input={"tools": list(tools)}):
                whole |= set() if _READING in tools else set(map(str, tools))
            case StepStarted(input=given_to) if "passages" in given_to:
                shown = _passages(given_to["passages"], hits, web)
                read |= _without(shown, read)
    listed = [_as_hit(one) for one in answer.citations if one.made_by == "passage"]
    if not answer.raw_text:
        read |= _without({_key(hit): hit for hit in listed}, read)
    return Surfaced(tuple(hits.values()), tuple(read.values()), tuple(_texts(answer.trace)))


def retrieved_by(trace: Sequence[TraceEvent]) -> dict[str, int]:
    """The o200k tokens of passages shown to the model, by tool or step."""
    tokens: Counter[str] = Counter()
    for event in trace:
        if isinstance(event, ToolReturned | StepFinished) and event.retrieved_tokens:
            tokens[event.name] += event.retrieved_tokens
    return dict(tokens.most_common())


def steps(answer: Answer) -> int:
    """How many turns the agent's model took, or how many steps a fixed strategy; the turn that a
    limit forced, and searches for passages that stand in for an answer, are no steps."""
    ended = [event.name for event in answer.trace if isinstance(event, StepFinished)]
    return ended.count(_TURN) if answer.strategy == _AGENT else len(ended)


def _key(hit: HitRecord) -> str:
    return hit.chunk_id or hit.uri


def _without(those: Mapping[str, HitRecord], known: Mapping[str, object]) -> dict[str, HitRecord]:
    return {key: hit for key, hit in those.items() if key not in known}


def _said_whole(event: ToolReturned, read: Mapping[str, object]) -> list[str]:
    """Ids of chunks that a tool's result says to be shown whole, or to have the same text as one
    of these or of those in `read`."""
    return [one for head in _HEAD.finditer(event.text) for one in _whole(head[1], head[2], read)]


def _whole(chunk_id: str, rest: str, read: Mapping[str, object]) -> Iterator[str]:
    found = _REMARKS.search(rest)
    remarks = found.group(1).split("; ") if found else []
    known = chunk_id in read
    if known or any(one in _whole_notes() or _same_note().match(one) for one in remarks):
        yield chunk_id
        for remark in remarks:  # those of equal text, folded into this one
            yield from _ID.findall(remark)


@cache
def _whole_notes() -> frozenset[str]:
    return frozenset([note("whole", "en"), note("whole", "zh")])


@cache
def _same_note() -> re.Pattern[str]:
    """Any text of the note that a chunk has the text of one shown before."""
    forms = (re.escape(note("same_as", language, id="1", number="2")) for language in ("en", "zh"))
    return re.compile(
        "|".join(form.replace("1", r"\d+-\d+").replace("2", r"\d+") for form in forms)
    )


def _passages(
    named: object, hits: Mapping[str, HitRecord], web: Sequence[HitRecord]
) -> dict[str, HitRecord]:
    """The hits that a prompt's passages are of."""
    found: dict[str, HitRecord] = {}
    for one in named if isinstance(named, Sequence) else ():
        of_web = _WEB.fullmatch(str(one))
        place = int(of_web.group(1)) if of_web else 0
        if 1 <= place <= len(web):
            found[_key(web[place - 1])] = web[place - 1]
        elif hit := hits.get(str(one)):
            found[_key(hit)] = hit
    return found


def _as_hit(citation: Citation) -> HitRecord:
    return HitRecord(
        chunk_id=citation.chunk_id,
        score=0.0,
        source_id=citation.source_id,
        title=citation.title,
        uri=citation.uri,
        page=citation.page,
        section=citation.section,
        snippet=citation.snippet,
    )


def _texts(trace: Iterable[TraceEvent]) -> Iterator[str]:
    for event in trace:
        if isinstance(event, ToolReturned):
            yield event.text
        if isinstance(event, ToolReturned | StepFinished):
            yield from (hit.snippet for hit in event.hits)
