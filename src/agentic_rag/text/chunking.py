"""A document as chunks: whole sentences packed up to a token limit, each knowing its place.

Where a chunk ends depends on the text alone, never on titles or paths (EasyRAG found that they
must not influence it). With no overlap, joining the bodies of a document's chunks gives back
its text.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentic_rag.text.document import Document, GivenChunk, Heading, Table
from agentic_rag.text.sentences import Layout, Span, limited_spans, sentence_spans
from agentic_rag.text.tokens import count_tokens

PATH_SEPARATOR = " › "
# A heading of these levels ends a chunk that is at least half full.
_BORDER_LEVEL = 2
# A heading row that would take more than this part of a chunk is not repeated.
_HEADING_ROW_SHARE = 4
_ROWS = ("text/csv", "text/tab-separated-values", "application/json", "application/jsonl")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A span of a chunk's text, with the section path and page it stands under.

    `is_heading` marks a heading line above other text: it is shown and searched as words, but
    gets no vector, since every sentence below it is embedded with it.
    """

    start: int
    end: int
    section: str
    page: int | None
    is_heading: bool = False


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it has a number.

    `text` is what is shown and searched: a first line with the title and those parts of the
    section path that the body does not itself hold, the heading row of a table that the chunk
    goes on with, then the body, which begins at `body_start`.
    """

    text: str
    body_start: int
    sentences: tuple[Sentence, ...]
    tokens: int
    title: str
    section: str
    page: int | None
    given: GivenChunk | None = None


def chunk_document(
    document: Document, size: int = 1000, overlap_tokens: int = 0, overlap_sentences: int = 0
) -> list[ChunkDraft]:
    """The chunks of a document, in order; none for a document without text.

    `size` and `overlap_tokens` are o200k tokens of the body. Sentences are repeated at the
    start of the next chunk while they fit into `overlap_tokens`, or up to `overlap_sentences`,
    whichever repeats more, and never more than half of `size`.
    """
    if document.given_chunks is not None:
        return [_given_chunk(item) for item in document.given_chunks]
    text = document.text
    sized = limited_spans(text, _spans(document), size)
    places = _Places(document)
    return [
        _draft(document, places, [span for span, _ in part], size)
        for part in _packed(sized, places, size, overlap_tokens, overlap_sentences)
    ]


def text_to_embed(title: str, section: str, sentence: str) -> str:
    """What a sentence is embedded as: its title and section path before it, on one line.

    Plain full stops part them: against a line break they are worth five points of recall
    (musique, R@5 .686 and .636), as embedding models were trained on running text.
    """
    place = ". ".join([part for part in (title, *section.split(PATH_SEPARATOR)) if part])
    line = " ".join(sentence.split())
    return f"{place}. {line}" if place else line


def _spans(document: Document) -> list[Span]:
    """The sentences of a document; in a table each row is one, in code a few lines are."""
    text, layout = document.text, _layout(document.media_type)
    marked: list[tuple[int, int, Layout]] = [
        *((table.start, table.end, "rows") for table in document.tables),
        *((code.start, code.end, "code") for code in document.code),
    ]
    if layout != "prose" or not marked:
        return sentence_spans(text, layout)
    spans: list[Span] = []
    at = 0
    for start, end, inside in sorted(marked):
        spans += _within(text, at, start, layout)
        spans += _within(text, start, end, inside)
        at = end
    return spans + _within(text, at, len(text), layout)


def _within(text: str, start: int, end: int, layout: Layout) -> list[Span]:
    piece = text[start:end]
    if not piece.strip():  # white space between two tables: kept, as a piece of its own
        return [(start, end)] if piece else []
    return [(start + first, start + last) for first, last in sentence_spans(piece, layout)]


def _layout(media_type: str) -> Layout:
    if media_type in _ROWS:
        return "rows"
    return "code" if media_type.startswith("text/x-") else "prose"


Sized = tuple[Span, int]


def _packed(
    sized: Sequence[Sized],
    places: "_Places",
    size: int,
    overlap_tokens: int,
    overlap_sentences: int,
) -> Iterator[list[Sized]]:
    part: list[Sized] = []
    fresh = 0  # sentences of `part` that are not repeated from the chunk before
    total = 0
    for item in sized:
        border = fresh and total >= size // 2 and places.top_heading_in(item[0])
        if fresh and (total + item[1] > size or border):
            yield part
            part = (
                []
                if border
                else _tail(part, size - item[1], size, overlap_tokens, overlap_sentences)
            )
            fresh, total = 0, sum(tokens for _, tokens in part)
        part.append(item)
        fresh += 1
        total += item[1]
    if fresh:
        yield part


def _tail(
    part: list[Sized], room: int, size: int, overlap_tokens: int, overlap_sentences: int
) -> list[Sized]:
    kept = tokens = 0
    for _, count in reversed(part[1:]):
        wanted = kept < overlap_sentences or tokens + count <= overlap_tokens
        if not wanted or tokens + count > min(room, size // 2):
            break
        kept += 1
        tokens += count
    return part[len(part) - kept :]


class _Places:
    """Looks up the headings and the page above an offset of a document's text."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._starts = [heading.start for heading in document.headings]
        self._page_starts = [page.start for page in document.pages]
        self._table_starts = [table.start for table in document.tables]
        self._paths = list(_heading_paths(document.headings))

    def headings_at(self, offset: int) -> tuple[Heading, ...]:
        """The headings above the text at `offset`, outermost first."""
        found = bisect_right(self._starts, offset) - 1
        return self._paths[found] if found >= 0 else ()

    def page_at(self, offset: int) -> int | None:
        found = bisect_right(self._page_starts, offset) - 1
        return self._document.pages[found].number if found >= 0 else None

    def headings_in(self, span: Span) -> list[Heading]:
        first = bisect_right(self._starts, span[0] - 1)
        last = bisect_right(self._starts, span[1] - 1)
        return list(self._document.headings[first:last])

    def heading_row_above(self, offset: int) -> str:
        """The heading row of the table whose other rows `offset` lies among, or ""."""
        found = bisect_right(self._table_starts, offset) - 1
        if found < 0:
            return ""
        table: Table = self._document.tables[found]
        inside = table.body <= offset < table.end
        return self._document.text[table.start : table.body] if inside else ""

    def top_heading_in(self, span: Span) -> bool:
        return any(heading.level <= _BORDER_LEVEL for heading in self.headings_in(span))


