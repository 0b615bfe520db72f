"""Damaged Office files: a document or one sentence, whatever the bytes are."""

import io
import zipfile
from collections.abc import Callable

import docx
import openpyxl
import pytest
import xlwt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pptx import Presentation

from agentic_rag.documents import UnreadableDocument, UnsupportedDocument, parse
from agentic_rag.text.chunking import chunk_document
from tests.documents.office_writer import zipped
from tests.documents.test_open_document import _p, _write


def _saved(save: Callable[[io.BytesIO], None]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def _docx() -> bytes:
    made = docx.Document()
    made.add_heading("A", 1)
    made.add_paragraph("one", style="List Number")
    made.add_table(2, 2).cell(0, 0).text = "x"
    made.sections[0].header.paragraphs[0].text = "head"
    return _saved(made.save)


def _pptx() -> bytes:
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "A"
    slide.notes_slide.notes_text_frame.text = "n"
    return _saved(made.save)


def _xlsx() -> bytes:
    made = openpyxl.Workbook()
    made.active.append(["a", "b"])
    made.active.append([1.5, "x"])
    made.active.merge_cells("A3:B4")
    return _saved(made.save)


def _xls() -> bytes:
    made = xlwt.Workbook()
    made.add_sheet("a").write(0, 0, "x")
    return _saved(made.save)


_FILES = {
    "a.docx": _docx(),
    "a.pptx": _pptx(),
    "a.xlsx": _xlsx(),
    "a.xls": _xls(),
    "a.odt": _write("text", _p("x") + "<text:h text:outline-level='1'>h</text:h>"),
    "a.ods": _write("spreadsheet", "<table:table table:name='t'><table:table-row/></table:table>"),
}


def _read(name: str, data: bytes) -> None:
    """Parse and cut, which must end well or in an error of ours with one sentence."""
    try:
        document = parse(f"/x/{name}", data)
    except (UnreadableDocument, UnsupportedDocument) as error:
        assert "\n" not in str(error)
        return
    assert all(draft.text.strip() for draft in chunk_document(document))


@pytest.mark.parametrize("name", _FILES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**9), st.binary(min_size=1, max_size=8), st.booleans())
def test_bytes_changed_anywhere(name: str, at: int, patch: bytes, cut: bool) -> None:
    data = _FILES[name]
    at %= len(data)
    _read(name, data[:at] if cut else data[:at] + patch + data[at + len(patch) :])


@pytest.mark.parametrize("name", [name for name in _FILES if name != "a.xls"])
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_xml_changed_inside_the_archive(name: str, data: st.DataObject) -> None:
    with zipfile.ZipFile(io.BytesIO(_FILES[name])) as archive:
        parts: dict[str, str | bytes] = {each: archive.read(each) for each in archive.namelist()}
    part = data.draw(st.sampled_from(sorted(each for each in parts if "xml" in each)))
    xml = parts[part]
    assert isinstance(xml, bytes)
    kind = data.draw(st.sampled_from(["cut", "numbers", "names", "missing", "values"]))
    at = data.draw(st.integers(0, len(xml)))
    if kind == "missing":
        del parts[part]
    elif kind == "cut":
        parts[part] = xml[:at]
    elif kind == "numbers":  # of rows, styles, relations: too large, negative, no number
        other = data.draw(st.sampled_from([b'"99999999999999999999"', b'"-1"', b'"x"', b'""']))
        parts[part] = xml[:at] + _replaced_value(xml[at:], other)
    elif kind == "values":
        other = data.draw(st.sampled_from([b">1e999<", b">-7<", b">NaN<", b"><"]))
        parts[part] = xml[:at] + _replaced_text(xml[at:], other)
    else:
        parts[part] = xml[:at] + xml[at:].replace(b":p", b":tbl", 1).replace(b"row", b"c", 1)
    _read(name, zipped(parts))


def _replaced_value(xml: bytes, other: bytes) -> bytes:
    start = xml.find(b'="')
    end = xml.find(b'"', start + 2)
    return xml if start < 0 or end < 0 else xml[: start + 1] + other + xml[end + 1 :]


def _replaced_text(xml: bytes, other: bytes) -> bytes:
    start = xml.find(b">")
    end = xml.find(b"<", start)
    return xml if start < 0 or end < 0 else xml[:start] + other + xml[end + 1 :]
