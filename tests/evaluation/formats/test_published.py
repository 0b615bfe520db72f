"""The published forms of data sets, each in a small file as its authors lay it out."""

import json
from pathlib import Path

import pytest

from agentic_rag.evaluation.dataset import BadDataset
from agentic_rag.evaluation.formats.prepared import CorpusChunk, Prepared
from agentic_rag.evaluation.prepare import Files, form_of, read_form

PUMP = ["Blue Bridge", ["Blue Bridge is a station.", " It has two pumps."]]
KESTREL = ["Kestrel", ["The Kestrel is a pump made in Lisbon."]]
OTHER = ["Otter", ["The otter swims."]]
HOTPOT = {
    "_id": "5a7a",
    "question": "Where was the pump of Blue Bridge made?",
    "answer": "Lisbon",
    "type": "bridge",
    "level": "hard",
    "context": [PUMP, OTHER, KESTREL],
    "supporting_facts": [["Kestrel", 0], ["Blue Bridge", 1], ["Blue Bridge", 0]],
}
HOTPOT_TOO = {
    **HOTPOT,
    "_id": "5a7b",
    "question": "Is the Kestrel a bird?",
    "answer": "no",
    "type": "comparison",
    "context": [KESTREL, ["Otter", ["Another text about otters."]]],
    "supporting_facts": [["Kestrel", 0]],
}


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def lines(path: Path, *records: object) -> Path:
    text = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read(form: str, path: Path, corpus: Path | None = None, limit: int | None = None) -> Prepared:
    return read_form(form, Files(path, corpus, limit)).prepared


def texts(prepared: Prepared) -> dict[str, str]:
    return {chunk.chunk_id: chunk.text for chunk in prepared.chunks or ()}


def test_hotpotqa_gives_paragraphs_as_chunks_and_supporting_facts_as_their_ids(
    tmp_path: Path,
) -> None:
    prepared = read("hotpotqa", written(tmp_path / "dev.json", [HOTPOT, HOTPOT_TOO]))
    assert texts(prepared) == {
        "0": "Blue Bridge\nBlue Bridge is a station. It has two pumps.",
        "1": "Otter\nThe otter swims.",
        "2": "Kestrel\nThe Kestrel is a pump made in Lisbon.",  # once, though two questions have it
        "3": "Otter\nAnother text about otters.",
    }
    first, second = prepared.questions
    assert (first.qid, first.answer, first.kind) == ("5a7a", "Lisbon", "bridge")
    assert first.supporting == ("2", "0")
    assert (second.supporting, second.kind) == (("2",), "comparison")
    assert prepared.notes == ()


def test_a_limit_takes_the_paragraphs_of_the_first_questions_alone(tmp_path: Path) -> None:
    prepared = read("hotpotqa", written(tmp_path / "dev.json", [HOTPOT, HOTPOT_TOO]), limit=1)
    assert [question.qid for question in prepared.questions] == ["5a7a"]
    assert len(texts(prepared)) == 3


@pytest.mark.parametrize(
    "context",
    [
        {"title": ["Blue Bridge", "Kestrel"], "sentences": [PUMP[1], KESTREL[1]]},
        json.dumps([PUMP, KESTREL]),
        [{"title": "Blue Bridge", "sentences": PUMP[1]}, {"title": "Kestrel", "sentences": []}],
    ],
)
def test_copies_of_hotpotqa_with_columns_or_json_in_a_string_are_read(
    tmp_path: Path, context: object
) -> None:
    record = {
        "id": "1",
        "question": "Where?",
        "answer": "Lisbon",
        "context": context,
        "supporting_facts": {"title": ["Kestrel"], "sent_id": [0]},
    }
    prepared = read("auto", lines(tmp_path / "dev.jsonl", record, {**record, "id": "2"}))
    assert texts(prepared)["0"] == "Blue Bridge\nBlue Bridge is a station. It has two pumps."
    assert [question.supporting for question in prepared.questions] == [("1",), ("1",)]


def test_a_supporting_paragraph_of_fullwiki_is_looked_for_in_the_whole_corpus(
    tmp_path: Path,
) -> None:
    lost = {**HOTPOT, "context": [OTHER], "supporting_facts": [["Kestrel", 0], ["Gone", 0]]}
    prepared = read("hotpotqa", written(tmp_path / "dev.json", [lost, HOTPOT_TOO]))
    assert prepared.questions[0].supporting == ("1", "Gone")
    assert [note[-3:] for note in prepared.notes] == [" 2."]


def test_sentences_without_spaces_between_are_joined_as_their_script_is(tmp_path: Path) -> None:
    record = {**HOTPOT, "context": [["A", ["One.", "Two."]], ["水泵", ["一号泵。", "二号泵。"]]]}
    record["supporting_facts"] = []
    prepared = read("2wiki", written(tmp_path / "dev.json", [record]))
    assert list(texts(prepared).values()) == ["A\nOne. Two.", "水泵\n一号泵。二号泵。"]


