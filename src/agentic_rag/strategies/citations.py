"""Citations: chunk ids in a streaming reply become numbered, checked marks.

The writer takes the model's text in pieces of any size and gives back text with `[1]`, `[2]` …
in order of first appearance. Ids that were not shown are taken out and reported. A sentence that
ends without a citation is matched to the passages shown and gets a mark of its own, or is listed
as unsupported. Because this happens while the text streams, what a reader saw is the answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentic_rag.strategies.answer import Citation, MadeBy
from agentic_rag.strategies.marks import OPENING, link_target, read_bracket
from agentic_rag.strategies.support import Passage, Support, is_claim
from agentic_rag.text.language import HAN

_STOPS = ".!?。！？…"
_HAN_STOPS = "。！？…"
_CLOSERS = "\"'”’」』）)》*_"
_STOP_RUN = re.compile(f"[{_STOPS}]+[{re.escape(_CLOSERS)}]*")
_PLAIN = re.compile(rf"[^\s{_STOPS}`|{re.escape(OPENING)}]+|\s")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|mr|mrs|ms|dr|prof|st|no|nos|vs|fig|figs|eq|art|sec|ch|vol|pp?|ed|eds|approx|"
    r"ca|cf|jr|sr|gen|col|lt|sgt|rev|hon|gov|sen|rep|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
    r"|e\.g|i\.e)\.$",
    re.IGNORECASE,
)
_YEAR_OF_RULE = re.compile(r"[\[［【]((?:1[89]|20)\d\d)[\]］】](?=\s*第?\s*\d+\s*号)")
_YEAR_MAY_COME = re.compile(r"[\[［【]\d{0,4}|[\[［【]\d{4}[\]］】]\s*第?\s*\d{0,6}\s*")
_ONE_HAN = re.compile(f"[{HAN}]")
_ENDS_IN_HAN = re.compile(f"[{HAN}{_HAN_STOPS}”’」』）》]$")
_LONGEST_CODE = 400  # characters; an inline code that is longer was a stray backtick
_COMMA_BETWEEN = re.compile(rf"[ \t]*[,、，][ \t]*(?=[{re.escape(OPENING)}])")
_COMMA_MAY_COME = re.compile(r"[ \t]*[,、，]?[ \t]*")
_LIST_MARK = re.compile(r"^(?:[-*+•>]\s+|\d{1,3}[.)、]\s+)+")
_DROPS_GAP = ("", " ", "\t", "\n", *".,;:!?)，。；：！？、）")
_HALF_MARK = re.compile(rf"[{re.escape(OPENING)}]+[\^#]?[\d\s,;、-]*")
_LIST_NUMBER = re.compile(r"\s*\(?(?:\d{1,3}|[A-Za-z])[.)]$")


@dataclass(frozen=True, slots=True)
class Cited:
    """A text with its marks checked. `citations[i].number` is i + 1."""

    text: str
    citations: tuple[Citation, ...]
    unsupported: tuple[str, ...]
    removed: tuple[str, ...]


def cite(raw: str, passages: Sequence[Passage]) -> Cited:
    """`raw`, a model's whole text, with its marks checked against `passages`."""
    writer = CitationWriter(passages)
    writer.feed(raw)
    writer.finish()
    return writer.result()


@dataclass(slots=True)
class _Source:
    passage: Passage
    number: int
    by_model: bool = False
    cited_by: list[str] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)


