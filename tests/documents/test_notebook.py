"""Jupyter notebooks: text, code and what the code printed."""

import json
from typing import Any

import pytest

from agentic_rag.documents import Document, UnreadableDocument, parse
from agentic_rag.text.chunking import chunk_document


def _notebook(*cells: dict[str, Any], **metadata: Any) -> Document:
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    return parse("/n/a.ipynb", json.dumps(notebook).encode())


def _code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": outputs, "metadata": {}}


def _markdown(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": list(lines), "metadata": {}}


def test_text_cells_are_markdown_and_code_stands_between_them() -> None:
    document = _notebook(
        _markdown("# 泵站 *model*\n", "\n", "The pump."),
        _code("# no heading\nflow = 12"),
        _markdown("## Results"),
        _code("print(flow)", {"output_type": "stream", "name": "stdout", "text": ["12\n", "13\n"]}),
        {"cell_type": "raw", "source": "raw words", "metadata": {}},
        kernelspec={"language": "python"},
    )
    assert document.title == "泵站 model"
    assert [(h.level, h.text) for h in document.headings] == [(2, "Results")]
    assert document.text == (
        "# 泵站 *model*\n\nThe pump.\n\n```python\n# no heading\nflow = 12\n```\n\n## Results\n\n"
        "```python\nprint(flow)\n```\n\n```output\n12\n13\n```\n\nraw words\n"
    )
    assert document.metadata == {"language": "python"}
    (draft,) = chunk_document(document)
    sections = {draft.text[s.start : s.end].strip(): s.section for s in draft.sentences}
    assert sections["```output\n12\n13\n```"] == "Results"


def test_a_table_that_was_printed_keeps_its_heading_row() -> None:
    html = (
        "<style>th{}</style><table border=1 class=dataframe><tr><th></th><th>pump</th><th>flow</th>"
        "<tr><th>0</th><td>蓝桥</td><td>12</td></table>"
    )
    data = {"text/html": [html], "text/plain": ["  pump flow"]}
    document = _notebook(_code("df", {"output_type": "execute_result", "data": data}))
    assert "| pump | flow\n0 | 蓝桥 | 12" in document.text
    (table,) = document.tables
    assert document.text[table.start : table.body] == "| pump | flow\n"
    assert "pump flow\n```" not in document.text


def test_errors_are_short_pictures_left_out_and_long_outputs_cut() -> None:
    document = _notebook(
        _code(
            "run()",
            {"output_type": "stream", "text": "".join(f"line {n}\n" for n in range(500))},
            {
                "output_type": "display_data",
                "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480>"},
            },
            {
                "output_type": "error",
                "ename": "ValueError",
                "evalue": "no flow",
                "traceback": ["\u001b[0;31mValueError\u001b[0m" * 50],
            },
        )
    )
    assert "line 49\n… 450 more lines\n" in document.text
    assert "line 50\n" not in document.text
    assert "Figure" not in document.text
    assert document.text.endswith("```output\nValueError: no flow\n```\n")


def test_a_progress_bar_is_what_the_screen_showed_in_the_end() -> None:
    text = "".join(f"\r{n}%|##  |" for n in range(101)) + "\r\ndone\n"
    document = _notebook(_code("x", {"output_type": "stream", "text": text}))
    assert "```output\n100%|##  |\ndone\n```" in document.text


def test_an_older_notebook_is_read_too() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["旧笔记本"]},
        {
            "cell_type": "code",
            "language": "python",
            "input": ["1+1"],
            "outputs": [{"output_type": "pyout", "text": ["2"]}],
        },
    ]
    old = {"nbformat": 3, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}
    document = parse("/n/old.ipynb", json.dumps(old).encode())
    assert document.text == "## 旧笔记本\n\n```python\n1+1\n```\n\n```output\n2\n```\n"
    assert [h.text for h in document.headings] == ["旧笔记本"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"cells": [<<<<<<< HEAD', r"damaged notebook \(no JSON at line 1"),
        (b"[1, 2]", "is no notebook"),
        (b'{"a": 1}', "is no notebook"),
        (b"[" * 100_000, "damaged notebook"),
    ],
)
def test_what_is_no_notebook_is_named(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableDocument, match=why):
        parse("/n/a.ipynb", data)


@pytest.mark.parametrize(
    "cells",
    [
        None,
        5,
        [None, 1, {}],
        [{"cell_type": "code", "source": None, "outputs": [None, {"data": 3}]}],
    ],
)
def test_what_is_missing_in_a_notebook_does_no_harm(cells: Any) -> None:
    data = json.dumps({"cells": cells, "metadata": 3}).encode()
    assert parse("/n/a.ipynb", data).warnings == ("the file holds no text",)
