"""CSV, TSV, JSON, JSON Lines, and corpora that come pre-chunked."""

import json

import pytest

from agentic_rag.documents import Document, parse


def _parse(uri: str, text: str) -> Document:
    return parse(uri, text.encode())


def test_a_mark_before_a_quoted_heading_with_comma_and_newline_leaves_it_intact() -> None:
    text = '\ufeff"产品名称,\n含规格",价格\r\n水泵,12\r\n'
    for encoding in ("utf-8", "utf-16", "gb18030"):
        document = parse("价格表.csv", text.encode(encoding))
        assert document.text == "产品名称, 含规格: 水泵; 价格: 12\n"
        assert document.metadata == {"rows": 1, "columns": 2}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["名称", "价格"], ["水泵", "1.5"], ["阀门", "3"]]
    text = "\n".join(delimiter.join(row) for row in rows)
    assert _parse("a.csv", text).text == "名称: 水泵; 价格: 1.5\n名称: 阀门; 价格: 3\n"


def test_rows_of_any_length_lose_nothing() -> None:
    document = _parse("a.csv", 'a,b\n1\n1,2,3\n\n,"x\ny"\n')
    assert document.text == "a: 1\na: 1; b: 2; column 3: 3\nb: x y\n"


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_rows() -> None:
    document = _parse("a.csv", 'name,note\nx,"open\ny,z\n')
    assert document.text == 'name: x; note: "open\nname: y; note: z\n'
    assert "never closed" in document.warnings[0]


def test_a_table_of_numbers_has_no_headings_and_headings_alone_are_text() -> None:
    assert _parse("a.csv", "1,2\n3,4\n").text.startswith("column 1: 1; column 2: 2\n")
    assert _parse("a.csv", "名称,价格\n").text == "名称 | 价格\n"


def test_a_cell_longer_than_the_csv_module_likes_is_read() -> None:
    assert len(_parse("a.csv", "a,b\n1," + "x" * 200_000).text) > 200_000


def test_json_becomes_lines_with_paths() -> None:
    document = _parse(
        "a.json", '\ufeff{"泵站":{"名称":"\\u84dd桥","台数":3},"tags":["a","b"],"m":[{"x":null}]}'
    )
    assert document.text == "泵站.名称: 蓝桥\n泵站.台数: 3\ntags: a, b\nm[0].x: null\n"


def test_json_lines_are_records() -> None:
    document = _parse("a.jsonl", '\ufeff{"a":1,"b":"x"}\n{"c":{"d":true}}\nbroken\n')
    assert document.text == "a: 1; b: x\nc.d: true\nbroken\n"
    assert document.warnings == ("line 3 is not valid JSON: taken as plain text",)


def test_what_is_no_json_stays_as_it_is_with_a_warning() -> None:
    document = _parse("tsconfig.json", '{"a": 1, // one\n}')
    assert document.text == '{"a": 1, // one\n}'
    assert "not valid JSON" in document.warnings[0]
    assert parse("a.json", b"[" * 50_000).warnings == (
        "it is not valid JSON (nested too deeply): taken as plain text",
    )


def test_lone_surrogates_and_nul_in_json_do_no_harm() -> None:
    document = _parse("a.json", '{"a":"x\\ud800y\\u0000z"}')
    assert document.text == "a: xyz\n"


CORPUS = [
    {"id": "0", "title": "Demon Dice", "text": "Demon Dice\nA game: of dice.", "year": 1995},
    {"id": 1, "text": "你好：世界", "tags": ["a"], "none": None},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chunks.json", json.dumps(CORPUS)),
        ("chunks.jsonl", "\n".join(map(json.dumps, CORPUS))),
        ("chunks.json", "\n".join(map(json.dumps, CORPUS))),
    ],
)
def test_a_prechunked_corpus_keeps_ids_titles_and_metadata(name: str, text: str) -> None:
    document = _parse(name, text)
    assert document.given_chunks is not None
    first, second = document.given_chunks
    assert (first.source_id, first.title, first.text) == ("0", "Demon Dice", "A game: of dice.")
    assert first.metadata == {"year": 1995}
    assert (second.source_id, second.title, second.text) == ("1", "", "你好：世界")
    assert second.metadata == {"tags": '["a"]'}
    assert document.text == ""


def test_id_and_text_strings_are_a_corpus() -> None:
    document = _parse("chunks.json", '["0:First: words.", "1:第二"]')
    assert document.given_chunks is not None
    assert [(c.source_id, c.text) for c in document.given_chunks] == [
        ("0", "First: words."),
        ("1", "第二"),
    ]


def test_ids_used_twice_and_empty_items_are_reported() -> None:
    items = [{"id": n, "text": t} for n, t in ((1, "a"), (1, "b"), (2, ""), (3, "c"))]
    document = _parse("chunks.json", json.dumps(items))
    assert document.given_chunks is not None
    assert [c.text for c in document.given_chunks] == ["a", "b", "c"]
    assert document.warnings == (
        "ids used more than once: 1",
        "items without text were left out: 2",
    )


@pytest.mark.parametrize(
    "items",
    [
        [{"id": 1, "text": "a"}, {"id": 2}],
        [{"id": 1, "text": "a"}, "2:b"],
        [{"id": None, "text": "a"}],
        ["note: a", "note: b", "note: c"],
        ["http://a", "ftp://b"],
        ["0:a", "no colon"],
    ],
)
def test_a_list_of_which_one_item_does_not_fit_is_plain_json(items: list[object]) -> None:
    assert _parse("a.json", json.dumps(items)).given_chunks is None


def test_a_text_that_is_only_its_title_is_kept() -> None:
    document = _parse("a.json", '[{"id":1,"title":"T","text":"T"}]')
    assert document.given_chunks is not None
    assert document.given_chunks[0].text == "T"