class CitationWriter:
    """Feed it the text in pieces, then `finish()`; each gives back what may be shown."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = {passage.chunk_id: passage for passage in passages}
        self._support = Support(list(self._passages.values()))
        self._sources: dict[str, _Source] = {}
        self._removed: dict[str, None] = {}
        self._unsupported: list[str] = []
        self._in: str = ""  # not yet read
        self._out: list[str] = []
        self._gap = ""  # blanks read and not yet written
        self._sentence = ""  # the sentence so far, without marks
        self._cited: list[str] = []  # ids cited in it
        self._line = ""  # the line so far, as written
        self._fence = False
        self._ending = False  # a stop was read: the sentence ends unless a mark follows
        self._open = False  # the line holds a bracket that was left as text, unclosed
        self._last_mark = ""  # the id just marked, while nothing has followed it
        self._taken = 0
        self._sources_taken = 0

    def feed(self, piece: str) -> str:
        """What can be shown once `piece` has come."""
        self._in += piece
        return self._read(final=False)

    def finish(self) -> str:
        """What was held back, now that nothing follows."""
        shown = self._read(final=True)
        self._end_sentence()
        return shown + self._take_new()

    def break_off(self) -> str:
        """What was held back of a text that ends here in its middle: half a mark is left out, and
        the sentence that was begun is neither matched nor called unsupported."""
        shown = self._read(final=False)
        if _HALF_MARK.fullmatch(self._in):
            self._in = ""
        return shown + self._read(final=True)

    def take_sources(self) -> tuple[Citation, ...]:
        """The sources named since the last call, with what is known of them by now."""
        new = list(self._sources.values())[self._sources_taken :]
        self._sources_taken = len(self._sources)
        return tuple(self._citation(source, self._sentence.strip()) for source in new)

    def result(self) -> Cited:
        """The whole text and its citations, after `finish()`."""
        return Cited(
            text="".join(self._out),
            citations=tuple(self._citation(source) for source in self._sources.values()),
            unsupported=tuple(self._unsupported),
            removed=tuple(self._removed),
        )

    # -- reading; each step returns how many characters it used, 0 when more must come first

    def _read(self, final: bool) -> str:
        while self._in:
            used = self._step(final)
            if used == 0:
                break
            self._in = self._in[used:]
        return self._take_new()

    def _take_new(self) -> str:
        new = "".join(self._out[self._taken :])
        self._taken = len(self._out)
        return new

    def _step(self, final: bool) -> int:
        text = self._in
        if self._fence:
            return self._code_line(final)
        if text[0] in " \t":
            blanks = len(text) - len(text.lstrip(" \t"))
            self._gap += text[:blanks]
            return blanks
        if text[0] in OPENING:
            return self._bracket(final)
        if self._ending:
            self._end_sentence()
        if text[0] == "\n":
            self._end_sentence()
            self._gap += "\n"  # written with what follows, so that none is left at the end
            self._line, self._open = "", False
            return 1
        if text[0] == "`":
            return self._code(final)
        if text[0] in _STOPS:
            return self._stop(final)
        if text[0] == "|":
            return self._bar(final)
        run = _PLAIN.match(text)
        assert run is not None  # every other first character was dealt with
        self._write(run.group())
        return run.end()

    def _code_line(self, final: bool) -> int:
        end = self._in.find("\n") + 1
        if not end and not final:
            return 0
        line = self._in[: end or len(self._in)]
        if line.strip().startswith("```"):
            self._fence = False
        self._write(line)
        self._line, self._sentence = "", ""
        return len(line)

    def _code(self, final: bool) -> int:
        text = self._in
        run = len(text) - len(text.lstrip("`"))
        if run == len(text) and not final:
            return 0
        if run >= 3 and not self._line.strip():
            self._end_sentence()
            self._fence = True
            self._write(text[:run])
            return run
        close = re.search(rf"(?<!`)`{{{run}}}(?!`)", text[run:])
        line = text.find("\n")
        if close and (line < 0 or run + close.start() < line):
            end = run + close.end()
            if end == len(text) and not final:
                return 0  # one more backtick would change what this is
            self._write(text[:end])
            return end
        if not final and line < 0 and len(text) < _LONGEST_CODE:
            return 0
        self._write(text[:run])
        return run

    def _stop(self, final: bool) -> int:
        text = self._in
        run = _STOP_RUN.match(text)
        assert run is not None
        rest = text[run.end() :]
        following = rest.lstrip(" \t")
        if not following and not final:
            return 0
        self._write(run.group())
        if any(c in _HAN_STOPS for c in run.group()):
            self._ending = True
        elif not rest or rest[0] in " \t\n" or rest[0] in OPENING:
            short = run.group() == "." and (
                _ABBREVIATION.search(self._sentence) or _LIST_NUMBER.fullmatch(self._line)
            )
            self._ending = not short and not following[:1].islower()
        return run.end()

    def _bar(self, final: bool) -> int:
        """A table's row ends before its last bar, so that a mark stays inside the cell."""
        if len(self._in) == 1 and not final:
            return 0
        if self._in[1:2] in ("", "\n"):
            self._end_sentence()
        self._write("|")
        return 1

    def _bracket(self, final: bool) -> int:
        text = self._in
        year = _YEAR_OF_RULE.match(text)
        before = (self._line + self._gap)[-1:]
        if _ONE_HAN.match(before):
            if year:  # 国发[2024]5号: the brackets such numbers are printed with are 〔〕
                self._write(f"〔{year.group(1)}〕")
                return year.end()
            if not final and _YEAR_MAY_COME.fullmatch(text):
                return 0
        bracket = read_bracket(text)
        if bracket is None:
            if not final:
                return 0
            return self._plain_bracket(1)
        target = link_target(text[bracket.length :])
        if target is None and not final:
            return 0
        end = bracket.length + (target or 0)
        if not bracket.names:
            return self._plain_bracket(end)
        known = [name for name in bracket.names if name in self._passages]
        self._removed.update(dict.fromkeys(n for n in bracket.names if n not in self._passages))
        if known:
            self._mark(known)
        else:
            comma = _COMMA_BETWEEN.match(text[end:])
            if comma is None:
                return 0 if _COMMA_MAY_COME.fullmatch(text[end:]) and not final else self._drop(end)
            return self._drop(end + comma.end())
        return end

    def _drop(self, end: int) -> int:
        """Leave out a mark that names nothing, and the blank before it where one is enough."""
        text = self._in
        if self._open:  # "[1[9]]" must not turn into a mark by losing its inside
            self._gap = self._gap or " "
        elif text[end : end + 1] in _DROPS_GAP:
            self._gap = self._gap.rstrip(" \t")
        return end

    def _plain_bracket(self, end: int) -> int:
        if self._ending:
            self._end_sentence()
        self._open = self._open or end == 1
        self._write(self._in[:end])
        return end

    # -- writing

    def _write(self, text: str) -> None:
        text = self._gap + text
        self._gap = self._last_mark = ""
        self._out.append(text)
        self._sentence += text
        self._line += text.rpartition("\n")[2]

    def _mark(self, names: Sequence[str]) -> None:
        for name in names:
            source = self._source(name)
            source.by_model = True
            if name not in self._cited:
                self._cited.append(name)
            if self._last_mark != name:
                self._put(f"{self._gap}[{source.number}]")
                self._gap = ""
            self._last_mark = name

    def _put(self, mark: str) -> None:
        self._out.append(mark)
        self._line += mark

    def _source(self, name: str) -> _Source:
        if name not in self._sources:
            self._sources[name] = _Source(self._passages[name], len(self._sources) + 1)
        return self._sources[name]

    def _end_sentence(self) -> None:
        sentence, cited = self._sentence.strip(), self._cited
        self._sentence, self._cited, self._ending, self._last_mark = "", [], False, ""
        sentence = _LIST_MARK.sub("", sentence)
        if cited:
            for name in cited:
                self._sources[name].cited_by.append(sentence)
        elif is_claim(sentence):
            passage = self._support.find(sentence)
            if passage is None:
                self._unsupported.append(sentence)
                return
            source = self._source(passage.chunk_id)
            source.matched.append(sentence)
            close = _ENDS_IN_HAN.search(sentence)
            self._put(f"[{source.number}]" if close else f" [{source.number}]")

    def _citation(self, source: _Source, begun: str = "") -> Citation:
        passage = source.passage
        made_by: MadeBy = "model" if source.by_model else "matched"
        return Citation(
            number=source.number,
            chunk_id=passage.chunk_id if passage.origin == "documents" else "",
            origin=passage.origin,
            source_id=passage.source_id,
            title=passage.title,
            uri=passage.uri,
            page=passage.page,
            section=passage.section,
            snippet=self._support.snippet(passage, [*source.cited_by, *source.matched] or [begun]),
            made_by=made_by,
            matched_sentences=tuple(source.matched),
        )
