"""A head that cannot be used is told in one sentence of plain words, whoever opens the base."""

import json
from pathlib import Path

import pytest

from agentic_rag.knowledge_base import DamagedKnowledgeBase
from agentic_rag.knowledge_base.head import read_head
from tests.knowledge_base.whole import opened


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("generation", "x", """'generation' cannot be "x";"""),
        ("dimensions", "a", """'dimensions' cannot be "a";"""),
        ("dimensions", True, "'dimensions' cannot be true;"),
        ("dimensions", 384.5, "'dimensions' cannot be 384.5;"),
        ("dimensions", 0, "'dimensions' cannot be 0;"),
        ("documents", -1, "'documents' cannot be -1;"),
        ("sentences", None, "'sentences' cannot be null;"),
        ("next_number", 10**30, f"'next_number' cannot be {10**30};"),
        ("embedding_model", 3, "'embedding_model' cannot be 3;"),
        ("embedding_model", "", "'embedding_model' cannot be \"\";"),
        ("with_heading", 1, "'with_heading' cannot be 1;"),
        ("chunking", {"size": 1000}, "'chunking' cannot be "),
        ("chunking", {"size": 5, "overlap_tokens": 5, "overlap_sentences": 0}, "'chunking' cannot"),
        ("off_topic_score", float("nan"), "'off_topic_score' cannot be NaN;"),
        ("schema_version", "1", "it names no schema version;"),
        ("other", "泵" * 100, "'other' is no field of it;"),
        ("generation", "泵" * 100, f"'generation' cannot be \"{'泵' * 39}…;"),
    ],
)
def test_a_field_that_cannot_be_is_named_with_its_value(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    opened(tmp_path)
    head = tmp_path / "head.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {field: value}))

    with pytest.raises(DamagedKnowledgeBase) as error:
        opened(tmp_path)

    assert str(error.value).startswith(f"{head} is not readable: {said}")
    assert str(error.value).endswith("with 'arag index PATH --kb NEW_DIRECTORY'.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "it is not valid JSON"),
        (b"[" * 100_000, "it is not valid JSON"),
        (b"[1]", "it holds no JSON object"),
        (b"{}", "it names no schema version"),
        (b'{"schema_version": 1}', "'documents' is missing"),
        ("泵站".encode("gb18030"), "it is no text in UTF-8"),
    ],
)
def test_a_file_of_other_content_is_told_in_plain_words(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "head.json").write_bytes(content)

    with pytest.raises(DamagedKnowledgeBase, match=f"head.json is not readable: {said}; restore"):
        read_head(tmp_path)


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "head.json").mkdir()

    with pytest.raises(DamagedKnowledgeBase, match="is not readable: it is a folder;"):
        read_head(tmp_path)


def test_only_for_a_newer_schema_is_an_upgrade_advised(tmp_path: Path) -> None:
    (tmp_path / "head.json").write_text('{"schema_version": 99}')
    with pytest.raises(DamagedKnowledgeBase, match=r"schema version 99 .*; upgrade agentic-rag"):
        read_head(tmp_path)

    (tmp_path / "head.json").write_text('{"schema_version": 0}')
    with pytest.raises(DamagedKnowledgeBase, match=r"schema version 0 .*; index again into"):
        read_head(tmp_path)