def _heading_paths(headings: Sequence[Heading]) -> Iterator[tuple[Heading, ...]]:
    path: list[Heading] = []
    for heading in headings:
        path = [above for above in path if above.level < heading.level]
        path.append(heading)
        yield tuple(path)


def _draft(document: Document, places: _Places, spans: list[Span], size: int) -> ChunkDraft:
    start, end = spans[0][0], spans[-1][1]
    body = document.text[start:end]
    own = {heading.text for heading in places.headings_in((start, end))}
    if _opens_with_title(document, body):
        own.add(document.title)
    first_text = _first_offset(document.text, spans[0])
    above = [heading.text for heading in places.headings_at(first_text)]
    path = _path(document, above)
    missing = [part for part in (document.title, *path) if part and part not in own]
    header = PATH_SEPARATOR.join(missing) + "\n" if missing else ""
    heading_row = places.heading_row_above(first_text)
    if heading_row and count_tokens(heading_row) <= size // _HEADING_ROW_SHARE:
        header += heading_row
    shift = len(header) - start
    sentences = []
    for index, span in enumerate(spans):
        offset = _first_offset(document.text, span)
        headings = [heading.text for heading in places.headings_at(max(offset, span[1] - 1))]
        sentences.append(
            Sentence(
                span[0] + shift,
                span[1] + shift,
                PATH_SEPARATOR.join(_path(document, headings)),
                places.page_at(offset),
                index + 1 < len(spans)
                and (
                    _only_heading(document, places, span)
                    or (span[0] == 0 and _opens_with_title(document, document.text[slice(*span)]))
                ),
            )
        )
    text = header + body
    sections = [s.section for s in sentences if not s.is_heading] or [sentences[0].section]
    return ChunkDraft(
        text=text,
        body_start=len(header),
        sentences=tuple(sentences),
        tokens=count_tokens(text),
        title=document.title,
        section=_common_path(sections),
        page=sentences[0].page,
    )


def _opens_with_title(document: Document, text: str) -> bool:
    """Whether a text begins with its document's title as a line of its own (a lone H1 is the
    title and no heading)."""
    first = text.lstrip().partition("\n")[0]
    return bool(document.title) and first.strip("#=*- \t") == document.title


def _path(document: Document, headings: Sequence[str]) -> list[str]:
    """Folders and headings above a text, without the heading that is the title itself."""
    return [*document.knowledge_path, *(h for h in headings if h != document.title)]


def _common_path(sections: Sequence[str]) -> str:
    """The part of the path that all sentences share; the first one's where they share none."""
    paths = [section.split(PATH_SEPARATOR) for section in sections]
    common = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return PATH_SEPARATOR.join(common) or sections[0]


def _first_offset(text: str, span: Span) -> int:
    piece = text[slice(*span)]
    return span[0] + len(piece) - len(piece.lstrip())


def _only_heading(document: Document, places: _Places, span: Span) -> bool:
    headings = places.headings_in(span)
    if not headings:
        return False
    line = document.text[headings[-1].start : span[1]].strip()
    return len(headings) == 1 and headings[0].text in line and "\n" not in line


def _given_chunk(item: GivenChunk) -> ChunkDraft:
    header = f"{item.title}\n" if item.title else ""
    shift = len(header)
    spans = sentence_spans(item.text) or ([(0, len(item.text))] if item.text else [])
    text = header + item.text
    return ChunkDraft(
        text=text,
        body_start=shift,
        sentences=tuple(Sentence(s + shift, e + shift, "", None) for s, e in spans),
        tokens=count_tokens(text),
        title=item.title,
        section="",
        page=None,
        given=item,
    )
