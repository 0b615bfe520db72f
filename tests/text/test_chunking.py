"""Chunks: the text comes back, limits hold, every sentence knows its place."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag.text.chunking import ChunkDraft, chunk_document, text_to_embed
from agentic_rag.text.document import Document, GivenChunk, Heading, Page
from agentic_rag.text.tokens import count_tokens

PIECES = st.lists(
    st.sampled_from(
        [
            "# Title\n",
            "## Part\n",
            "### Small part\n",
            "A sentence of a few words. ",
            "Another one, which is a little longer than the first!\n",
            "第一条 为了保护个人信息权益，制定本法。",
            "（一）取得个人的同意；\n",
            "\n\n",
            "x" * 700 + " ",
            "漢" * 300,
        ]
    ),
    max_size=60,
)


def markdown(text: str, title: str = "Title", pages: tuple[Page, ...] = ()) -> Document:
    headings = []
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            marks, _, words = line.partition(" ")
            headings.append(Heading(offset, len(marks), words.strip()))
        offset += len(line)
    return Document("/d.md", title, "text/markdown", text, tuple(headings), pages)


def bodies(chunks: list[ChunkDraft]) -> list[str]:
    return [chunk.text[chunk.body_start :] for chunk in chunks]


@given(PIECES, st.integers(min_value=50, max_value=200))
def test_joining_the_chunks_gives_back_the_text(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    chunks = chunk_document(markdown(text), size=size)
    assert "".join(bodies(chunks)) == (text if text.strip() else "")
    assert all(count_tokens(body) <= size for body in bodies(chunks))


@given(PIECES, st.integers(min_value=50, max_value=200))
def test_sentences_lie_end_to_end_in_the_body(pieces: list[str], size: int) -> None:
    for chunk in chunk_document(markdown("".join(pieces)), size=size):
        assert chunk.sentences[0].start == chunk.body_start
        assert chunk.sentences[-1].end == len(chunk.text)
        for before, after in pairwise(chunk.sentences):
            assert before.end == after.start


@given(PIECES, st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=3))
def test_overlap_repeats_whole_sentences_and_loses_nothing(
    pieces: list[str], tokens: int, sentences: int
) -> None:
    text = "".join(pieces)
    found = bodies(chunk_document(markdown(text), 100, tokens, sentences))
    assert all(count_tokens(body) <= 100 for body in found)
    rest = text
    end = 0
    for body in found:
        # Each chunk begins inside or right after the one before, never past its end.
        start = next(
            s for s in range(end, -1, -1) if text.startswith(body, s) and s + len(body) > end
        )
        end = start + len(body)
        rest = text[end:]
    assert not rest.strip()


def test_overlap_in_sentences_repeats_that_many() -> None:
    text = " ".join(f"This is sentence number {i} of a longer text." for i in range(40))
    plain = Document("/d.txt", "d", "text/plain", text)
    chunks = chunk_document(plain, size=100, overlap_sentences=2)
    for before, after in pairwise(chunks):
        last_two = [before.text[s.start : s.end] for s in before.sentences[-2:]]
        first_two = [after.text[s.start : s.end] for s in after.sentences[:2]]
        assert last_two == first_two


def test_the_title_and_path_stand_before_a_body_that_does_not_hold_them() -> None:
    text = "# Title\n\nIntro.\n\n## Part\n\n" + "A sentence of a few words. " * 60
    first, *later = chunk_document(markdown(text), size=100)
    assert first.text.startswith("# Title\n\nIntro.")
    assert later[-1].text.startswith("Title › Part\nA sentence")
    assert later[-1].section == "Part"


def test_each_sentence_knows_the_headings_above_it() -> None:
    text = "# Title\nOne.\n## A\nTwo.\n### B\nThree.\n## C\nFour.\n"
    (chunk,) = chunk_document(markdown(text))
    places = {chunk.text[s.start : s.end].strip(): s for s in chunk.sentences}
    assert {name: place.section for name, place in places.items() if not place.is_heading} == {
        "One.": "",
        "Two.": "A",
        "Three.": "A › B",
        "Four.": "C",
    }
    assert places["## A"].is_heading


def test_a_top_heading_is_preferred_as_a_border() -> None:
    part = "A sentence of a few words. " * 9  # about 65 tokens
    chunks = chunk_document(markdown(f"## One\n{part}\n## Two\n{part}\n"), size=100)
    assert bodies(chunks)[1].startswith("## Two")


def test_sentences_know_their_page() -> None:
    text = "Page one text.\nPage two text.\n"
    document = Document("/d.pdf", "d", "application/pdf", text, (), (Page(0, 1), Page(15, 2)))
    (chunk,) = chunk_document(document)
    assert [sentence.page for sentence in chunk.sentences] == [1, 2]
    assert chunk.page == 1


def test_folders_come_before_headings_in_the_path() -> None:
    document = Document(
        "/a/b/d.md",
        "Title",
        "text/markdown",
        "## Part\nText.\n",
        (Heading(0, 2, "Part"),),
        knowledge_path=("b",),
    )
    (chunk,) = chunk_document(document)
    assert chunk.section == "b › Part"


def test_where_a_chunk_ends_does_not_depend_on_the_title() -> None:
    text = "A sentence of a few words. " * 100
    short = chunk_document(Document("/d", "d", "text/plain", text), size=100)
    long = chunk_document(Document("/d", "a very long title " * 20, "text/plain", text), size=100)
    assert bodies(short) == bodies(long)


def test_an_item_of_a_given_corpus_is_one_chunk_with_its_title_once() -> None:
    item = GivenChunk("17", "Demon Dice", "It is a game. It has dice.", {"year": 1995})
    (chunk,) = chunk_document(
        Document("/c.json", "c", "application/json", "", given_chunks=(item,))
    )
    assert chunk.text == "Demon Dice\nIt is a game. It has dice."
    assert [chunk.text[s.start : s.end] for s in chunk.sentences] == [
        "It is a game. ",
        "It has dice.",
    ]
    assert chunk.given == item


def test_a_document_of_white_space_has_no_chunk() -> None:
    assert chunk_document(Document("/d", "d", "text/plain", " \n\n ")) == []


def test_a_sentence_is_embedded_after_its_title_and_path() -> None:
    assert text_to_embed("Law", "Part › A", "A text\n  that wraps.\n") == (
        "Law. Part. A. A text that wraps."
    )
    assert text_to_embed("", "", "Text.") == "Text."


def test_a_title_that_opens_the_text_is_shown_once_and_is_no_sentence() -> None:
    text = "# Leave\n\nEveryone has thirty days."
    (chunk,) = chunk_document(Document("/d.md", "Leave", "text/markdown", text))
    assert chunk.text == text
    assert [s.is_heading for s in chunk.sentences] == [True, False]
