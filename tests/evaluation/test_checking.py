"""What a check of a data set finds."""

from agentic_rag.evaluation.checking import check
from agentic_rag.evaluation.formats.prepared import CorpusChunk, Prepared
from agentic_rag.evaluation.records import GoldQuestion
from agentic_rag.text.tokens import count_tokens

CHUNKS = (
    CorpusChunk("0", "Pump", "Pump\nThe second pump was replaced in 2019."),
    CorpusChunk("1", "水泵", "水泵\n院长批准出国。"),
    CorpusChunk("2", "", "The second pump was replaced in 2019."),
    CorpusChunk("3", "", "The second pump was replaced in 2019."),
)


def question(qid: str, answer: str, *supporting: str, text: str = "") -> GoldQuestion:
    return GoldQuestion(
        qid=qid, question=text or f"What of {qid}?", answer=answer, supporting=supporting, kind="k"
    )


def test_a_sound_dataset_has_counts_and_no_finding() -> None:
    found = check(
        Prepared((question("a", "2019", "0"), question("b", "院长", "1", "0")), CHUNKS[:2])
    )
    assert (found.questions, found.kinds, found.chunks) == (2, {"k": 2}, 2)
    assert found.supporting == 1.5
    assert found.chunk_tokens == sum(count_tokens(chunk.text) for chunk in CHUNKS[:2]) / 2
    assert not any(
        (
            *(found.no_answer, found.no_supporting, found.missing),
            *(found.answer_elsewhere, found.same_question, found.equal_chunks),
        )
    )


def test_each_fault_is_found_under_its_name() -> None:
    questions = (
        question("none", "", "0"),
        question("bare", "2019"),
        question("lost", "2019", "0", "9"),
        question("else", "The year 2020", "0"),
        question("gone", "2020", "9"),  # without a supporting chunk nothing can be said
        question("verdict", "No", "0"),
        question("again", "2019", "0", text="what of   lost"),
    )
    found = check(Prepared(questions, CHUNKS))
    assert found.no_answer == ("none",)
    assert found.no_supporting == ("bare",)
    assert found.missing == (("lost", "9"), ("gone", "9"))
    assert found.answer_elsewhere == ("else",)
    assert found.same_question == ("again",)
    assert found.equal_chunks == ("3",)


def test_an_alias_in_a_supporting_chunk_is_an_answer_there() -> None:
    known = GoldQuestion(
        qid="a", question="Who?", answer="the dean", aliases=("院长",), supporting=("1",)
    )
    assert check(Prepared((known,), CHUNKS)).answer_elsewhere == ()


def test_without_chunks_nothing_is_said_about_them() -> None:
    found = check(Prepared((question("a", "2019", "docs/pump.md"),), None))
    assert (found.chunks, found.chunk_tokens, found.missing) == (None, None, ())
    assert found.answer_elsewhere == ()
