"""Jupyter notebooks, nbformat 3 and 4: text cells as the Markdown they are, code, and what the code
printed. Pictures are left out; a long output is cut, and says by how many lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_rag.documents.cleaning import clean_text, one_line
from agentic_rag.documents.composition import Composition
from agentic_rag.documents.document import Document, Table
from agentic_rag.documents.errors import UnreadableDocument
from agentic_rag.documents.headings import file_name, split_title
from agentic_rag.documents.html_page import read_html
from agentic_rag.documents.markdown import markdown_headings
from agentic_rag.documents.tables import pipe_tables

# An output is read for its results; a log or a print in a loop is not.
_MOST_LINES = 50
_LONGEST_LINE = 2_000


def parse_notebook(uri: str, text: str, media_type: str) -> Document:
    """A document of a notebook's clean JSON. Raises UnreadableDocument for what is none."""
    notebook = _loaded(uri, text)
    metadata = _mapping(notebook.get("metadata"))
    language = _language(metadata)
    composition = Composition()
    for cell in _cells(notebook):
        source = clean_text(_joined(cell.get("source", cell.get("input", ""))))
        kind = cell.get("cell_type")
        if kind == "code":
            _add_fenced(composition, source, one_line(str(cell.get("language", language))))
            _add_outputs(composition, uri, cell)
        elif kind == "heading":  # nbformat 3
            level = cell.get("level")
            marks = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1)
            _add_markdown(composition, f"{marks} {one_line(source)}")
        elif kind == "markdown":
            _add_markdown(composition, source)
        else:
            composition.add_text(source)
    document = composition.finish(uri, "", media_type)
    given = metadata.get("title")
    title, headings = split_title(
        document.headings, one_line(given) if isinstance(given, str) else "", file_name(uri)
    )
    known = {"language": language} if language else {}
    return replace(document, title=title, headings=headings, metadata=known)


def _loaded(uri: str, text: str) -> Mapping[str, Any]:
    name = file_name(uri)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableDocument(
            f"'{name}' is a damaged notebook (no JSON{at}: cut short, or with the marks of a merge "
            "in it); repair it in an editor and index it again"
        ) from error
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        raise UnreadableDocument(
            f"'{name}' is no notebook: it has no cells; give it its right suffix, such as .json"
        )
    return notebook


def _cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    sheets = notebook.get("worksheets")
    for sheet in [notebook, *(sheets if isinstance(sheets, list) else ())]:
        cells = _mapping(sheet).get("cells")
        if isinstance(cells, list):
            yield from (cell for cell in cells if isinstance(cell, dict))


def _language(metadata: Mapping[str, Any]) -> str:
    for key in ("kernelspec", "language_info"):
        about = _mapping(metadata.get(key))
        found = about.get("language") or (key == "language_info" and about.get("name"))
        if isinstance(found, str) and found.strip():
            return one_line(found)
    return ""


def _add_markdown(composition: Composition, text: str) -> None:
    composition.add_document(
        Document(
            "",
            "",
            "text/markdown",
            text,
            headings=tuple(markdown_headings(text)),
            tables=pipe_tables(text),
        )
    )


def _add_fenced(composition: Composition, text: str, language: str = "") -> None:
    if text.strip():
        fence = "```"
        while fence in text:
            fence += "`"
        body = text.strip("\n")
        composition.add_code(f"{fence}{language}\n{body}\n{fence}")


def _add_outputs(composition: Composition, uri: str, cell: Mapping[str, Any]) -> None:
    printed: list[str] = []  # pieces of a stream come in many outputs

    def flush() -> None:
        _add_fenced(composition, _capped(_screen("".join(printed))), "output")
        printed.clear()

    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        output = _mapping(output)
        kind = output.get("output_type")
        if kind == "stream":
            printed.append(_joined(output.get("text")))
            continue
        flush()
        if kind in ("error", "pyerr"):
            name, value = (str(output.get(key) or "") for key in ("ename", "evalue"))
            _add_fenced(composition, one_line(f"{name}: {value}")[:_LONGEST_LINE], "output")
        else:
            _add_result(composition, uri, output)
    flush()


def _add_result(composition: Composition, uri: str, output: Mapping[str, Any]) -> None:
    """The most telling form of a result: its table, its Markdown, its plain text."""
    data = _mapping(output.get("data")) or output  # nbformat 3 has them in the output itself
    html = clean_text(_joined(data.get("text/html", data.get("html"))))
    page = read_html(uri, html, "text/html") if html.strip() else None
    markdown = clean_text(_joined(data.get("text/markdown", data.get("markdown"))))
    plain = _joined(data.get("text/plain", data.get("text")))
    if page is not None and page.tables:
        text = _capped(page.text)
        tables = tuple(
            Table(t.start, t.body, min(t.end, len(text))) for t in page.tables if t.body < len(text)
        )
        composition.add_document(replace(page, title="", text=text, headings=(), tables=tables))
    elif markdown.strip():
        composition.add_text(_capped(markdown))
    elif any(key.startswith("image/") or key in ("png", "jpeg", "svg") for key in data):
        return  # its plain text only says that there is a picture
    elif plain.strip():
        _add_fenced(composition, _capped(_screen(plain)), "output")
    elif page is not None:
        composition.add_text(_capped(page.text))


def _screen(text: str) -> str:
    """What a screen would show in the end: progress bars write over themselves."""
    lines = text.replace("\r\n", "\n").split("\n")
    return clean_text("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def _capped(text: str) -> str:
    """The first lines of a text, with a note of how many more there are."""
    lines = text.strip("\n").split("\n")
    more = len(lines) - _MOST_LINES
    kept = [
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} …"
        for line in lines[:_MOST_LINES]
    ]
    return "\n".join([*kept, f"… {more} more lines"] if more > 0 else kept)


def _joined(value: object) -> str:
    if isinstance(value, str):
        return value
    return "".join(map(str, value)) if isinstance(value, Sequence) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