def test_the_test_set_of_hotpotqa_has_no_answers_and_is_read(tmp_path: Path) -> None:
    record = {key: HOTPOT[key] for key in ("_id", "question", "context")}
    (question,) = read("auto", written(tmp_path / "test.json", [record])).questions
    assert (question.golds, question.supporting) == ((), ())


def test_2wiki_takes_other_names_of_an_answer_from_the_file_beside_it(tmp_path: Path) -> None:
    record = {**HOTPOT, "type": "compositional", "evidences": [], "answer_id": "Q597"}
    lines(
        tmp_path / "id_aliases.json",
        {"Q_id": "Q597", "aliases": ["Lisboa", "Lisbon"], "demonyms": ["Lisboner"]},
        {"Q_id": "Q1", "aliases": ["x"], "demonyms": []},
    )
    path = written(tmp_path / "dev.json", [record])
    assert form_of(path) == "2wiki"
    (question,) = read("auto", path).questions
    assert question.golds == ("Lisbon", "Lisboa", "Lisboner")
    assert question.kind == "compositional"


def musique(qid: str, answerable: bool | None = True) -> dict[str, object]:
    paragraphs = [
        {"idx": 0, "title": "A", "paragraph_text": "First.", "is_supporting": False},
        {"idx": 1, "title": "B", "paragraph_text": f"Of {qid}.", "is_supporting": True},
    ]
    record = {"id": qid, "question": f"What of {qid}?", "answer": "It", "paragraphs": paragraphs}
    if answerable is not None:
        record |= {"answerable": answerable, "answer_aliases": ["That", "It"]}
    return record


def test_musique_gives_the_number_of_hops_as_the_kind(tmp_path: Path) -> None:
    path = lines(tmp_path / "dev.jsonl", musique("2hop__1_2"), musique("3hop1__1_2_3", None))
    prepared = read("auto", path)
    assert [question.kind for question in prepared.questions] == ["2hop", "3hop1"]
    assert prepared.questions[0].golds == ("It", "That")
    assert [question.supporting for question in prepared.questions] == [("1",), ("2",)]
    assert list(texts(prepared)) == ["0", "1", "2"]


def test_the_questions_of_musique_full_that_have_no_answer_are_left_out(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "full.jsonl",
        musique("2hop__1"),
        musique("2hop__1", answerable=False),
        musique("2hop__2", answerable=False),
        musique("2hop__2"),
        musique("2hop__3"),
    )
    prepared = read("musique", path)
    assert [question.qid for question in prepared.questions] == ["2hop__1", "2hop__2", "2hop__3"]
    assert prepared.notes == ("Questions left out, since their paragraphs do not answer them: 2.",)
    assert len(read("musique", path, limit=2).questions) == 2


NOVEL = {
    "id": "Novel-1",
    "source": "Novel-44557",
    "question": "What is Erica vagans called?",
    "answer": "Cornish heath",
    "question_type": "Fact Retrieval",
    "evidence": ["The plant Erica vagans, is called\n“Cornish heath”"],
}
BOOK = "It rained for days. " * 150 + "The plant Erica vagans is called 'Cornish heath'. The end."


def test_graphrag_bench_is_cut_and_evidence_is_found_word_for_word(tmp_path: Path) -> None:
    questions = written(
        tmp_path / "novel_questions.json",
        [
            NOVEL,
            {**NOVEL, "id": "Novel-2", "evidence": "Heath grows in Cornwall, they say."},
            {**NOVEL, "id": "Novel-3", "evidence": "Reworded. It rained for days.", "source": "no"},
        ],
    )
    corpus = written(
        tmp_path / "novel.json",
        [
            {"corpus_name": "Novel-1", "context": "Another book."},
            {"corpus_name": "Novel-44557", "context": BOOK},
        ],
    )
    prepared = read_form("auto", Files(questions, corpus, chunk_tokens=200)).prepared
    chunks = texts(prepared)
    first, second, third = prepared.questions
    assert first.kind == "Fact Retrieval"
    assert [("Cornish heath" in chunks[gold]) for gold in first.supporting] == [True]
    assert len(chunks) > 3
    assert (
        "".join(
            text.partition("\n")[2]
            for gold, text in chunks.items()
            if gold.startswith("Novel-44557")
        )
        == BOOK
    )
    assert (second.supporting, third.supporting) == ((), ())
    assert len(prepared.notes) == 2


def test_the_one_text_of_medical_is_a_corpus_as_well(tmp_path: Path) -> None:
    questions = written(tmp_path / "q.json", [{**NOVEL, "source": "Medical"}])
    corpus = written(tmp_path / "m.json", {"corpus_name": "Medical", "context": BOOK})
    prepared = read("graphrag-bench", questions, corpus)
    assert prepared.questions[0].supporting == ("Medical-1",)


