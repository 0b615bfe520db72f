"""`arag search` and `arag read`: what they find, and how it is shown."""

import json
from pathlib import Path

import pytest

from agentic_rag.cli.passages import highlighted
from agentic_rag.cli.streams import safe
from tests.cli.running import Arag

HIT = {"chunk_id", "source_id", "score", "title", "uri", "page", "section", "snippet"}


@pytest.mark.parametrize("mode", ["keyword", "semantic", "bm25", "hybrid"])
def test_json_holds_hits_with_eight_fields_in_every_mode(ask_indexed: Arag, mode: str) -> None:
    ran = ask_indexed("search", "pumps replaced", "--mode", mode, "--json")

    assert ran.code == 0, ran.err
    assert all(set(hit) == HIT for hit in ran.json["hits"])
    best = ran.json["hits"][0]
    assert best["title"] == "Pump station"
    assert "replaced" in best["snippet"] or "pumps" in best["snippet"]
    assert best["uri"].endswith("notes/pump.md")


def test_a_person_sees_id_title_section_path_and_snippet(ask_indexed: Arag) -> None:
    ran = ask_indexed("search", "replaced", "--mode", "keyword")
    chunk_id = ask_indexed("search", "replaced", "--mode", "keyword", "--json").json["hits"][0][
        "chunk_id"
    ]

    assert f"1. [{chunk_id}] Pump station" in ran.out
    assert "notes/pump.md" in ran.out
    assert "The second one was replaced in 2019." in ran.out


def test_a_heading_that_was_found_is_not_said_twice(ask_indexed: Arag) -> None:
    both = ask_indexed("search", "pump", "--mode", "keyword")
    asked = ask_indexed("ask", "History of the pump station?", "--model", "none")
    heading = ask_indexed("search", "history", "--mode", "keyword")
    as_json = ask_indexed("search", "history", "--mode", "keyword", "--json").json["hits"][0]

    assert both.out.count("Pump station") == 1
    assert "   The Blue Bridge station has two pumps." in both.out
    (step,) = (line for line in asked.err.splitlines() if "Blue Bridge" in line)
    assert step.count("Pump station › History") == 1
    (line,) = (line for line in heading.out.splitlines() if "History" in line)
    assert "Pump station › History" in line
    assert as_json["snippet"] == "Pump station › History"  # a program does not see the place above


def test_a_chinese_question_finds_the_chinese_document(ask_indexed: Arag) -> None:
    ran = ask_indexed("search", "水泵什么时候更换的？", "--json")

    assert ran.json["hits"][0]["title"] == "蓝桥泵站"


def test_brackets_in_a_document_are_shown_as_they_are(ask_indexed: Arag) -> None:
    ran = ask_indexed("search", "cash", "--mode", "keyword")

    assert "[in cash]" in ran.out


def test_absence_is_an_answer_in_keyword_mode(ask_indexed: Arag) -> None:
    ran = ask_indexed("search", "Hagood zebra", "--mode", "keyword")

    assert ran.code == 0
    assert ran.out == ""
    assert "0 chunks contain 'Hagood'." in ran.err
    assert "0 chunks contain 'zebra'." in ran.err


def test_quotes_keep_a_phrase(ask_indexed: Arag) -> None:
    together = ask_indexed("search", '"yearly fee"', "--mode", "keyword", "--json").json
    apart = ask_indexed("search", '"fee yearly"', "--mode", "keyword", "--json").json

    assert len(together["hits"]) == 1
    assert apart["hits"] == []


def test_whole_words_and_require_all_narrow_a_keyword_search(ask_indexed: Arag) -> None:
    def count(*words: str) -> int:
        return len(ask_indexed("search", *words, "--mode", "keyword", "--json").json["hits"])

    assert count("pump") == 1
    assert count("ump") == 1
    assert count("ump", "--whole-words") == 0
    assert count("pumps cellar") == 2
    assert count("pumps cellar", "--require-all") == 0


def test_whole_words_without_keyword_mode_is_a_usage_error(ask_indexed: Arag) -> None:
    assert ask_indexed("search", "pump", "--whole-words").code == 2


def test_path_and_metadata_limit_a_search(ask_indexed: Arag) -> None:
    def titles(*words: str) -> list[str]:
        hits = ask_indexed("search", "is", "--mode", "keyword", "--json", *words).json["hits"]
        return [Path(hit["uri"]).name for hit in hits]

    assert titles("--path", "*.txt") == ["fees.txt"]
    assert titles("--path", "*/sub/*") == []
    assert "fees.txt" in titles("--where", "lang=mixed")
    assert titles("--where", "lang=fr") == []


def test_k_limits_the_hits_and_asking_for_more_does_not_reorder(ask_indexed: Arag) -> None:
    one = ask_indexed("search", "water pump", "-k", "1", "--json").json["hits"]
    three = ask_indexed("search", "water pump", "-k", "3", "--json").json["hits"]

    assert len(one) == 1
    assert three[0] == one[0]


def test_read_shows_the_whole_text_and_its_neighbours(ask_indexed: Arag) -> None:
    chunk_id = ask_indexed("search", "cellar", "--mode", "keyword", "--json").json["hits"][0][
        "chunk_id"
    ]

    shown = ask_indexed("read", chunk_id, "--before", "1", "--after", "1")
    as_json = ask_indexed("read", chunk_id, "--json").json

    heading, path, blank, text = shown.out.splitlines()
    assert heading == f"[{chunk_id}] other.txt › sub"
    assert path == "notes/sub/other.txt"
    assert (blank, text) == ("", "Apples keep best in a cold cellar.")
    assert as_json["chunks"][0]["chunk_id"] == chunk_id
    assert as_json["chunks"][0]["text"].endswith("Apples keep best in a cold cellar.\n")


def test_an_unknown_id_is_named_with_the_nearest(ask_indexed: Arag) -> None:
    alone = ask_indexed("read", "1-99")
    beside = ask_indexed("read", "1-1", "1-99", "--json")

    assert alone.code == 1
    assert "'1-99'" in alone.err
    assert "1-1" in alone.err
    assert beside.code == 3
    assert [chunk["chunk_id"] for chunk in beside.json["chunks"]] == ["1-1"]
    assert beside.json["missing"] == ["1-99"]
    assert "'1-99'" in beside.err
    assert ask_indexed("read", "1-1", "--json").json["missing"] == []


def test_what_matched_is_marked_and_brackets_stay_brackets() -> None:
    marked = highlighted("A [red]cat[/] ate; Cats concatenate.", ["cat"])
    inside = highlighted("A cat: concatenate.", ["cat"], inside_words=True)

    assert marked.plain == "A [red]cat[/] ate; Cats concatenate."
    assert [(span.start, span.end) for span in marked.spans] == [(7, 10)]
    assert [(span.start, span.end) for span in inside.spans] == [(2, 5), (10, 13)]


def test_a_document_cannot_move_the_cursor_or_turn_the_writing() -> None:
    assert safe("a\x1b[2Jb\x07\u202ec\r\nd") == "a[2Jbc\nd"


def test_the_id_of_a_corpus_that_was_cut_already_is_shown(arag: Arag, tmp_path: Path) -> None:
    items = [{"id": "q7", "title": "Pumps", "text": "Two pumps [red] stand here."}]
    (tmp_path / "corpus.json").write_text(json.dumps(items))
    arag("index", "corpus.json")

    ran = arag("search", "stand", "--mode", "keyword")

    assert ran.out.startswith("1. [1-1] Pumps (id q7)  score 5\n   corpus.json\n")
