"""Tables in chunks: every chunk of a long table shows its heading row."""

from agentic_rag.documents import parse
from agentic_rag.text.chunking import chunk_document

MARKDOWN = "# Prices\n\nBefore.\n\n| Part | Price |\n| --- | ---: |\n" + "".join(
    f"| bolt {n} | {n}.50 |\n" for n in range(200)
)
HTML = (
    "<h1>价目</h1><p>前言。</p><table><tr><th>零件</th><th>价格</th></tr>"
    + "".join(f"<tr><td>螺栓 {n}</td><td>{n} 元</td></tr>" for n in range(200))
    + "</table><p>After.</p>"
)


def _bodies(uri: str, data: str, size: int = 200) -> tuple[list[str], list[str], str]:
    document = parse(uri, data.encode())
    drafts = chunk_document(document, size)
    return [d.text for d in drafts], [d.text[d.body_start :] for d in drafts], document.text


def test_each_chunk_of_a_markdown_table_begins_with_its_heading_row() -> None:
    texts, bodies, whole = _bodies("prices.md", MARKDOWN)
    assert len(texts) > 3
    for text in texts[1:]:
        assert text.startswith("Prices\n| Part | Price |\n| --- | ---: |\n| bolt")
    assert "".join(bodies) == whole


def test_each_chunk_of_an_html_table_begins_with_its_heading_row() -> None:
    texts, bodies, whole = _bodies("价目.html", HTML)
    assert len(texts) > 3
    for text in texts[1:]:
        assert text.startswith("价目\n零件 | 价格\n螺栓")
    assert "".join(bodies) == whole


def test_a_row_of_a_table_is_one_sentence() -> None:
    draft = chunk_document(parse("prices.md", MARKDOWN.encode()))[0]
    sentences = [draft.text[s.start : s.end] for s in draft.sentences]
    assert "| bolt 7 | 7.50 |\n" in sentences


def test_text_after_a_table_has_no_heading_row_before_it() -> None:
    texts, _, _ = _bodies("a.md", MARKDOWN + "\n" + "A sentence that follows the table. " * 80)
    assert "| Part" not in texts[-1]


def test_pipes_in_fenced_code_are_no_table() -> None:
    document = parse("a.md", b"```\na | b\n--- | ---\n1 | 2\n```\n")
    assert document.tables == ()


def test_a_heading_row_that_fills_a_chunk_is_not_repeated() -> None:
    wide = "| " + " | ".join(f"a long heading number {n}" for n in range(60)) + " |\n"
    rule = "|" + " --- |" * 60 + "\n"
    rows = "".join("| " + " | ".join(str(n) for _ in range(60)) + " |\n" for n in range(30))
    texts, _, _ = _bodies("wide.md", wide + rule + rows)
    assert sum("a long heading number 1 " in text for text in texts) == 1