def test_questions_of_graphrag_bench_alone_have_no_chunks(tmp_path: Path) -> None:
    prepared = read("graphrag-bench", written(tmp_path / "q.json", [NOVEL]))
    assert prepared.chunks is None


def test_a_rags_chunks_may_be_texts_with_their_id_before_a_colon(tmp_path: Path) -> None:
    written(tmp_path / "chunks.json", ["0:Lisbon is a town.", "1:Other."])
    written(
        tmp_path / "questions.json",
        [{"id": 7, "question": "Where?", "answer": 35, "question_type": "2hop"}],
    )
    prepared = read("auto", tmp_path)
    assert texts(prepared) == {"0": "Lisbon is a town.", "1": "Other."}
    (question,) = prepared.questions
    assert (question.qid, question.answer, question.kind) == ("7", "35", "2hop")


def test_further_keys_of_a_rags_chunks_are_kept(tmp_path: Path) -> None:
    chunks = written(tmp_path / "c.json", [{"id": 1, "title": "T", "text": "T\nIt.", "year": 2019}])
    questions = written(tmp_path / "q.json", [{"qid": "a", "question": "Where?"}])
    prepared = read("arag", questions, chunks)
    assert prepared.chunks == (CorpusChunk("1", "T", "T\nIt.", {"year": 2019}),)


@pytest.mark.parametrize(
    ("form", "records", "said"),
    [
        ("hotpotqa", [HOTPOT, {**HOTPOT, "question": "Else?"}], "record 2: the id '5a7a' is that"),
        ("hotpotqa", [{**HOTPOT, "context": 3}], "record 1: `context` must be a list of pairs"),
        ("hotpotqa", [{**HOTPOT, "context": [["A"]]}], "`context` must be a list of pairs"),
        ("hotpotqa", [{**HOTPOT, "context": [[["A"], ["B"]]]}], "`context` must be a text"),
        ("hotpotqa", [{**HOTPOT, "context": "no"}], "`context` is a text that is not JSON"),
        ("hotpotqa", [{**HOTPOT, "_id": ""}], "record 1 has no text in `_id`"),
        ("hotpotqa", [3], "record 1 is no object"),
        ("hotpotqa", [musique("2hop__1")], "has no `context`; is it another dataset's form?"),
        ("musique", [HOTPOT], "has no list `paragraphs`; is it another dataset's form?"),
        ("musique", [{**musique("2hop__1"), "paragraphs": [3]}], "paragraph 1 is no object"),
        ("arag", [{"question": "Where?"}], "record 1 has no `qid`"),
        ("auto", [{"a": 1}], "whose keys are: a; name the form: arag, hotpotqa"),
        ("latin", [HOTPOT], "There is no form 'latin'; name one of auto, arag"),
        ("musique", [], "holds no record"),
        ("musique", [musique("2hop__1", False)], "holds no question that can be asked"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence_that_names_the_record(
    tmp_path: Path, form: str, records: list[object], said: str
) -> None:
    path = written(tmp_path / "dev.json", records)
    with pytest.raises(BadDataset) as raised:
        read(form, path)
    assert said in str(raised.value)
    assert form == "latin" or "dev.json" in str(raised.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "dev.json is empty"),
        (b'[{"a": 1},', "dev.json is not JSON"),
        (b'{"a": 1}\n\n{"a": 1,}\n', "dev.json, line 3, is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"PAR1\x15\x04\x00\x00\xff\xfe\x80", "is no text"),
    ],
)
def test_a_file_that_is_no_json_is_told_with_the_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "dev.json"
    path.write_bytes(content)
    with pytest.raises(BadDataset, match=said):
        read("musique", path)


def test_a_paragraph_corpus_beside_questions_that_have_theirs_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.json", [HOTPOT])
    with pytest.raises(BadDataset, match=r"paragraphs come with the questions; leave .* out"):
        read("hotpotqa", path, corpus=path)


def test_two_chunks_of_one_id_are_refused_where_their_texts_differ(tmp_path: Path) -> None:
    questions = written(tmp_path / "q.json", [{"qid": "a", "question": "Where?"}])
    chunks = written(tmp_path / "c.json", [{"id": 1, "text": "A"}, {"id": "1", "text": "B"}])
    with pytest.raises(BadDataset, match="the id '1' is that of two different chunks"):
        read("arag", questions, chunks)


def test_a_chunk_that_is_none_is_named(tmp_path: Path) -> None:
    questions = written(tmp_path / "q.json", [{"qid": "a", "question": "Where?"}])
    chunks = written(tmp_path / "c.json", [{"id": 1, "text": "A"}, {"id": 2}])
    with pytest.raises(BadDataset, match="record 2 is no chunk"):
        read("arag", questions, chunks)
