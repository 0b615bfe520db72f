"""Snippets: the matched sentences of a chunk in reading order, joined by " … "."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentic_rag.knowledge_base.keyword import word_pattern
from agentic_rag.text.chunking import PATH_SEPARATOR
from agentic_rag.text.words import words

JOINER = " … "
_MOST = 5  # sentences of a snippet; A-RAG
_LONGEST = 600  # characters shown of one sentence
_LONGEST_HEADING = 500  # characters, its marks included
# What is no letter of a heading: its attributes and the targets of its links, then all marks.
_TARGETS = re.compile(r"\{[#.:][^{}]*\}|\]\([^()\s]*\)")
_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence's span in the chunk's text, its section path and page; `heading` is how it reads
    with its place if it is a heading, "" if it is none."""

    start: int
    end: int
    section: str
    page: int | None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A snippet with the place of its first matched sentence (None for the title line)."""

    text: str
    place: Place | None


def heading_with_place(line: str, title: str, section: str, chunk_section: str) -> str:
    """`Title › Section` for a line that is only a heading, however its format marks it; "" for any
    other. `section` is the line's own path; a line that is the title stands above the chunk's."""
    name = section.rpartition(PATH_SEPARATOR)[2]
    said = _letters(line) if len(line) <= _LONGEST_HEADING else ""
    if said and said == _letters(name):
        return PATH_SEPARATOR.join(filter(None, [title, section]))
    if said and said == _letters(title):
        return PATH_SEPARATOR.join(filter(None, [title, chunk_section]))
    return ""


def _letters(text: str) -> str:
    return _MARKS.sub("", _TARGETS.sub("", text)).casefold()


def of_sentences(text: str, places: Sequence[Place], wanted: Sequence[int]) -> Snippet:
    """The snippet of the sentences with these indexes, given best first."""
    wanted = [index for index in wanted if index < len(places)][:_MOST]
    if not wanted:
        return Snippet(_shown(text, ()), None)
    shown = [_sentence(text, places[i], ()) for i in sorted(set(wanted))]
    return Snippet(JOINER.join(shown), places[wanted[0]])


def of_keywords(
    text: str, places: Sequence[Place], keywords: Iterable[str], whole_words: bool = False
) -> Snippet:
    """The sentences that contain a keyword; both where a match spans two; the first line where
    only that contains one."""
    lowered = [keyword.lower() for keyword in keywords]
    sentences = [text[place.start : place.end].lower() for place in places]
    matches = Counter[int]()
    for keyword in lowered:
        inside = {i: n for i, s in enumerate(sentences) if (n := _matches(s, keyword, whole_words))}
        matches.update(inside or _spanning(sentences, keyword, whole_words))
    wanted = sorted(matches, key=lambda index: (-matches[index], index))
    if wanted:
        chosen = sorted(wanted[:_MOST])
        shown = [_sentence(text, places[i], lowered) for i in chosen]
        return Snippet(JOINER.join(shown), places[wanted[0]])
    header = text[: places[0].start] if places else text
    return Snippet(_shown(header or text, lowered), None)


def _spanning(sentences: Sequence[str], keyword: str, whole_words: bool) -> dict[int, int]:
    for index, pair in enumerate(pairwise(sentences)):
        if _matches("".join(pair), keyword, whole_words):
            return {index: 1, index + 1: 1}
    return {}


def of_words(text: str, places: Sequence[Place], query_words: Sequence[str]) -> Snippet:
    """The sentences with the most different words of a query."""
    wanted = _with_words(text, places, query_words)
    return of_sentences(text, places, wanted) if wanted else of_keywords(text, places, query_words)


def of_sentences_and_words(
    text: str, places: Sequence[Place], wanted: Sequence[int], query_words: Sequence[str]
) -> Snippet:
    """The wanted sentences and the one with the most different words of the query."""
    by_words = _with_words(text, places, query_words)[:1]
    return of_sentences(text, places, list(dict.fromkeys([*wanted[:3], *by_words])))


def _with_words(text: str, places: Sequence[Place], query_words: Iterable[str]) -> list[int]:
    wanted = set(query_words)
    scored = []
    for index, place in enumerate(places):
        found = wanted & set(words(text[place.start : place.end]))
        if found:
            scored.append((-sum(len(word) for word in found), index))
    return [index for _, index in sorted(scored)[:3]]


def _matches(text: str, keyword: str, whole_words: bool) -> int:
    if whole_words:
        return len(word_pattern(keyword).findall(text))
    return text.count(keyword)


def _sentence(text: str, place: Place, keywords: Sequence[str]) -> str:
    return place.heading or _shown(text[place.start : place.end], keywords)


def _shown(sentence: str, keywords: Sequence[str]) -> str:
    """A sentence on one line; a very long one around its first match."""
    line = " ".join(sentence.split())
    if len(line) <= _LONGEST:
        return line
    found = [at for at in (line.lower().find(keyword) for keyword in keywords) if at >= 0]
    start = max(0, min(found) - _LONGEST // 2) if found else 0
    end = start + _LONGEST
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
