"""Whatever the bytes and the name: a document of sound text, or an error we own."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag.documents import Document, parse
from agentic_rag.documents.file_types import BY_SUFFIX
from agentic_rag.errors import AragError

SUFFIXES = st.sampled_from([*BY_SUFFIX, ".unknown", ""])
MARKUP = st.text(st.sampled_from("#=-`~*_[](){}<>/!&;|\"',:\t\n\\aB中。0 ")).map(str.encode)
REAL_MARKS = (b"\xef\xbf\xbd", b"\x84\x31\xa4\x37", b"\xff\xfd", b"\xfd\xff", b"fffd", b"FFFD")


def _check(document: Document, data: bytes) -> None:
    texts = [document.text, document.title, *document.warnings]
    texts += [c.text for c in document.given_chunks or ()]
    for text in texts:
        text.encode("utf-8")
        assert "\r" not in text
        assert "\0" not in text
        assert "\ufeff" not in text
        assert "�" not in text or any(m in data for m in REAL_MARKS) or b"&#" in data
    for heading in document.headings:
        assert heading.level >= 1
        assert heading.text
        assert heading.start == 0 or document.text[heading.start - 1] == "\n"
    starts = [heading.start for heading in document.headings]
    assert starts == sorted(starts)
    assert document.text.strip() or document.warnings or document.given_chunks


@settings(max_examples=300, deadline=None)
@given(SUFFIXES, st.one_of(st.binary(), MARKUP, st.text().map(lambda t: t.encode("utf-16"))))
def test_any_bytes_under_any_name_end_well(suffix: str, data: bytes) -> None:
    try:
        document = parse(f"/docs/file{suffix}", data)
    except AragError as error:
        assert str(error)
        return
    _check(document, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=100, deadline=None)
@given(JSON | st.lists(st.fixed_dictionaries({"id": st.integers() | st.text(), "text": st.text()})))
def test_any_json_is_read(value: object) -> None:
    data = json.dumps(value).encode()
    for suffix in (".json", ".jsonl"):
        _check(parse(f"a{suffix}", data), data)
